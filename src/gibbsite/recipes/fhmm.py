"""The posterior of a factorial hidden Markov model: log-joint against steps (GWG paper, appendix G)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from ..models import FHMM
from ..random import Source, generator
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MISSING
from ..sample import MH, BlockGibbs, Gibbs, HammingBall, Informed, trace
from ..sample.kernel import Kernel
from ..sample.moments import moments
from .recipe import Advance, Bars, Recipe, at_least, finished


@final
@dataclass(frozen=True)
class FactorialHMM:
    """Four samplers on the posterior of a random factorial hidden Markov model, against exact forward-backward."""

    length: int = 200
    """Times L of the series."""
    factors: int = 6
    """Binary chains K; the exact answer sums 2^K joint states."""
    variance: float = 0.5
    """Variance of the observations: 0.5 in the paper's text (its released code uses a deviation of 0.5, so 0.25)."""
    chains: int = 16
    """Independent Markov chains of each sampler, at least 2."""
    steps: int = 4000
    """Steps of the trace of log p(x, y), from a uniform random start."""
    averaged: int = 4000
    """Steps after those, whose mean is compared with the exact marginals."""
    block_steps: int = 100
    """Both numbers for block Gibbs, whose step redraws every site."""
    exact_draws: int = 1000
    """Exact posterior draws, whose mean log-joint is the reference line."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, length=2, factors=1, chains=2, steps=2, averaged=2, block_steps=2, exact_draws=2)
        if self.factors > 12:
            raise ValueError(f"factors: expected at most 12, since the exact answer sums 2^K states, got {self.factors}")


def samplers(config: FactorialHMM) -> Mapping[str, tuple[Kernel, int, int]]:
    """Name: kernel, steps of the trace, steps of the average. A Hamming ball is all K bits of one time."""
    factors = config.factors
    rows = [list(range(t * factors, (t + 1) * factors)) for t in range(config.length)]
    long, short = (config.steps, config.averaged), (config.block_steps, config.block_steps)
    return {
        "Gibbs": (Gibbs(), *long),
        "Hamming ball": (HammingBall(factors, blocks=rows), *long),
        "GWG": (MH(Informed()), *long),
        "block Gibbs": (BlockGibbs(), *short),
    }


def build(config: FactorialHMM, source: Source) -> FHMM:
    """The model; its parameters and series come first from the seed, so that all samplers see the same."""
    return FHMM.random(config.length, config.factors, variance=config.variance, seed=source).to(config.device)


def run(config: FactorialHMM, directory: RunDirectory, bars: Bars) -> None:
    """Draws the exact reference, then runs each sampler: a trace of U, then a mean of x."""
    model = build(config, generator(config.seed))
    source = generator(config.seed + 1, config.device)
    kernels = samplers(config)
    with bars.total(sum(steps + averaged for _, steps, averaged in kernels.values())) as part:
        part("exact forward-backward")
        exact = model.sample_exact(config.exact_draws, seed=source)
        with torch.no_grad():
            joint, marginals = model(exact).double(), model.marginals()
        error = joint.std().item() / math.sqrt(len(joint))
        directory.record({"kind": "exact", "log_joint": joint.mean().item(), "error": error, "spread": joint.std().item()})
        directory.save_samples("exact", {"marginals": marginals, "observations": model.observations})
        for name, (kernel, steps, averaged) in kernels.items():
            x = model.space.uniform().sample(config.chains, seed=source)
            row, tensors = _measure(name, kernel, model, marginals, x, steps, averaged, source, part(name))
            directory.save_samples(_file(name), tensors)
            directory.record(row)


def _file(name: str) -> str:
    return name.lower().replace(" ", "-")


def _measure(
    name: str,
    kernel: Kernel,
    model: FHMM,
    marginals: Tensor,
    x: Tensor,
    steps: int,
    averaged: int,
    source: Source,
    advance: Advance,
) -> tuple[Result, dict[str, Tensor]]:
    first = finished(trace(kernel, model, x, statistic=lambda x: x[:, 0, 0], steps=steps, seed=source, progress=advance))

    def statistic(x: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.cat((x.flatten(1).double(), model(x)[:, None].double()), 1)

    thin = max(1, averaged // 1000)
    options = {"steps": averaged, "thin": thin, "seed": source, "statistic": statistic, "progress": advance}
    then = finished(moments(kernel, model, first.state.x, **options))
    mean = then.mean[:-1].view(marginals.shape)
    errors = (mean - marginals).abs()
    row: Result = {"kind": "sampler", "sampler": name, "seconds": first.seconds, "steps": steps,
                   "log_joint": then.mean[-1].item(), "log_joint_error": then.stderr[-1].item(),
                   "marginal_error": errors.mean().item(), "worst_marginal": errors.max().item(),
                   "trace_mean": first.u.double().mean().item(),
                   "spent": first.cost.evaluations + first.cost.gradients}  # fmt: skip
    return row, {"log_joint": first.u, "mean": mean}


def findings(config: FactorialHMM, results: Sequence[Result]) -> dict[str, float]:
    """Distances of the log-joint from the exact mean in standard errors, marginal errors, and GWG's lead over Gibbs."""
    exact = next((row for row in results if row["kind"] == "exact"), None)
    rows = {row["sampler"]: row for row in results if row["kind"] == "sampler"}
    found = {}
    for name, row in rows.items() if exact else ():
        error = math.hypot(row["log_joint_error"], exact["error"])  # pyright: ignore[reportOptionalSubscript]
        key = name.lower().replace(" ", "_")
        found[f"{key}_log_joint_z"] = (row["log_joint"] - exact["log_joint"]) / error  # pyright: ignore[reportOptionalSubscript]
        found[f"{key}_marginal_error"] = row["marginal_error"]
    if {"GWG", "Gibbs"} <= set(rows):
        found["gwg_minus_gibbs_log_joint"] = rows["GWG"]["trace_mean"] - rows["Gibbs"]["trace_mean"]
    return found


def _traces(config: FactorialHMM, directory: RunDirectory, exact: Result, names: Sequence[str]) -> Picture:
    series, low = {}, exact["log_joint"]
    for name in names:
        u = directory.samples(_file(name))["log_joint"]
        places = torch.logspace(0, math.log10(len(u)), 200).long().unique() - 1
        places = places.clamp(0, len(u) - 1)
        series[name] = ((places + 1).numpy(), u[places].numpy())
        low = min(low, u[min(len(u) - 1, config.length // 4) :].min().item())
    level = {"exact posterior mean": exact["log_joint"]}
    room = exact["log_joint"] + 4 * exact["spread"]
    limits = (low - 0.05 * (room - low), room)
    figure = plots.traces(series, x="step", y="log p(x, y)", levels=level, log_x=True, y_limits=limits)
    caption = (
        f"Mean over {config.chains} chains from uniform random starts, in a band from the lowest to the highest. The dashed "
        f"line is the posterior mean of log p(x, y), from {config.exact_draws} exact draws (filtered forward, sampled "
        "backward). A step of block Gibbs redraws all sites, one of the others at most a few; the figure's lower end is "
        "cut."
    )
    alt = "log p(x, y) against step: every sampler climbs towards the dashed exact line, block Gibbs in a few steps."
    return Picture(figure, caption, alt)


def _marginals(directory: RunDirectory, names: Sequence[str]) -> Picture:
    rows = {"exact": directory.samples("exact")["marginals"].T.numpy()}
    rows |= {name: directory.samples(_file(name))["mean"].T.numpy() for name in names}
    caption = "p(x_tk = 1 | y), one row a hidden chain: exact, and as the mean over each sampler's steps and chains."
    return Picture(
        plots.marginals(rows, x="time", y="chain"), caption, "Images of marginals: samplers beside the exact one."
    )


def _table(exact: Result, rows: Sequence[Result]) -> Table:
    cells = [["exact", number(exact["log_joint"], exact["error"]), "0", "0", MISSING, MISSING]]
    for row in rows:
        joint = number(row["log_joint"], row["log_joint_error"])
        errors = [f"{row['marginal_error']:.4f}", f"{row['worst_marginal']:.3f}"]
        cells.append(
            [
                row["sampler"],
                joint,
                *errors,
                f"{1e3 * row['seconds'] / row['steps']:.3g}",
                f"{row['spent'] / row['steps']:.3g}",
            ]
        )
    columns = ("sampler", "log p(x, y)", "mean marginal error", "worst", "ms a step, all chains", "evaluations a step")
    caption = (
        "Means over the steps after the trace, with standard errors from the spread of the chains (blind to what all chains "
        "miss). Marginal error: |mean of x - exact| over all times and chains. A gradient counts as one evaluation."
    )
    return Table(columns, cells, caption)


def page(config: FactorialHMM, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    exact = next((row for row in results if row["kind"] == "exact"), None)
    rows = [row for row in results if row["kind"] == "sampler"]
    names = [row["sampler"] for row in rows]
    lead = "No sampler was finished."
    if exact and rows:
        best = min(rows, key=lambda row: row["marginal_error"])
        lead = (
            f"The posterior of {config.factors} hidden chains over {config.length} times. Closest to the exact marginals: "
            f"{best['sampler']}, {best['marginal_error']:.4f} off on average."
        )
    about = Text(
        f"W, b ~ N(0, 1); a hidden chain starts at 1 with probability 0.1 and stays where it is with probability 0.95. "
        f"The variance of y is {config.variance:g}: the paper's text gives sigma^2 = .5, while its released code uses a "
        "standard deviation of .5; the text is followed. The Hamming ball sampler redraws all bits of one time within "
        "radius 1, as in the paper. Block Gibbs, which redraws one hidden chain over all times exactly, is added here."
    )
    blocks: list[Text | Picture | Table] = [about]
    if exact and rows:
        blocks += [_traces(config, directory, exact, names), _table(exact, rows), _marginals(directory, names)]
    return Page("Sampling a factorial hidden Markov model", lead, [Section("GWG paper, appendix G", blocks)])


_LAPTOP = FactorialHMM()
RECIPE = Recipe(
    figure="GWG paper, appendix G: log-joint of a factorial HMM",
    summary="Gibbs, Hamming ball, GWG and block Gibbs on a factorial HMM, against forward-backward",
    presets={
        "smoke": replace(_LAPTOP, length=12, factors=3, chains=32, steps=400, averaged=1500, block_steps=60),
        "laptop": _LAPTOP,
        "paper": replace(_LAPTOP, length=1000, factors=10, steps=10_000, averaged=10_000, block_steps=200),
    },
    run=run,
    findings=findings,
    page=page,
)
