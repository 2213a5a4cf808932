"""What a run of the speech application found, and its report: errors, curves, alignments, and what was heard for what."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..apps.speech import BLANK
from ..apps.speech.an4 import CEPSTRA
from ..apps.speech.edits import aligned
from ..report import Page, Picture, RunDirectory, Section, Table, Text, plots
from ..report.directory import Result
from ..report.page import MISSING, Block

_NAMES = {"ctc": "CTC", "ctc-crf": "CTC-CRF", "lf-mmi": "LF-MMI"}
_MOST, _EXAMPLES = 12, 8
_BANDS = 40


def findings(config: Any, results: Sequence[Result]) -> dict[str, float]:
    """The last loss of a label, the held-out and the test error rates with its ends, and the seconds of an epoch."""
    rows, found = {row["kind"]: row for row in results if "kind" in row}, dict[str, float]()
    if losses := [row["loss"] for row in results if "kind" not in row and "loss" in row]:
        found["loss_a_label"] = losses[-1]
    looks = [row for row in results if row.get("kind") == "look"]
    if looks:
        found["seconds_an_epoch"] = sum(row["seconds"] for row in looks) / len(looks)
        if looks[-1]["error"] is not None:
            found["held_out_error"] = looks[-1]["error"]
    if "tested" in rows:
        found["test_error"], found["test_error_at_least"], found["test_error_at_most"] = rows["tested"]["error"]
    return found


def page(config: Any, directory: RunDirectory) -> Page:
    """The report, of all that was recorded so far."""
    results = directory.results()
    rows = {row["kind"]: row for row in results if "kind" in row}
    sections = [
        Section("Errors", [*_errors(config, rows), *_evaluations(results)]),
        Section("Learning", _curves(results)),
        Section("What was heard when", _alignments(rows, directory.samples("shown"))),
        Section("What went wrong", _confusions(config, rows)),
    ]
    return Page("Speech recognition", _lead(config, rows), [section for section in sections if section.blocks])


def _lead(config: Any, rows: Mapping[str, Result]) -> str:
    name = _NAMES[config.loss]
    if "tested" not in rows:
        return f"A recogniser of {config.units} by {name}; it was not yet tested."
    value, lower, upper = rows["tested"]["error"]
    return (
        f"A recogniser learned by {name} gets {100 * value:.1f} % of the {config.units} of utterances it never saw wrong "
        f"(95 % interval {100 * lower:.1f} to {100 * upper:.1f} %)."
    )


def _errors(config: Any, rows: Mapping[str, Result]) -> list[Block]:
    if "corpus" not in rows:
        return []
    train, held_out, test = rows["corpus"]["parts"]
    about = Text(
        f"{rows['corpus']['name']}: {train:,} utterances to learn from, {held_out:,} held out to look at while learning, "
        f"{test:,} for testing; {len(rows['corpus']['symbols'])} {config.units}. An error is a substitution, a deletion or "
        "an insertion; the rate is errors over units said. Transcripts are those of the most probable path."
    )
    if "tested" not in rows:
        return [about]
    row = rows["tested"]
    wrong, missed, added, said = row["edits"]
    value, lower, upper = (f"{100 * part:.2f} %" for part in row["error"])
    cells = [[value, f"{lower} to {upper}", str(wrong), str(missed), str(added), f"{said:,}"]]
    columns = ("error rate", "95 % interval", "substituted", "deleted", "inserted", "units said")
    return [about, Table(columns, cells, "Test utterances; the interval is a bootstrap over utterances.")]


def _evaluations(results: Sequence[Result]) -> list[Block]:
    runs = [row for row in results if row.get("kind") == "evaluated"]
    if not runs:
        return []
    cells = [
        [row["of"], row["how"], row["what"], f"{100 * row['error'][0]:.2f} %",
         f"{100 * row['error'][1]:.2f} to {100 * row['error'][2]:.2f} %"]
        for row in runs
    ]  # fmt: skip
    return [
        Table(
            ("utterances", "decoding", "errors of", "rate", "95 % interval"), cells, "Counted by gibbsite speech evaluate."
        )
    ]


def _curves(results: Sequence[Result]) -> list[Block]:
    looks = [row for row in results if row.get("kind") == "look"]
    steps = [row for row in results if "kind" not in row and "loss" in row]
    if not steps:
        return []
    each = steps[0]["step"]
    loss = {"training": plots.Line([row["step"] / each for row in steps], [row["loss"] for row in steps])}
    heard = [row for row in looks if row["error"] is not None]
    errors = {"held out": plots.Line([row["epoch"] for row in heard], [100 * row["error"] for row in heard])}
    panels = [
        plots.Panel("epoch", "nats a label", {}, "Loss", curves=loss),
        plots.Panel("epoch", "errors, %", errors, "Held-out utterances"),
    ]
    seconds = sum(row["seconds"] for row in looks) / max(1, len(looks))
    caption = (
        "Left: the loss of the utterances that are learned from, with dropout and masks. Right: errors of the averaged "
        f"weights on held-out utterances. An epoch took {seconds:.2f} seconds."
    )
    return [Picture(plots.panels(panels), caption, "Loss falling over epochs, and errors on held-out utterances.")]


def spans(classes: Sequence[int], seconds: float) -> list[tuple[float, float, int]]:
    """Where each label lies: from its first frame on to the next label's, in seconds, without blanks.

    Example:
        >>> from gibbsite.recipes.speech_page import spans
        >>> spans([0, 3, 3, 0, 3, 1], 0.5)
        [(0.5, 1.5, 3), (2.0, 2.5, 3), (2.5, 3.0, 1)]
    """
    found = list[tuple[float, float, int]]()
    for place, (before, label) in enumerate(zip([BLANK, *classes], classes)):
        if label == BLANK:
            continue
        begin, end = place * seconds, (place + 1) * seconds
        if label == before:
            begin = found.pop()[0]
        found.append((begin, end, label))
    return found


def _alignments(rows: Mapping[str, Result], kept: Mapping[str, Tensor]) -> list[Block]:
    blocks = list[Block]()
    for place in sorted(int(key.split()[1]) for key in kept if key.startswith("features") and "tested" in rows):
        name, said, heard = rows["tested"]["said"][place]
        features, classes = kept[f"features {place}"], kept[f"classes {place}"].tolist()
        hop, symbols = rows["corpus"]["hop"], rows["corpus"]["symbols"]
        each = len(features) * hop / len(classes)
        names = [(begin, end, symbols[label - 1]) for begin, end, label in spans(classes, each)]
        figure = plots.spectrogram(_bands(features), names, hop=hop, y="mel band", title=name)
        caption = f"Said: {said}. Heard: {heard or 'nothing'}. Lines are where the best alignment of what was said begins."
        blocks.append(Picture(figure, caption, f"Features of {name} over time with the alignment of its labels."))
    return blocks


def _bands(features: Tensor) -> Tensor:
    """Energies of mel bands: cepstra, which are their cosine transform without the fine ones, are transformed back."""
    if features.shape[1] != CEPSTRA:
        return features
    band, order = torch.arange(_BANDS) + 0.5, torch.arange(CEPSTRA)
    return features @ torch.cos(math.pi * order[:, None] * band / _BANDS)


def _confusions(config: Any, rows: Mapping[str, Result]) -> list[Block]:
    if "tested" not in rows:
        return []
    cut = list if config.units == "characters" else str.split
    pairs = [(name, aligned(cut(said), cut(heard)), said, heard) for name, said, heard in rows["tested"]["said"]]
    wrong = Counter(pair for _, parts, _, _ in pairs for pair in parts if pair[0] != pair[1])
    if not wrong:
        return [Text("Nothing.")]
    most = [[str(a or MISSING), str(b or MISSING), str(times)] for (a, b), times in wrong.most_common(_MOST)]
    worst = sorted(pairs, key=lambda pair: -sum(a != b for a, b in pair[1]))[:_EXAMPLES]
    cells = [[name, said, heard or MISSING, str(sum(a != b for a, b in parts))] for name, parts, said, heard in worst]
    return [
        Table(("said", "heard", "times"), most, f"The most frequent; {MISSING} stands where nothing was said or heard."),
        Table(("utterance", "said", "heard", "errors"), cells, "The utterances with the most errors."),
    ]
