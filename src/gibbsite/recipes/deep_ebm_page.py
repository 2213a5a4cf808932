"""The report of deep-ebm: its likelihood from both sides as temperatures grow, how learning went, samples beside data."""

from collections.abc import Sequence

from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MINUS
from .deep_ebm_images import DeepEBM

_TITLES = {"mnist": "MNIST digits", "frey_faces": "Frey faces", "digits": "small digits", "grey_digits": "small grey digits"}
_POINTS = 30  # of a curve, each with its marker


def _of(results: Sequence[Result], kind: str) -> list[Result]:
    return [row for row in results if row.get("kind") == kind]


def brackets(results: Sequence[Result]) -> list[Result]:
    """The estimates, by their number of temperatures."""
    return sorted(_of(results, "bracket"), key=lambda row: row["temperatures"])


def _gap(row: Result) -> float:
    """How far the ends are apart; infinite where one was not finite."""
    return float("inf") if None in (row["upper"], row["lower"]) else row["upper"] - row["lower"]


def findings(config: DeepEBM, results: Sequence[Result]) -> dict[str, float]:
    """The log-likelihood with the most temperatures, how far its ends are apart, whether it is trusted, and what it is above
    that of independent pixels; the error in standard errors, where the states can be enumerated.
    """
    rows, about = brackets(results), _of(results, "learned")
    if not rows or not about or rows[-1]["value"] is None:
        return {}
    last = rows[-1]
    found = {"test_log_likelihood": last["value"], "its_ends_apart": _gap(last), "trusted": float(last["trusted"])}
    found["above_independent_pixels"] = last["value"] - about[0]["base"]
    if (truth := last.get("exact")) is not None:
        found["exact_above_independent_pixels"] = truth - about[0]["base"]
        found["error_z"] = (last["value"] - truth) / last["stderr"]
    return found


def _likelihood(rows: Sequence[Result]) -> Picture:
    """The shape of figure 14, and how the ends come together."""

    def line(rows: Sequence[Result], name: str) -> plots.Line:
        own = [row for row in rows if row[name] is not None]
        return plots.Line([row["temperatures"] for row in own], [row[name] for row in own])

    ends = {"at most (AIS)": line(rows, "upper"), "at least (reverse AIS)": line(rows, "lower")}
    joined = {
        f"both joined, {words}": line(own, "value")
        for words, own in (
            ("trusted", [row for row in rows if row["trusted"]]),
            ("NOT trusted", [row for row in rows if not row["trusted"]]),
        )
        if own
    }
    apart = [row for row in rows if 0 < _gap(row) < float("inf")]
    gap = plots.Line([row["temperatures"] for row in apart], [_gap(row) for row in apart])
    curves = {}
    if rows[-1].get("exact") is not None:
        span = [rows[0]["temperatures"], rows[-1]["temperatures"]]
        curves = {"exact, by enumeration": plots.Line(span, [rows[-1]["exact"]] * 2)}
    panels = [
        plots.Panel("temperatures", "nats an image", ends, "Test log-likelihood", joined, curves, log_x=True),
        plots.Panel("temperatures", "nats", {"between the ends": gap}, "How far apart", log_x=True, log_y=bool(apart)),
    ]
    note = (
        "The ends lie three standard errors beyond what AIS from the base (at most) and reverse AIS from long runs of the "
        "model (at least) saw; they come together as temperatures grow. The paper shows the first alone. "
        "Where an estimate is not trusted, ends that are close together say nothing."
    )
    return Picture(plots.panels(panels), note, "Log-likelihood from both sides against the number of temperatures.")


def _estimates(rows: Sequence[Result]) -> list[Table | Text]:
    cells = [
        [
            f"{row['temperatures']}", number(row["value"], row["stderr"]), number(row["lower"]), number(row["upper"]),
            number(row["train"]), f"{row['ess'] or 0:.1f} of {row['n']}", f"{row['seconds']:.0f}",
            "yes" if row["trusted"] else "NO",
        ]
        for row in rows
    ]  # fmt: skip
    columns = ("temperatures", "test", "at least", "at most", "training", "ESS", "CPU seconds", "trusted")
    caption = (
        "Mean log-likelihood in nats an image, of the test images and of as many training images. The ESS is that of the "
        "worse direction; one far below the number of chains says that a few of them carry the estimate."
    )
    doubts = [Text(f"With {row['temperatures']} temperatures: NOT trusted: {row['why']}.") for row in rows if row["why"]]
    return [Table(columns, cells, caption), *doubts]


def _learning(results: Sequence[Result]) -> list[Picture]:
    rows = [row for row in results if "step" in row and "kind" not in row and "event" not in row]
    width = -(-len(rows) // _POINTS)
    parts = [rows[first : first + width] for first in range(0, len(rows), max(1, width))]
    if not parts:
        return []
    lines = {
        name: plots.Line([part[-1]["step"] for part in parts], [sum(r[name] for r in part) / len(part) for part in parts])
        for name in ("gap", "acceptance")
    }
    panels = [
        plots.Panel("update", "nats", {"": lines["gap"]}, "Mean U of the chains minus that of the data"),
        plots.Panel("update", "accepted", {"": lines["acceptance"]}, "Acceptance of the chains' moves"),
    ]
    note = "Each point is a mean over many updates. A gap that leaves 0 for good is of a sampler left behind."
    return [Picture(plots.panels(panels, height=2.6), note, "The gap and the acceptance rate while learning.")]


def _images(config: DeepEBM, directory: RunDirectory) -> list[Picture]:
    kept, drawn = directory.samples("images"), directory.samples("annealed")
    shown = {"test images": kept.get("data"), "annealed samples": drawn.get("x"), "replay buffer": kept.get("buffer")}
    states = {name: images.double() for name, images in shown.items() if images is not None}
    if not states:
        return []
    low, high = states["test images"].min(), states["test images"].max()
    ink = {name: ((images - low) / (high - low)).clamp(0, 1) for name, images in states.items()}
    photographs = config.data == "frey_faces"  # whose high levels are light
    rows = {name: (1 - values if photographs else values).numpy() for name, values in ink.items()}
    note = (
        f"Annealed samples are of the averaged weights, by chains from the base over {max(config.temperatures)} "
        "temperatures; those of the replay buffer were moved while the weights changed."
    )
    return [Picture(plots.images(rows), note, "Test images beside annealed samples and the replay buffer.")]


def _setting(config: DeepEBM, about: Result) -> Text:
    seconds = "" if about["seconds"] is None else f" Learning took {about['seconds']:.0f} CPU seconds."
    smaller = "" if config.shrink == (1, 1) else f", {config.shrink[0]} x {config.shrink[1]} pixels of the original averaged"
    annealing = "Annealed chains make GWG steps."
    if config.moves > 1:
        annealing = f"Annealed chains change {config.moves} pixels a step (path-auxiliary moves, one gradient each)."
    values = "bits" if about["states"] == 2 else f"{about['states']} grey levels"
    return Text(
        f"{about['train']} training and {about['test']} test images of {about['sites']} pixels in {values}{smaller}. "
        f"U = log q + V: q independent pixels fitted to the training images (test log-likelihood {number(about['base'])}), "
        f"V a residual network of {about['weights']} weights. PCD with {about['steps']} steps of {config.sampler} an "
        f"update, {config.slots} states in the replay buffer, batches of {config.batch}, {config.updates} updates of Adam "
        f"with rate {config.rate:g} after {config.warmup} of warm-up; evaluated with a moving average of the weights "
        f"({config.average:g}).{seconds} {annealing} Likelihoods of images made smaller, or in fewer levels, cannot be "
        "compared with those of the originals."
    )


def page(config: DeepEBM, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    rows, about, found = brackets(results), _of(results, "learned"), findings(config, results)
    lead = "Learning diverged." if _of(results, "diverged") else "No estimate was finished."
    if found:
        last = rows[-1]
        trust = "trusted" if last["trusted"] else f"NOT trusted: {last['why']}"
        lead = (
            f"Test log-likelihood {number(last['value'], last['stderr'])} nats an image, between {number(last['lower'])} "
            f"and {number(last['upper'])} ({last['temperatures']} temperatures; {trust}), "
            f"{found['above_independent_pixels']:+.1f} against independent pixels."
        ).replace(" -", f" {MINUS}")
    blocks: list[Text | Picture | Table] = [_setting(config, row) for row in about[:1]]
    blocks += [Text(f"Learning diverged, at {row['why']}") for row in _of(results, "diverged")]
    if rows:
        blocks += [_likelihood(rows), *_estimates(rows)]
    blocks += [*_images(config, directory), *_learning(results)]
    return Page(f"Deep EBM of {_TITLES[config.data]}", lead, [Section("GWG paper, appendix I", blocks)])
