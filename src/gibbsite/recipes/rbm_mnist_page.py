"""What `rbm-mnist` found, and its report: log-likelihood, filters and samples, and how fast samplers come near the truth."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MISSING, Block

_PARTS = {"test": "test images", "train": "training images"}
_FLOOR = "exact draws (expected)"


def _kinds(results: Sequence[Result]) -> dict[str, Result]:
    return {row["kind"]: row for row in results if "kind" in row}


def _of(results: Sequence[Result], kind: str) -> list[Result]:
    return [row for row in results if row.get("kind") == kind]


def findings(config: Any, results: Sequence[Result]) -> dict[str, float]:
    """The test log-likelihood with its ends, how many standard errors log Z is off where it is known, the CPU minutes of
    learning and bracketing, each sampler's last squared MMD over that of exact draws, and its ln above Gibbs's.
    """
    rows, found = _kinds(results), dict[str, float]()
    if (last := rows.get("bracket")) is not None:
        value, _, lower, upper = last["test"]
        found |= {"test_log_likelihood": value, "test_at_least": lower, "ends_apart": upper - lower}
        found["trusted"] = float(last["log_z"]["trusted"])
        seconds = sum(row["learning"] for row in _of(results, "look")) + last["seconds"]
        found["cpu_minutes_to_the_bracket"] = seconds / 60
        if last["exact"] is not None:
            found["log_z_off_by_errors"] = (last["log_z"]["value"] - last["exact"]) / last["log_z"]["stderr"]
            found["test_log_likelihood_exactly"] = value + last["log_z"]["value"] - last["exact"]
    ends = {row["sampler"]: row["mmd"][-1] for row in _of(results, "mmd")}
    for name, end in ends.items():
        key = name.lower().replace(" ", "_").replace("-", "_")
        found[f"{key}_mmd_over_exact"] = end / rows["floor"]["mmd"]
        if name != "Gibbs" and "Gibbs" in ends:
            found[f"{key}_minus_gibbs_log_mmd"] = _log(end) - _log(ends["Gibbs"])
    return found


def page(config: Any, directory: RunDirectory) -> Page:
    """The report, of all that was recorded so far."""
    results, rows = directory.results(), _kinds(directory.results())
    pictures = {**directory.samples("images"), **directory.samples("truth")}
    sections = [
        Section("Log-likelihood", [*_likelihood(config, results, rows), *_curves(results, rows)]),
        Section("What it has learned", _pictures(pictures)),
        Section("GWG paper, appendix E", _approach(config, results, rows)),
    ]
    return Page("An RBM of handwritten digits", _lead(config, rows), [section for section in sections if section.blocks])


def _lead(config: Any, rows: Mapping[str, Result]) -> str:
    if "bracket" not in rows:
        return "The machine was not yet learned to the end."
    value, _, lower, upper = rows["bracket"]["test"]
    trust = "" if rows["bracket"]["log_z"]["trusted"] else " The bracket is not to be trusted; the table says why."
    return (
        f"{config.hidden} hidden units give a test image {number(value)} nats on average, at least {number(lower)} and at "
        f"most {number(upper)}.{trust}"
    )


def _likelihood(config: Any, results: Sequence[Result], rows: Mapping[str, Result]) -> list[Block]:
    if "learned" not in rows:
        return []
    counts, alone = rows["learned"]["images"], rows["learned"]["alone"]
    about = Text(
        f"{counts[0]:,} training and {counts[1]:,} test images, each pixel drawn with its grey level as the probability "
        "(Salakhutdinov and Murray, 2008): anew for each mini-batch, once for whatever a log-likelihood is of. "
        f"Persistent contrastive divergence: {config.batch} chains make {config.steps} sweeps of block Gibbs before each of "
        f"{config.updates:,} updates, by SGD on the centred gradient with a rate that falls from {config.rate:g} to 0 in a "
        f"straight line; what is kept and evaluated is the moving average of the weights, of decay {config.average:g}. "
        "Annealing from independent pixels bounds log Z from below, the way back, from the machine's samples, from above."
    )
    cells = [["independent pixels", number(alone["test"]), number(alone["train"]), MISSING, "exact", MISSING]]
    if (last := rows.get("bracket")) is not None:
        value, error, lower, upper = last["test"]
        seconds = sum(row["learning"] for row in _of(results, "look"))
        trust = "trusted" if last["log_z"]["trusted"] else f"not trusted: {last['log_z']['why']}"
        cells.append([f"RBM, {config.hidden} hidden units", number(value, error), number(*last["train"][:2]),
                      f"{number(lower)} to {number(upper)}", trust,
                      f"{seconds / 60:.1f} and {last['seconds'] / 60:.1f}"])  # fmt: skip
        if last["exact"] is not None:
            off = last["log_z"]["value"] - last["exact"]
            known = [number(last[part][0] + off) for part in ("test", "train")]
            cells.append(["the same, log Z summed", *known, MISSING, "exact", MISSING])
    caption = (
        "Mean log p(x) of an image in nats; higher is better. The ends are those of the test images and include three "
        "standard errors of log Z; the value joins both directions by Bennett's acceptance ratio. Minutes are of one CPU, "
        "to learn and to bracket."
    )
    return [about, Table(("model", "test", "training", "ends", "bracket", "CPU minutes"), cells, caption)]


def _curves(results: Sequence[Result], rows: Mapping[str, Result]) -> list[Block]:
    looks = _of(results, "look")
    steps = [row for row in results if "kind" not in row and "gap" in row]
    if not looks or not steps:
        return []
    at = [row["updates"] for row in looks]
    lines = {
        name: plots.Line(at, [row[part][0] for row in looks], [abs(row[part][3] - row[part][2]) / 2 for row in looks])
        for part, name in _PARTS.items()
    }
    gap = {"data minus chains": plots.Line([row["step"] for row in steps], [-row["gap"] for row in steps])}
    panels = [
        plots.Panel("updates", "nats an image", lines, "Log-likelihood"),
        plots.Panel("updates", "mean U, data minus chains", {}, "What the gradient follows", curves=gap),
    ]
    caption = (
        "Left: mean log-likelihood of the averaged weights; bars are half the distance of the bracket's ends. Right: mean U "
        "of the data minus that of the persistent chains: near 0 where the chains look like data to the machine."
    )
    return [Picture(plots.panels(panels), caption, "Log-likelihood rising over updates, and the gap of U falling to zero.")]


def _pictures(kept: Mapping[str, Tensor]) -> list[Block]:
    blocks: list[Block] = []
    if "filters" not in kept:
        return blocks
    pair = {"Test images": kept["data"], "Persistent chains": kept["chains"]}
    if "x" in kept:
        pair["Long block Gibbs"] = kept["x"][: len(kept["data"])].view(-1, *kept["data"].shape[1:])
    caption = "Data, the chains that learning ended with, and chains of block Gibbs from uniform random bits."
    blocks.append(Picture(plots.images(pair), caption, "Images of digits beside samples of the machine."))
    filters = plots.images({"Filters": kept["filters"]}, signed=True, width=4.6)
    caption = "Weights from the pixels to the hidden units that have the largest; blue is positive, brown negative."
    return [*blocks, Picture(filters, caption, "Filters of hidden units: strokes and blobs.")]


def _approach(config: Any, results: Sequence[Result], rows: Mapping[str, Result]) -> list[Block]:
    runs = _of(results, "mmd")
    if not runs:
        return []
    expected = rows["floor"]["mmd"]
    about = Text(
        f"{config.draws} chains of each sampler from uniform random bits, against the last states of {config.truth} chains "
        f"of block Gibbs after {config.truth_steps:,} sweeps, from random bits too: the squared MMD with the exponential "
        "average Hamming kernel, over all pairs. A step of Gibbs redraws one pixel; the Hamming ball sampler redraws "
        f"{config.ball} pixels in a row within radius 1; GWG-3 and GWG-5 propose 3 and 5 flips at once. The paper's machine "
        "was trained for one epoch by CD-10 and Adam; this one for longer, by PCD."
    )
    lines = {row["sampler"]: plots.Line(row["steps"][1:], [_log(gap) for gap in row["mmd"][1:]]) for row in runs}
    level = {_FLOOR: plots.Line([1, config.moves], [_log(expected)] * 2)}
    figure = plots.panels([plots.Panel("steps", "log MMD", lines, curves=level, log_x=True)], height=3.8)
    figure.set_size_inches(7.4, 4.4)
    note = "Lower is better. Dashed: what draws from the machine itself would give, since two finite samples always differ."
    cells = [
        [row["sampler"], number(_log(row["mmd"][-1])), f"{row['mmd'][-1] / expected:.3g}", f"{row['acceptance']:.3f}",
         f"{row['seconds']:.1f}"]
        for row in runs
    ]  # fmt: skip
    columns = ("sampler", "log MMD at the end", "MMD over exact draws'", "acceptance", "CPU seconds")
    return [
        about,
        Picture(figure, note, "Log-MMD to long block Gibbs against steps, a line for each sampler."),
        Table(columns, cells, f"After {config.moves:,} steps; CPU seconds are those of all of them."),
    ]


def _log(value: float) -> float:
    return math.log(max(value, 1e-300))
