"""The report of `rbm-digits`: learning curves, log-likelihood, samples, filters, and how the chains mixed."""

import math
from typing import Any

from torch import Tensor

from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MISSING, Block


def page(config: Any, directory: RunDirectory) -> Page:
    """The report, of all that was recorded so far."""
    results = directory.results()
    rows = {row["kind"]: row for row in results if "kind" in row}
    sections = [
        Section("Log-likelihood", _likelihood(config, results, rows)),
        Section("What it has learned", _pictures({**directory.samples("model"), **directory.samples("chains")})),
        Section("How the chains mixed", _chains(config, rows["chains"])) if "chains" in rows else None,
        Section("Go on from here", [_commands(directory)]) if directory.model_path.exists() else None,
    ]
    return Page("Handwritten digits, learned and measured", _lead(config, rows), [s for s in sections if s and s.blocks])


def _lead(config: Any, rows: dict[str, Result]) -> str:
    if "log_z" not in rows:
        return "The machine was not yet learned to the end."
    value, _, lower, upper = rows["log_z"]["test"]
    gain = value - rows["independent"]["test"]
    trust = "" if rows["log_z"]["trusted"] else " This bracket is not to be trusted; the table says why."
    return (
        f"A restricted Boltzmann machine with {config.hidden} hidden units gives a test image {number(value)} nats on "
        f"average, between {number(lower)} and {number(upper)}: {gain:.2f} more than independent pixels do.{trust}"
    )


def _likelihood(config: Any, results: list[Result], rows: dict[str, Result]) -> list[Block]:
    blocks: list[Block] = []
    if "independent" in rows:
        images = f"{rows['independent']['images']} training and {rows['independent']['test_images']} test images"
        blocks.append(Text(
            f"Scikit-learn's {images} of 8 x 8 pixels, made black and white by drawing each pixel with its grey level as "
            "the probability. The machine's probabilities are known up to a constant, Z. Annealing from independent pixels "
            "to the machine bounds log Z from below, and the way back, from the machine's samples, bounds it from above; "
            "so the log-likelihood lies between two ends."
        ))  # fmt: skip
        blocks.append(_table(config, rows))
    looks = [row for row in results if row.get("kind") == "look"]
    steps = [row for row in results if "kind" not in row and "gap" in row]
    if looks or steps:
        blocks.append(_curves(looks, steps, rows))
    return blocks


def _table(config: Any, rows: dict[str, Result]) -> Table:
    pixels = rows["independent"]
    cells = [
        ["every image as likely", *[number(-64 * math.log(2))] * 2, MISSING, "exact"],
        ["independent pixels", number(pixels["test"]), number(pixels["train"]), MISSING, "exact"],
    ]
    if (last := rows.get("log_z")) is not None:
        value, error, lower, upper = last["test"]
        ends = f"{number(lower)} to {number(upper)}"
        cells.append([f"RBM, {config.hidden} hidden units", number(value, error), number(*last["train"][:2]), ends,
                      "trusted" if last["trusted"] else last["why"]])  # fmt: skip
        if last["exact"] is not None:
            test, train = (last[part][0] + last["log_z"]["value"] - last["exact"] for part in ("test", "train"))
            cells.append(["the same, log Z summed", number(test), number(train), MISSING, "exact"])
    caption = (
        "Mean log p(x) of an image in nats; higher is better. The ends are those of the test images, and include three "
        "standard errors of log Z on both sides; the value joins both directions by Bennett's acceptance ratio."
    )
    if last is not None:
        over = last["gain_deviation"] / pixels["test_images"] ** 0.5
        gain = number(last["test"][0] - pixels["test"], over)
        caption += f" Over independent pixels the machine gains {gain} nats, the error being that of other test images."
    return Table(("model", "test", "training", "ends", "bracket"), cells, caption)


def _curves(looks: list[Result], steps: list[Result], rows: dict[str, Result]) -> Picture:
    at = [row["updates"] for row in looks]
    lines = {
        {"test": "test images", "train": "training images"}[part]: plots.Line(
            at, [row[part][0] for row in looks], [abs(row[part][3] - row[part][2]) / 2 for row in looks]
        )
        for part in ("test", "train")
    }
    level = {}
    if looks and "independent" in rows:
        level = {"independent pixels, test": plots.Line([at[0], at[-1]], [rows["independent"]["test"]] * 2)}
    gap = {"data minus chains": plots.Line([row["step"] for row in steps], [-row["gap"] for row in steps])}
    panels = [
        plots.Panel("updates", "nats an image", lines, "Log-likelihood", curves=level),
        plots.Panel("updates", "mean U, data minus chains", {}, "What the gradient follows", curves=gap),
    ]
    caption = (
        "Left: mean log-likelihood of the averaged weights, each bracketed; bars are half the distance of the ends. "
        "Right: mean U of the data minus that of the persistent chains, which is near 0 when the chains look like data to "
        "the model."
    )
    return Picture(plots.panels(panels), caption, "Log-likelihood rising over updates, and the gap of U falling to zero.")


def _pictures(kept: dict[str, Tensor]) -> list[Block]:
    blocks: list[Block] = []
    if "samples" in kept:
        pair = {"Test images": kept["data"], "Samples": kept["samples"]}
        caption = "Left: data. Right: the last states of separate chains that started from independent pixels."
        blocks.append(Picture(plots.images(pair), caption, "Images of digits beside samples of the machine."))
    if "probabilities" in kept:
        pair = {"Test images in grey": kept["grey"], "Samples, as probabilities": kept["probabilities"]}
        caption = "The same before pixels are drawn: grey levels, and p(pixel | hidden units) with the units drawn once."
        blocks.append(Picture(plots.images(pair), caption, "Grey images of digits beside probabilities of pixels."))
    if "filters" in kept:
        caption = "Weights from the pixels to the hidden units that have the largest; blue is positive, brown negative."
        filters = plots.images({"Filters": kept["filters"]}, signed=True, width=4.6)
        blocks.append(Picture(filters, caption, "Filters of hidden units: strokes and blobs."))
    return blocks


def _chains(config: Any, row: Result) -> list[Block]:
    names = ("U", "pixels that are on")
    total, apart = config.walkers * config.draws, f"{config.thin} sweep{'s' if config.thin > 1 else ''}"
    cells = [[name, number(row[name]["mean"]), f"{row[name]['rhat']:.3f}", f"{row[name]['ess']:.0f}"] for name in names]
    caption = (
        f"{config.walkers} chains of block Gibbs, {config.draws} states of each, {apart} apart, after as many that were "
        f"thrown away: {total} states in {row['seconds']:.1f} s. R-hat near 1 (below 1.01) says that chains from separate "
        "starts agree; ESS is how many independent states would tell the mean as well."
    )
    figure = plots.autocorrelation({name: row[name]["autocorrelation"] for name in names}, x="states apart")
    note = f"Autocorrelation; each state is {apart} after the one before."
    return [
        Table(("of each state", "mean", "R-hat", "ESS"), cells, caption),
        Picture(figure, note, "Autocorrelation of U and of the number of pixels that are on, falling to zero."),
    ]


def _commands(directory: RunDirectory) -> Table:
    cells = [
        [f"gibbsite sample {directory.path} -n 64", "draw more images, as arrays and as a picture"],
        [f"gibbsite score {directory.path} IMAGES.npy", "U(x) and the log-likelihood of your own images of 64 bits"],
        [f"gibbsite logz {directory.path} --temperatures 20000", "bring the two ends closer together"],
        ["gibbsite run rbm-digits --help", "all that can be changed, such as --hidden and --updates"],
    ]
    return Table(("command", "what it does"), cells, "What can be done with this run.")
