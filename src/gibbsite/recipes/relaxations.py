"""Continuous relaxations against Gibbs-With-Gradients on random RBMs (GWG paper, appendix C.2)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import final

import torch
from torch import Tensor

from ..diagnose import hamming_similarity, mmd
from ..models import RBM
from ..random import Source, generator
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..sample import MH, BlockGibbs, DiscreteSVGD, Informed, RelaxedHMC, RelaxedMALA, trace
from ..sample.kernel import Kernel
from .recipe import Advance, Bars, Recipe, at_least, finished

_TEMPERATURES = (0.5, 1.0, 2.0)
_FLOOR = "exact draws (expected)"


@final
@dataclass(frozen=True)
class Relaxations:
    """Log-MMD to ground truth of samplers that move bits through continuous relaxations, on random RBMs."""

    visible: tuple[int, ...] = (25, 50, 100, 250)
    """Visible units of the machines."""
    hidden: int = 100
    """Hidden units of each."""
    variance: float = 0.05
    """Variance of the weights, N(0, .05 I) in the paper; pass 0.0025 to read that as a deviation."""
    repeats: int = 3
    """Random machines at each size: each its own weights, ground truth and chains; at least 2."""
    steps: int = 500
    """Steps of every sampler, from uniform random bits."""
    draws: int = 100
    """Chains of each sampler, the last state of which is its sample."""
    truth: int = 500
    """Chains of block Gibbs, the last states of which are the ground truth."""
    truth_steps: int = 1000
    """Steps of those chains."""
    step_sizes: tuple[float, ...] = (0.1, 0.01, 0.001)
    """Grid of step sizes of R-MALA and R-HMC."""
    learning_rates: tuple[float, ...] = (0.01, 0.001, 0.0001)
    """Grid of Adam's learning rates of D-SVGD."""
    temperatures: tuple[float, ...] = _TEMPERATURES
    """Grid of temperatures of the relaxation, for all three."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, visible=1, hidden=1, repeats=2, steps=1, draws=2, truth=2, truth_steps=1)
        for name in ("step_sizes", "learning_rates", "temperatures"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise ValueError(f"{name}: expected positive numbers, got {getattr(self, name)}")


def grids(config: Relaxations) -> Mapping[str, Mapping[str, Kernel]]:
    """Sampler: setting: kernel. The settings are the appendix's; GWG has none."""
    moves = list(product(config.step_sizes, config.temperatures))
    rates = list(product(config.learning_rates, config.temperatures))
    return {
        "GWG": {"": MH(Informed())},
        "R-MALA": {f"step {e:g}, temperature {t:g}": RelaxedMALA(e, t) for e, t in moves},
        "R-HMC": {f"step {e:g}, temperature {t:g}": RelaxedHMC(e, 5, t) for e, t in moves},
        "D-SVGD": {f"rate {e:g}, temperature {t:g}": DiscreteSVGD(e, t) for e, t in rates},
    }


def run(config: Relaxations, directory: RunDirectory, bars: Bars) -> None:
    """Runs every setting on every machine, and records the MMD to that machine's ground truth."""
    source, table = generator(config.seed, config.device), grids(config)
    machines = generator(config.seed + 1)
    settings = sum(len(grid) for grid in table.values())
    with bars.total(len(config.visible) * config.repeats * (config.truth_steps + settings * config.steps)) as part:
        for visible, repeat in product(config.visible, range(config.repeats)):
            model = RBM.random(visible, config.hidden, variance=config.variance, seed=machines).to(config.device)
            where = f"{visible} visible, machine {repeat + 1}"
            advance = part(f"ground truth, {where}")
            truth = last_states(BlockGibbs(), model, config.truth, config.truth_steps, source, advance)
            row = {"visible": visible, "repeat": repeat}
            directory.record(row | {"kind": "floor", "mmd": floor(truth, config.draws)})
            for name, grid in table.items():
                for setting, kernel in grid.items():
                    x = last_states(kernel, model, config.draws, config.steps, source, part(f"{name}, {where}"))
                    result = {"kind": "mmd", "sampler": name, "setting": setting, "mmd": mmd(x, truth).item()}
                    directory.record(row | result)


def last_states(kernel: Kernel, model: RBM, chains: int, steps: int, source: Source, advance: Advance) -> Tensor:
    """The last states of chains from uniform random bits."""
    x = model.space.uniform().sample(chains, seed=source)
    options = {"steps": steps, "thin": steps, "seed": source, "progress": advance}
    return finished(trace(kernel, model, x, statistic=lambda x: x, **options)).values[-1]


def floor(truth: Tensor, draws: int) -> float:
    """The squared MMD expected of `draws` exact draws: (1 - E k(x, x')) (1 / draws + 1 / truth), x, x' independent.

    k(x, x) = 1 and the MMD takes all pairs, so that the pairs of a draw with itself are what is left.
    """
    n = len(truth)
    within = (hamming_similarity(truth, truth).sum().item() - n) / (n * (n - 1))
    return (1 - within) * (1 / draws + 1 / n)


def best(results: Sequence[Result]) -> dict[tuple[str, int], Result]:
    """For each sampler and size, the setting with the lowest mean log-MMD: its mean, standard error and name."""
    logs: dict[tuple[str, int, str], list[float]] = {}
    for row in results:
        if row["kind"] == "mmd":
            logs.setdefault((row["sampler"], row["visible"], row["setting"]), []).append(math.log(max(row["mmd"], 1e-300)))
    chosen: dict[tuple[str, int], Result] = {}
    for (sampler, visible, setting), values in logs.items():
        tensor = torch.tensor(values, dtype=torch.float64)
        mean, repeats = tensor.mean().item(), len(values)
        error = (tensor.std() / math.sqrt(repeats)).item() if repeats > 1 else math.nan
        if (sampler, visible) not in chosen or mean < chosen[sampler, visible]["mean"]:
            chosen[sampler, visible] = {"mean": mean, "error": error, "setting": setting, "repeats": repeats}
    return chosen


def _floors(results: Sequence[Result]) -> dict[int, float]:
    sizes: dict[int, list[float]] = {}
    for row in results:
        if row["kind"] == "floor":
            sizes.setdefault(row["visible"], []).append(math.log(row["mmd"]))
    return {visible: sum(values) / len(values) for visible, values in sizes.items()}


def findings(config: Relaxations, results: Sequence[Result]) -> dict[str, float]:
    """GWG's mean squared MMD over that expected of exact draws, and each relaxation's best log-MMD above GWG's."""
    found = {}
    for visible in dict.fromkeys(row["visible"] for row in results if "visible" in row):
        rows = [row for row in results if row.get("visible") == visible]
        expected = {row["repeat"]: row["mmd"] for row in rows if row["kind"] == "floor"}
        ratios = [row["mmd"] / expected[row["repeat"]] for row in rows if row.get("sampler") == "GWG"]
        if ratios:
            found[f"gwg_mmd_over_exact_{visible}"] = sum(ratios) / len(ratios)
    chosen = best(results)
    for (sampler, visible), row in chosen.items():
        if sampler != "GWG":
            key = f"{sampler.lower().replace('-', '_')}_minus_gwg_log_mmd_{visible}"
            found[key] = row["mean"] - chosen["GWG", visible]["mean"]
    return found


def _figure(results: Sequence[Result]) -> Picture:
    chosen, floors = best(results), _floors(results)
    lines = {}
    for sampler in dict.fromkeys(name for name, _ in chosen):
        rows = {visible: row for (name, visible), row in chosen.items() if name == sampler}
        lines[sampler] = plots.Line(list(rows), [r["mean"] for r in rows.values()], [r["error"] for r in rows.values()])
    curve = {_FLOOR: plots.Line(list(floors), list(floors.values()))}
    figure = plots.panels([plots.Panel("visible units", "log MMD", lines, curves=curve, log_x=True)], height=3.8)
    figure.set_size_inches(7.4, 4.4)
    caption = (
        "The setting of each sampler with the lowest mean, chosen after the fact as in the paper; mean and one standard "
        "error over machines. Dashed: what draws from the model itself would give, since two finite samples always differ."
    )
    return Picture(
        figure, caption, "Log-MMD against visible units: GWG near the floor of exact draws, relaxations above it."
    )


def _table(results: Sequence[Result]) -> Table:
    rows = [
        [str(visible), sampler, number(row["mean"], row["error"]), row["setting"] or "none", str(row["repeats"])]
        for (sampler, visible), row in best(results).items()
    ]
    columns = ("visible", "sampler", "log MMD", "best setting", "machines")
    return Table(columns, rows, "Mean over machines and its standard error, of the best setting of each sampler.")


def page(config: Relaxations, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    chosen = best(results)
    sizes = sorted({visible for _, visible in chosen})
    lead = "No sampler was finished."
    if chosen:
        wins = sum(
            all(chosen["GWG", v]["mean"] < row["mean"] for (name, w), row in chosen.items() if w == v and name != "GWG")
            for v in sizes
            if ("GWG", v) in chosen
        )
        lead = f"Gibbs-With-Gradients has the lowest MMD to the ground truth at {wins} of {len(sizes)} sizes."
    about = Text(
        f"Random RBMs with {config.hidden} hidden units, W ~ N(0, {config.variance:g} I) (a variance), b, c ~ N(0, I). "
        f"{config.draws} chains of each sampler run for {config.steps} steps from random bits; the squared MMD, with "
        f"the exponential average Hamming kernel over all pairs, is taken between their last states and those of "
        f"{config.truth} chains of block Gibbs after {config.truth_steps} steps. Settings searched: "
        f"{len(config.step_sizes) * len(config.temperatures)} of R-MALA, as many of R-HMC (5 leapfrog steps), and "
        f"{len(config.learning_rates) * len(config.temperatures)} of D-SVGD. D-SVGD is an optimiser of a set of particles: "
        "it has no stationary law."
    )
    blocks: list[Text | Picture | Table] = [about]
    if chosen:
        blocks += [_figure(results), _table(results)]
    return Page("Relaxations against Gibbs-With-Gradients", lead, [Section("GWG paper, appendix C.2", blocks)])


_LAPTOP = Relaxations()
_SMALL = replace(_LAPTOP, visible=(12,), hidden=8, repeats=6, steps=200, draws=50, truth=200, truth_steps=100)
RECIPE = Recipe(
    figure="GWG paper, appendix C.2: figure 2, log-MMD against dimension",
    summary="GWG, R-MALA, R-HMC and D-SVGD on random RBMs, by MMD to block Gibbs",
    presets={
        "smoke": replace(_SMALL, step_sizes=(0.1,), learning_rates=(0.01,), temperatures=(1.0,)),
        "laptop": _LAPTOP,
        "paper": replace(_LAPTOP, visible=(25, 50, 100, 250, 500, 1000), repeats=5, steps=2000, truth_steps=10_000),
    },
    run=run,
    findings=findings,
    page=page,
)
