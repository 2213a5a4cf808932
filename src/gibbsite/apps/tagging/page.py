"""The report of a tagger's run: scores, learning curves, labels taken for others, the errors it was surest of."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...report import Page, Picture, Section, Table, Text, number, plots
from ...report.directory import Result
from ...report.page import MISSING

_MOST = 24  # labels in the picture
_WIDTH = 24  # characters on either side of a wrong word


def page(config: Mapping[str, Any], results: Sequence[Result]) -> Page:
    """The page of what was recorded, also of a run that was cut short."""
    parameters = config["parameters"]
    parts = [row for row in results if row.get("kind") == "scores"]
    epochs = [row for row in results if "epoch" in row]
    sections = [_scores(parts)] if parts else []
    sections += [_curves(epochs)] if epochs else []
    if parts:
        last = parts[-1]
        sections += [_labels(last), _worst(last)]
    title = f"Tagging {parameters['column']} with {parameters['model']}"
    return Page(title, _lead(parts, results), sections)


def _lead(parts: Sequence[Result], results: Sequence[Result]) -> str:
    if not parts:
        if any(row.get("kind") == "finished" for row in results):
            return "Trained; --dev and --test name what to score."
        return "The run was stopped before anything was scored."
    last = parts[-1]
    scores, name = last["scores"], last["part"]
    right = f"{_percent(scores['accuracy'])} of {scores['tokens']:,} words of {name} have the right label"
    if scores["spans"]:
        return f"F1 of spans on {name}: {_percent(scores['spans']['f1'])}; {right}."
    return f"{right}."


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{100 * value:.2f} %"


def _scores(parts: Sequence[Result]) -> Section:
    spans = any(row["scores"]["spans"] for row in parts)
    columns = ["", "words", "right", "sentences", "right", *(["precision", "recall", "F1"] if spans else []), "ECE", "nats"]
    rows = []
    for part in parts:
        s = part["scores"]
        of_spans = [_percent(s["spans"][key]) for key in ("precision", "recall", "f1")] if s["spans"] else [MISSING] * 3
        rows.append([part["part"], f"{s['tokens']}", _percent(s["accuracy"]), f"{s['sentences']}", _percent(s["whole"]),
                     *(of_spans if spans else []), number(s["calibration"]), number(s["nats"])])  # fmt: skip
    said = (
        "ECE: the classwise calibration error, 20 bins (EBM-SLP, eq. 5.19), 0 where probabilities mean what they say. "
        "Nats: -log p of all right labels, a word."
    )
    return Section("Scores", [Table(columns, rows, said)])


def _curves(epochs: Sequence[Result]) -> Section:
    x = [row["epoch"] for row in epochs]
    drawn = [plots.Panel("epoch", "nats a sentence", {"train": plots.Line(x, [row["loss"] for row in epochs])})]
    dev = [row["dev"] for row in epochs if row.get("dev") is not None]
    if len(dev) == len(x):
        drawn.append(plots.Panel("epoch", "score", {"dev": plots.Line(x, dev)}))
    picture = plots.panels(drawn, height=2.6)
    said = (
        "Loss in training, as each sentence was met, before the step that it caused; and the score on dev by which the "
        "epoch was chosen that is kept: F1 of spans where labels are spans, else the share of words with the right label."
    )
    return Section("Learning", [Picture(picture, said, "Training loss and dev score against epochs.")])


def _labels(part: Result) -> Section:
    gold, found, right, counts = Counter(), Counter(), Counter(), {}
    for a, b, count in part["confusion"]:
        gold[a] += count
        found[b] += count
        right[a] += count * (a == b)
        counts[a, b] = count
    names = sorted(gold, key=lambda name: (-gold[name], name))
    shown = names[:_MOST]
    square = [[counts.get((a, b), 0) for b in shown] for a in shown]
    rows = [
        [name, f"{gold[name]}", _percent(right[name] / found[name] if found[name] else None),
         _percent(right[name] / gold[name]), _mistaken(name, counts)]
        for name in names
    ]  # fmt: skip
    rest = f" The {len(names) - len(shown)} rarest labels are left out." if len(names) > len(shown) else ""
    said = f"How often a word of each label was given each other, in per cent of its row, on {part['part']}.{rest}"
    picture = plots.confusion(square, shown, x="given by the tagger", y="right label")
    alt = f"A square of {len(shown)} labels by {len(shown)}; most of the weight is on the diagonal if the tagger is good."
    table = Table(["label", "words", "precision", "recall", "most often taken for"], rows, "Each label, word by word.")
    return Section("Labels", [Picture(picture, said, alt), table])


def _mistaken(name: str, counts: Mapping[tuple[str, str], int]) -> str:
    wrong = {b: count for (a, b), count in counts.items() if a == name != b}
    if not wrong:
        return "none"
    other = max(wrong, key=lambda b: (wrong[b], b))
    return f"{other} ({wrong[other]})"


def _worst(part: Result) -> Section:
    if not part["worst"]:
        return Section("Worst errors", [Text("There are none.")])
    rows = [[row["gold"], row["predicted"], f"{row['probability']:.4f}", _context(row)] for row in part["worst"]]
    columns = ["right", "given", "p(given)", "where"]
    said = f"The wrong labels that were given the highest probability, on {part['part']}."
    return Section("Worst errors", [Table(columns, rows, said)])


def _context(row: Mapping[str, Any]) -> str:
    """The word in brackets among its neighbours, as much as fits a line."""
    before, word, after = row["before"][-_WIDTH:], row["word"][: 2 * _WIDTH], row["after"][:_WIDTH]
    return f"{before} [{word}] {after}".strip()
