"""Effective sample size on Ising lattices: Gibbs, Hamming ball and Gibbs-With-Gradients (GWG paper, appendix F.1)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import diagnose
from ..models import Ising
from ..random import generator
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..sample import MH, Gibbs, HammingBall, Informed, Trace, trace
from ..sample.kernel import Kernel
from .recipe import Bars, Recipe, at_least, finished

CRITICAL_THETA = math.log(1 + math.sqrt(2)) / 4


@final
@dataclass(frozen=True)
class IsingSampling:
    """Effective samples of the Hamming distance to a random state, against the coupling theta of an Ising lattice."""

    sides: tuple[int, ...] = (10, 40)
    """Sites along each side of the lattices, which wrap around."""
    thetas: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
    """Couplings as the paper writes them, U = theta x'Ax with each edge counted twice; the lattice orders at 0.2203."""
    chains: int = 32
    """Independent chains: they play the paper's random seeds, and ESS is taken of each alone; at least 2."""
    steps: int = 10_000
    """Steps that are kept, of each sampler on each model."""
    warmup: int = 1000
    """Steps before those, thrown away."""
    ball: int = 10
    """Sites in a block of the Hamming ball sampler, whose radius is 1."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, sides=3, thetas=0, chains=2, steps=20, warmup=0, ball=1)


def samplers(config: IsingSampling) -> Mapping[str, Kernel]:
    """The three that the paper compares."""
    return {"Gibbs": Gibbs(), "Hamming ball": HammingBall(config.ball), "GWG": MH(Informed())}


def free_steps(sampler: str, sites: int, ball: int) -> float:
    """Steps that one effective sample takes at theta = 0, exactly: (1 + r) / (1 - r).

    There every site's spin is an eigenfunction with the same eigenvalue r = 1 - 2 p, p the probability that a step flips
    the site: 1 / (2 n) for Gibbs, 1 / n for GWG (always accepted). In the Hamming ball of b sites, chosen with probability
    b / n if b divides n, the site is flipped on exactly one of the ways to the centre and from it: 2 b / (b + 1)^2.
    """
    flip = {"Gibbs": 0.5 / sites, "GWG": 1 / sites, "Hamming ball": ball / sites * 2 * ball / (ball + 1) ** 2}[sampler]
    return (1 - flip) / flip


def ess_by_chain(values: Float[Tensor, "draws chains"]) -> list[float]:
    """The effective sample size of each chain alone; NaN for one that never moves."""
    return [diagnose.ess(values[:, c : c + 1]).item() for c in range(values.shape[1])]


def run(config: IsingSampling, directory: RunDirectory, bars: Bars) -> None:
    """Runs every sampler on every lattice and coupling, and records the ESS of each chain."""
    source = generator(config.seed, config.device)
    kernels = samplers(config)
    with bars.total(len(config.sides) * len(config.thetas) * len(kernels) * (config.steps + config.warmup)) as part:
        for side in config.sides:
            for theta in config.thetas:
                model = Ising.from_theta(side, theta=theta).to(config.device)
                for name, kernel in kernels.items():
                    x, reference = (model.space.uniform().sample(config.chains, seed=source) for _ in range(2))
                    run = trace(
                        kernel,
                        model,
                        x,
                        statistic=lambda x, other=reference: (x != other).sum(-1),
                        steps=config.steps,
                        warmup=config.warmup,
                        seed=source,
                        progress=part(f"{name}, {side} x {side}, theta {theta}"),
                    )
                    directory.record(_measure(side, theta, name, finished(run)))


def _measure(side: int, theta: float, name: str, run: Trace) -> Result:
    spent = run.cost.evaluations + run.cost.gradients
    return {"side": side, "theta": theta, "sampler": name, "ess": ess_by_chain(run.values), "seconds": run.seconds,
            "evaluations": run.cost.evaluations, "gradients": run.cost.gradients, "spent": spent,
            "acceptance": run.acceptance.mean().item()}  # fmt: skip


def moving(row: Result) -> list[float]:
    """The ESS of the chains that moved."""
    return [ess for ess in row["ess"] if ess is not None and math.isfinite(ess)]


def log_mean(row: Result) -> tuple[float, float]:
    """The mean over chains of ln ESS, and its standard error."""
    logs = torch.tensor(moving(row), dtype=torch.float64).log()
    if not len(logs):
        return math.nan, math.nan
    error = (logs.std() / math.sqrt(len(logs))).item() if len(logs) > 1 else math.nan
    return logs.mean().item(), error


def findings(config: IsingSampling, results: Sequence[Result]) -> dict[str, float]:
    """ESS over its exact value at theta = 0, sampler by sampler; and GWG's over Gibbs's at every theta."""
    found = {}
    rows = {(row["side"], row["theta"], row["sampler"]): row for row in results if "sampler" in row}
    for (side, theta, sampler), row in rows.items():
        value, _ = log_mean(row)
        label = f"{side}x{side}_theta_{theta:g}"
        if theta == 0:
            expected = config.steps / free_steps(sampler, side**2, config.ball)
            found[f"{sampler.lower().replace(' ', '_')}_ess_over_exact_{label}"] = math.exp(value) / expected
        if sampler == "GWG" and (side, theta, "Gibbs") in rows:
            found[f"gwg_over_gibbs_ess_{label}"] = math.exp(value - log_mean(rows[side, theta, "Gibbs"])[0])
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _panels(results: Sequence[Result]) -> plots.Figure:
    contents = []
    names = list(dict.fromkeys(row["sampler"] for row in results))
    for side in dict.fromkeys(row["side"] for row in results):
        for label, divisor in (("ESS of one chain", None), ("ESS per second", "seconds"), ("ESS per evaluation", "spent")):
            lines = {}
            for name in names:
                rows = [row for row in results if row["side"] == side and row["sampler"] == name and moving(row)]
                if rows:
                    lines[name] = _line(rows, divisor)
            title = f"{side} x {side}: {label}"
            contents.append(plots.Panel("theta", label, lines, title, marks={"": CRITICAL_THETA}, log_y=True))
    return plots.panels(contents, columns=3, height=3.0)


def _line(rows: Sequence[Result], divisor: str | None) -> plots.Line:
    """Mean over chains and standard error, carried through the logarithm."""
    scale = [1.0 if divisor is None else row[divisor] for row in rows]
    if divisor == "seconds":  # all chains ran in that time
        scale = [s / len(row["ess"]) for s, row in zip(scale, rows)]
    values = [(math.exp(log_mean(row)[0]) / s, log_mean(row)[1]) for row, s in zip(rows, scale)]
    return plots.Line([row["theta"] for row in rows], [v for v, _ in values], [v * e for v, e in values])


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for row in results:
        ess = moving(row)
        mean, error = log_mean(row)
        total = sum(ess)
        cells = [f"{row['side']} x {row['side']}", f"{row['theta']:g}", row["sampler"], number(mean, error)]
        cells += [f"{total / row['seconds']:.4g}", f"{total / len(row['ess']) / row['spent']:.3g}"]
        rows.append([*cells, f"{row['acceptance']:.3f}", str(len(row["ess"]) - len(ess))])
    columns = (
        "lattice",
        "theta",
        "sampler",
        "ln ESS",
        "ESS/s, all chains",
        "ESS per evaluation",
        "acceptance",
        "stuck chains",
    )
    caption = (
        "ln ESS: mean over chains and standard error. Evaluations of U are those the kernel states; a gradient counts "
        "as one. A stuck chain's statistic never moved; it has no ESS and is left out of the mean."
    )
    return Table(columns, rows, caption)


def page(config: IsingSampling, directory: RunDirectory) -> Page:
    """The report."""
    results = [row for row in directory.results() if "sampler" in row]
    ratios = {key: value for key, value in findings(config, results).items() if key.startswith("gwg_over_gibbs")}
    lead = "No pair of samplers was finished."
    if ratios:
        lead = (
            f"Effective samples of Gibbs-With-Gradients over those of single-site Gibbs, step for step: "
            f"from {min(ratios.values()):.2g} to {max(ratios.values()):.2g} times."
        )
    about = Text(
        f"The statistic is the Hamming distance to a random state. ESS is that of one chain, of {config.steps} steps; the "
        f"{config.chains} independent chains play the random seeds of the paper. The appendix does not list its couplings: "
        "those here are chosen to cross the transition."
    )
    beware = Text(
        "Above theta = 0.2203 (the vertical line) the lattice is ordered, and every one of these samplers changes few "
        "sites a step. A chain then stays in one of the two phases, and the ESS of this statistic measures how the chain "
        "rattles inside the phase it is stuck in, not how well it samples the model. Only the left of the line is a "
        "comparison of samplers."
    )
    blocks: list[Text | Picture | Table] = [about, beware]
    if results:
        alt = "ESS against theta on a logarithmic scale for three samplers, by step, by second and by evaluation."
        caption = "Mean over chains (of ln ESS) and one standard error; per second on the hardware named below."
        blocks += [Picture(_panels(results), caption, alt), _table(results)]
    return Page("Effective sample size on Ising lattices", lead, [Section("GWG paper, appendix F.1", blocks)])


_PAPER = IsingSampling(thetas=(0.0, 0.05, 0.1, 0.15, 0.2, 0.22, 0.25, 0.5), steps=100_000, warmup=10_000)
RECIPE = Recipe(
    figure="GWG paper, appendix F.1: ESS against coupling",
    summary="effective samples of Gibbs, Hamming ball and GWG on Ising lattices",
    presets={
        "smoke": replace(_PAPER, sides=(4,), thetas=(0.0, 0.15), chains=128, steps=1600, warmup=200, ball=8),
        "laptop": IsingSampling(sides=(10, 20)),
        "paper": _PAPER,
    },
    run=run,
    findings=findings,
    page=page,
)
