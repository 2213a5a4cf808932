"""`gibbsite tag predict` and `gibbsite tag evaluate`: a trained tagger on text and on another corpus."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, final

import tyro

from ..apps.tagging import Corpus, Hypothesis, Sentence, Tagger, sentences_of
from ..apps.tagging import evaluate as scored
from ..apps.tagging.models import read
from .words import Run, UsageError, opened, parsed

_AT_ONCE = 1000  # sentences


@final
@dataclass(frozen=True)
class _Predict:
    """Tag text from standard input, one sentence a line, its words parted by spaces.

    Prints a word and its label a line, with a tab between, and an empty line after each sentence.
    """

    run: Run
    """The run's directory."""
    n_best: int = 1
    """How many labellings of each sentence, the best first, each under a line that says its log-probability."""
    confidence: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Add a column: the probability of the label at its word, given all words."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        if self.n_best < 1:
            raise UsageError(f"--n-best: expected at least 1, got {self.n_best}")


@final
@dataclass(frozen=True)
class _Evaluate:
    """Score a tagger on a corpus: words and sentences that are right, F1 of spans, the calibration error, nats a word."""

    run: Run
    """The run's directory."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The corpus, in CoNLL-U or in columns."""
    column: str | None = None
    """Which column has the labels; by default that of training."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


def predict(words: list[str]) -> int:
    """gibbsite tag predict RUN."""
    options = parsed(_Predict, "tag predict", words)
    tagger, number = _tagger(options.run, options.device), 0
    sentences = sentences_of(sys.stdin)
    while some := list(islice(sentences, _AT_ONCE)):
        for lines in _tagged(tagger, some, options, number):
            sys.stdout.write("".join(f"{line}\n" for line in lines) + "\n")
        number += len(some)
    return 0


def _tagged(tagger: Tagger, some: Sequence[Sentence], options: _Predict, number: int) -> Iterator[list[str]]:
    if options.n_best > 1:
        best = tagger.n_best(some, options.n_best)
    else:
        best = [[Hypothesis(labels, 0.0)] for labels in tagger.predict(some)]
    marginals = tagger.predict_marginals(some) if options.confidence else [None] * len(some)
    for place, (sentence, hypotheses, p) in enumerate(zip(some, best, marginals)):
        for rank, (labels, log_p) in enumerate(hypotheses):
            numbers = tagger.labels.encode(labels)
            lines = [f"# sentence = {number + place + 1}, rank = {rank + 1}, log p = {log_p:.4f}"] * (options.n_best > 1)
            for t, (word, label) in enumerate(zip(sentence.words, labels)):
                lines.append(f"{word}\t{label}" + ("" if p is None else f"\t{float(p[t, numbers[t]]):.4f}"))
            yield lines


def evaluate(words: list[str]) -> int:
    """gibbsite tag evaluate RUN FILE."""
    options = parsed(_Evaluate, "tag evaluate", words)
    tagger = _tagger(options.run, options.device)
    told = opened(options.run).config()["parameters"]
    try:
        scores = scored(tagger, Corpus.read(options.file, options.column or told["column"], told["scheme"]))
    except ValueError as error:
        raise UsageError(f"tag evaluate: {error}") from error
    print(f"{'sentences':18}{scores.sentences}\n{'words':18}{scores.tokens}\n{'unknown labels':18}{scores.unknown}")
    print(f"{'words right':18}{scores.accuracy:.4%}\n{'sentences right':18}{scores.whole:.4%}")
    if scores.spans is not None:
        for name, value in scores.spans._asdict().items():
            print(f"{f'spans, {name}':18}{value:.4%}")
    print(f"{'calibration error':18}{scores.calibration:.6f}\n{'nats a word':18}{scores.nats:.4f}")
    return 0


def _tagger(path: Path, device: str) -> Tagger:
    directory = opened(path)
    if (recipe := directory.config().get("recipe")) != "tag":
        raise UsageError(f"{path}: a run of {recipe}, which trains no tagger; `gibbsite tag train` does")
    if not directory.model_path.is_file():
        raise UsageError(f"{path}: did not train to its end; `gibbsite resume {path}` goes on with it")
    try:
        return read(directory.model_path).to(device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"--device {device}: {str(error).splitlines()[0]}") from error
