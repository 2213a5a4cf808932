"""The speech application as a run: learns a recogniser, transcribes held-out recordings, and reports what went wrong."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..apps.speech import Edits, Plan, Recogniser, Task, criterion_of, edits, heard, learn, recogniser_of, scores_of, task
from ..apps.speech.criterion import Criterion
from ..apps.speech.scores import error_rate
from ..random import substream
from ..report import RunDirectory
from .recipe import Bars, Recipe
from .speech_page import findings, page
from .trained import Trained

_SHOWN = 3  # utterances in the report's pictures
_BOOTSTRAP = 2  # stream of the seed


def run(config: Plan, directory: RunDirectory, bars: Bars) -> None:
    """Learns a recogniser and counts its errors; goes on where an earlier call was cut short."""
    given = task(config)
    rows = directory.results()
    if not any(row.get("kind") == "corpus" for row in rows):
        directory.save_samples("transcripts", _flat(given.transcripts()))
        parts = [len(part) for part in (given.corpus.train, given.corpus.validation, given.corpus.test)]
        described = {"name": given.corpus.name, "parts": parts, "hop": given.corpus.hop}
        described |= {"size": given.corpus.size, "rate": given.corpus.rate, "inputs": given.size}
        directory.record({"kind": "corpus", **described, "symbols": given.alphabet.symbols})
    known = [row["epoch"] for row in rows if row.get("kind") == "look"]
    steps = config.epochs * -(-len(given.corpus.train) // config.batch)
    with bars.total(steps) as part:
        recogniser, criterion, _ = learn(
            config, given, out=directory.path, progress=part("learning"), known=known,
            looked=lambda row: directory.record({"kind": "look", **row}),
        )  # fmt: skip
    directory.save_model(recogniser)
    if given.corpus.test:
        directory.record(tested(config, given, recogniser, criterion))
        directory.save_samples("shown", shown(given, recogniser, criterion))


def tested(config: Plan, given: Task, recogniser: Recogniser, criterion: Criterion) -> dict[str, Any]:
    """The error rate on the test utterances with its interval, and every transcript beside the truth."""
    found, said = list[Edits](), list[list[str]]()
    for utterance in given.corpus.test:
        labels, best = given.labels(utterance).tolist(), heard(utterance, recogniser, criterion)
        found.append(edits(labels, best))
        said.append([utterance.name, *(given.units.join(given.alphabet.decode(part)) for part in (labels, best))])
    rate = error_rate(found, seed=substream(config.seed, _BOOTSTRAP))
    return {"kind": "tested", "error": list(rate), "edits": [sum(part) for part in zip(*found)], "said": said}


def shown(given: Task, recogniser: Recogniser, criterion: Criterion) -> dict[str, Tensor]:
    """Features, scores and alignments of a few test utterances, for the report."""
    kept = {}
    for number in range(0, len(given.corpus.test), -(-len(given.corpus.test) // _SHOWN)):
        utterance = given.corpus.test[number]
        scores = scores_of(utterance, recogniser)
        labels = given.labels(utterance)
        kept |= {f"features {number}": utterance.features, f"labels {number}": labels}
        kept |= {f"classes {number}": criterion.aligned(scores, labels.to(scores.device)), f"scores {number}": scores}
    return kept


def _flat(transcripts: Sequence[Tensor]) -> dict[str, Tensor]:
    return {"labels": torch.cat(list(transcripts)), "counts": torch.tensor([len(labels) for labels in transcripts])}


def build(config: Plan) -> Recogniser:
    """The recogniser before it has learned."""
    given = task(config)
    return recogniser_of(config, given.size, criterion_of(config, given.alphabet.classes, given.transcripts()).classes)


def first_batch(config: Plan) -> Tensor:
    """Features of a few utterances that are learned from."""
    given = task(config)
    return given.batches(given.corpus.train, config.batch, config.device)[0].features


SPEECH = Recipe(
    figure="EBM-SLP, section 4.2: CTC and CTC-CRF",
    summary="a recogniser of phones or characters, by CTC, CTC-CRF or LF-MMI",
    presets={
        "smoke": Plan(
            data="fsdd", limit=100, layers=1, width=64, dropout=0.0, time_masks=0, epochs=12, batch=8, rate=0.01, looks=3,
            average=0.9,
        ),
        "laptop": Plan(),
    },
    run=run,
    findings=findings,
    page=page,
    trained=Trained(build, first_batch),
)  # fmt: skip
