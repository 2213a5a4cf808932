"""Couplings of Ising models learned from samples: Gibbs-With-Gradients against Gibbs in PCD, and pseudo-likelihood."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from .. import exact
from ..learn import Contrastive, Diverged, Objective, Penalised, Persistent, PseudoLikelihood, Report, fit, l1
from ..models import Ising
from ..random import Source, generator, substream
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MINUS, MISSING
from ..sample import MH, Gibbs, Informed
from ..sample.kernel import Kernel
from .ising_problems import ENUMERABLE, Problem, draw, least_log_rmse
from .recipe import Advance, Bars, Recipe, at_least, finished

_PSEUDO, _EXACT = "pseudo-likelihood", "exact likelihood"


@final
@dataclass(frozen=True)
class IsingLearning:
    """Learn the couplings of Ising models from samples, and measure how far from the truth they are."""

    sides: tuple[int, ...] = (7, 10, 14)
    """Sites along each side of the square lattices of the sweep over sizes."""
    thetas: tuple[float, ...] = (-0.1, 0.0, 0.1, 0.25, 0.5)
    """Couplings of the sweep over strengths, U = theta x'Ax with each edge counted twice; a lattice orders at 0.2203."""
    steps: tuple[int, ...] = (5, 10, 25, 50)
    """Sampler steps before each update, of the sweeps over steps."""
    side: int = 10
    """Side of the lattice of the sweeps over strengths and steps."""
    theta: float = 0.25
    """Coupling of the sweeps over sizes and steps."""
    middle: int = 25
    """Sampler steps before each update, of the sweeps over sizes and strengths."""
    nodes: int = 100
    """Sites of the random (Erdos-Renyi) graph, of 4 neighbours on average, its couplings from N(0, 1/4)."""
    examples: int = 2000
    """Samples that are learned from."""
    chains: int = 256
    """Persistent chains; also the size of a mini-batch."""
    updates: int = 1000
    """Steps of Adam."""
    rate: float = 0.002
    """Adam's learning rate of J as the paper writes it."""
    penalty: float = 0.01
    """What the absolute values of all entries of J are multiplied by in the loss."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, sides=3, steps=1, side=3, middle=1, nodes=5, examples=1, chains=1, updates=1)
        if not self.thetas or self.rate <= 0 or self.penalty < 0 or self.chains > self.examples:
            raise ValueError(
                "thetas, rate, penalty, chains: expected at least one theta, rate > 0, penalty >= 0 and no more chains than "
                f"examples, got {self.thetas}, {self.rate}, {self.penalty}, {self.chains} of {self.examples}"
            )


def problems(config: IsingLearning) -> dict[Problem, list[int]]:
    """Every model of the sweeps once, with all steps it is learned with."""
    steps: dict[Problem, set[int]] = {}
    for side in config.sides:
        steps.setdefault(Problem(side, config.theta), set()).add(config.middle)
    for theta in config.thetas:
        steps.setdefault(Problem(config.side, theta), set()).add(config.middle)
    for problem in (Problem(config.side, config.theta), Problem(config.nodes, None)):
        steps.setdefault(problem, set()).update(config.steps)
    return {problem: sorted(wanted) for problem, wanted in steps.items()}


def samplers() -> dict[str, Kernel]:
    """The two that the paper compares: a step of Gibbs redraws one site, chosen at random."""
    return {"Gibbs": Gibbs(), "GWG": MH(Informed())}


@final
class Watched(Objective):
    """An objective that tells how far its model's couplings are from the truth."""

    truth: Tensor

    def __init__(self, objective: Objective, model: Ising, truth: Ising):
        super().__init__(model.space)
        self.objective, self.model = objective, model
        self.register_buffer("truth", truth.couplings.detach())

    def forward(self, data: Any, *, seed: Source) -> Report:
        report = self.objective(data, seed=seed)
        return Report(report.loss, {**report.metrics, "log_rmse": log_rmse(self.model, self.truth)})


@torch.no_grad()
def log_rmse(model: Ising, truth: Float[Tensor, "sites sites"]) -> Float[Tensor, ""]:
    """ln of the root mean square, over pairs, of the error of J as the paper writes it (half of the couplings)."""
    i, j = torch.triu_indices(len(truth), len(truth), 1, device=truth.device)
    return ((model.couplings - truth)[i, j] / 2).square().mean().sqrt().log()


@final
class Exact(Objective):
    """-mean log p(x), log Z by enumeration."""

    def __init__(self, model: Ising):
        super().__init__(model.space)
        self.model = model

    def forward(self, data: Any, *, seed: Source) -> Report:
        every = exact.states(self.model.space).to(data.device)
        return Report(self.model(every).logsumexp(0) - self.model(data).mean())


@final
@dataclass(frozen=True)
class Method:
    """A way to learn: PCD with `steps` of a sampler before each update, or (no steps) a loss without a sampler."""

    name: str
    steps: int = 0

    @property
    def evaluations(self) -> int:
        """Evaluations of U a chain and update: a step of Gibbs takes one, of GWG one and a gradient, which counts as one.

        That is what the steps cost where U is all that is known of a model. An Ising model's changes are known in closed
        form, which makes a step of Gibbs cheap; `seconds` says so.
        """
        return self.steps * (2 if self.name == "GWG" else 1)

    def objective(self, model: Ising, config: IsingLearning, source: Source) -> Objective:
        """What is minimised, without the penalty."""
        if self.name == _PSEUDO:
            return PseudoLikelihood(model)
        if self.name == _EXACT:
            return Exact(model)
        x = model.space.uniform().sample(config.chains, seed=source)
        return Contrastive(model, Persistent(samplers()[self.name], x, self.steps))

    def penalised(self, model: Ising, config: IsingLearning, source: Source) -> Objective:
        """The objective and l1 of all entries of J, which are half the couplings.

        Pseudo-likelihood counts each coupling twice, and so its penalty is twice as strong.
        """
        weight = config.penalty * (1.0 if self.name == _PSEUDO else 0.5)
        return Penalised(self.objective(model, config, source), lambda: l1(model.couplings), weight)


def methods(problem: Problem, steps: Sequence[int], sites: int) -> list[Method]:
    """All that learn a problem; the exact likelihood where the states can be enumerated."""
    without = [Method(_PSEUDO), *([Method(_EXACT)] if sites <= ENUMERABLE else [])]
    return without + [Method(name, k) for k in steps for name in samplers()]


def run(config: IsingLearning, directory: RunDirectory, bars: Bars) -> None:
    """Draws the data of every model, learns it in every way, and records how far from the truth each ends."""
    wanted = problems(config)
    count = sum(len(methods(p, steps, p.sites)) for p, steps in wanted.items())
    with bars.total(count * config.updates) as part:
        for place, (problem, steps) in enumerate(wanted.items()):
            source, truth = generator(substream(config.seed, place)), problem.truth(substream(config.seed, -1 - place))
            data, how, drift = draw(truth, config.examples, source)
            row = {"problem": problem.label, "size": problem.size, "theta": problem.theta, "sites": problem.sites}
            least = least_log_rmse(truth, config.examples) if problem.sites <= ENUMERABLE else None
            directory.record(row | {"kind": "data", "how": how, "drift": drift, "order": order(data), "least": least})
            for method in methods(problem, steps, problem.sites):
                advance = part(f"{problem.label}: {method.name} {method.steps or ''}")
                directory.record(row | learned(config, method, truth, data, source, advance))


def order(data: Shaped[Tensor, "examples sites"]) -> float:
    """The mean absolute magnetisation of samples: near 1, couplings leave little trace in them."""
    return (2 * data.double().mean(1) - 1).abs().mean().item()


def learned(config: IsingLearning, method: Method, truth: Ising, data: Tensor, source: Source, advance: Advance) -> Result:
    """One model learned from zero couplings: its distance from the truth, in ten means over a tenth of the updates each, and
    what it took. The last is what counts: where chains lag behind the couplings, these swing to and fro.
    """
    model = Ising(torch.zeros_like(truth.couplings))
    model.field.requires_grad_(False)
    objective = Watched(method.penalised(model, config, source), model, truth).to(config.device)
    data = data.to(config.device)
    optimiser = torch.optim.Adam(model.pairs.parameters(), lr=2 * config.rate)  # of the couplings, twice the paper's J
    options: dict[str, Any] = {"steps": config.updates, "batch": config.chains, "seed": config.seed, "progress": advance}
    row: Result = {"kind": "learned", "method": method.name, "steps": method.steps, "evaluations": method.evaluations}
    began = time.process_time()
    try:
        fitted = finished(fit(objective, data, optimiser=optimiser, log_every=max(1, config.updates // 10), **options))
    except Diverged as error:
        return row | {"diverged": str(error)}
    curve = [[line["step"], line["log_rmse"]] for line in fitted.metrics]
    end = {"log_rmse": curve[-1][1], "seconds": time.process_time() - began, "curve": curve}
    return row | end | {"gap": fitted.metrics[-1].get("gap")}


def learned_rows(results: Sequence[Result]) -> list[Result]:
    """The rows of learned models, without those that diverged."""
    return [row for row in results if row.get("kind") == "learned" and "diverged" not in row]


def findings(config: IsingLearning, results: Sequence[Result]) -> dict[str, float]:
    """ln RMSE of GWG minus that of Gibbs, with equal steps and with equal evaluations, each the mean over models; and what
    the methods have above the exact likelihood, and that above the least error, where the states can be enumerated.
    """
    rows = learned_rows(results)
    ends = {(row["problem"], row["method"], row["steps"]): row["log_rmse"] for row in rows}
    found: dict[str, float] = {}
    for graph, wanted in (("lattices", False), ("random_graphs", True)):
        for name, ratio in (("equal_steps", 1), ("equal_evaluations", 2)):
            apart = [
                row["log_rmse"] - ends[row["problem"], "Gibbs", ratio * row["steps"]]
                for row in rows
                if row["method"] == "GWG" and (row["theta"] is None) == wanted
                and (row["problem"], "Gibbs", ratio * row["steps"]) in ends
            ]  # fmt: skip
            if apart:
                found[f"gwg_minus_gibbs_on_{graph}_at_{name}"] = sum(apart) / len(apart)
    least = {row["problem"]: row["least"] for row in results if row.get("least") is not None}
    for row in rows:
        if (best := ends.get((row["problem"], _EXACT, 0))) is not None:
            other = least[row["problem"]] if row["method"] == _EXACT else best
            against = "least" if row["method"] == _EXACT else "exact"
            label = f"{row['method']}_minus_{against}_{row['problem']}".lower()
            found[label.replace(" ", "_").replace(",", "").replace("-", "_")] = row["log_rmse"] - other
    return found


def _line(rows: Sequence[Result], x: str) -> plots.Line:
    rows = sorted(rows, key=lambda row: row[x])
    return plots.Line([row[x] for row in rows], [row["log_rmse"] for row in rows])


def _panel(rows: Sequence[Result], x: str, label: str, title: str, *, log_x: bool = False) -> plots.Panel:
    """ln RMSE against one column, a line for each method; a method without steps is a level when x is steps or cost."""
    lines, curves = {}, {}
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        if own[0]["steps"] == 0 and x in ("steps", "evaluations"):
            ends = [min(row[x] for row in rows if row["steps"]), max(row[x] for row in rows if row["steps"])]
            curves[name] = plots.Line(ends, [own[0]["log_rmse"]] * 2)
        else:
            lines[name] = _line(own, x)
    return plots.Panel(label, "ln RMSE of J", lines, title, curves=curves, log_x=log_x)


def _figures(config: IsingLearning, rows: Sequence[Result]) -> list[Picture]:
    middle = [row for row in rows if row["steps"] in (0, config.middle) and row["theta"] is not None]
    lattice = [row for row in rows if (row["size"], row["theta"]) == (config.side, config.theta)]
    graph = [row for row in rows if row["theta"] is None]
    strengths = [row for row in middle if row["size"] == config.side and row["theta"] in config.thetas]
    sizes = [row for row in middle if row["theta"] == config.theta and row["size"] in config.sides]
    at = f"{config.middle} steps"
    shown = [
        _panel(rows, x, label, title, log_x=log_x)
        for rows, x, label, title, log_x in (
            (strengths, "theta", "theta", f"{config.side} x {config.side} lattice, {at}", False),
            (sizes, "sites", "sites", f"Lattices, theta {config.theta:g}, {at}", False),
            (lattice, "steps", "steps an update", f"{config.side} x {config.side} lattice, theta {config.theta:g}", True),
            (graph, "steps", "steps an update", f"Random graph of {config.nodes} sites", True),
        )
        if any(row["steps"] for row in rows)
    ]
    costs = [
        _panel([row for row in rows if row["steps"] or x == "seconds"], x, label, f"{title}: cost", log_x=True)
        for rows, title in ((lattice, "Lattice"), (graph, "Random graph"))
        for x, label in (("evaluations", "evaluations of U a chain and update"), ("seconds", "CPU seconds"))
        if any(row["steps"] for row in rows)
    ]
    alt = "ln RMSE of learned couplings: lines of Gibbs, Gibbs-With-Gradients and pseudo-likelihood."
    note = "Lower is better. Dashed levels take no sampler steps."
    return [Picture(plots.panels(panels, height=3.0), note, alt) for panels in (shown, costs) if panels]


def _table(rows: Sequence[Result]) -> Table:
    cells = [
        [
            row["problem"],
            row["method"],
            str(row["steps"] or MISSING),
            str(row["evaluations"] or MISSING),
            number(row.get("log_rmse")) if "diverged" not in row else "diverged",
            f"{row['seconds']:.1f}" if "seconds" in row else MISSING,
        ]
        for row in rows
    ]
    caption = (
        "An evaluation is one of U at one state of one chain, a gradient counts as one more: a step of Gibbs takes one, a "
        "step of GWG two. That is the cost where U is all that is known; an Ising model's closed form makes a step of Gibbs "
        "far cheaper than one of GWG, as the seconds show."
    )
    return Table(("model", "method", "steps", "evaluations", "ln RMSE of J", "CPU seconds"), cells, caption)


def _data_table(results: Sequence[Result]) -> Table:
    rows = [
        [row["problem"], row["how"], number(row["drift"]), f"{row['order']:.3f}", number(row["least"])]
        for row in results
        if row.get("kind") == "data"
    ]
    caption = (
        "Each sample is the last state of a chain of its own; the drift is what the mean of U still moved in the last half "
        "of the chains, in standard errors. Where the mean |m| is near 1 almost all spins agree, and samples say little "
        "about the couplings. The least ln RMSE is that of maximum "
        "likelihood with many samples and no penalty (Cramer and Rao), where the states can be enumerated."
    )
    return Table(("model", "drawn by", "drift", "mean |m|", "least ln RMSE"), rows, caption)


def page(config: IsingLearning, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    rows, found = learned_rows(results), findings(config, results)
    lead = "No pair of samplers was finished."
    parts = [
        f"{found[key]:+.2f} on {graph} with equal {what}"
        for graph in ("lattices", "random graphs")
        for what in ("steps", "evaluations")
        if (key := f"gwg_minus_gibbs_on_{graph}_at_equal_{what}".replace(" ", "_")) in found
    ]
    if parts:
        lead = f"ln RMSE of the couplings, PCD with GWG minus PCD with Gibbs: {', '.join(parts)}.".replace(" -", f" {MINUS}")
    about = Text(
        f"{config.examples} samples a model; PCD with {config.chains} chains, Adam for {config.updates} updates with rate "
        f"{config.rate:g} of J, penalty {config.penalty:g} on the absolute values of all its entries. J is as the paper "
        "writes it, U = x'Jx, half of the couplings here, where each edge counts once. RMSE is over all pairs of sites; its "
        "logarithm is the mean over the last tenth of the updates. The paper compares at equal steps, one site redrawn a "
        "step of Gibbs; its learning rate is 0.001, and it does not state the number of updates."
    )
    blocks: list[Text | Picture | Table] = [about]
    tried = [row for row in results if row.get("kind") == "learned"]
    blocks += [*_figures(config, rows), *([_table(tried)] if tried else [])]
    blocks += [_data_table(results)] if results else []
    return Page("Learning Ising models", lead, [Section("GWG paper, appendix F.2", blocks)])


_PAPER = IsingLearning(sides=(10, 25, 40), side=25, nodes=200, steps=(5, 10, 25, 50, 100), updates=10_000, rate=0.001)
RECIPE = Recipe(
    figure="GWG paper, appendix F.2: figure 11, log RMSE of learned Ising models",
    summary="couplings of Ising models from samples: PCD with GWG and with Gibbs, and pseudo-likelihood",
    presets={
        "smoke": IsingLearning(
            sides=(3,), thetas=(0.1, 0.15, 0.2), steps=(2,), side=3, theta=0.15, middle=2, nodes=8, examples=1000,
            chains=1000, updates=300, rate=0.02, penalty=0.0,
        ),
        "laptop": IsingLearning(),
        "paper": _PAPER,
    },
    run=run,
    findings=findings,
    page=page,
)  # fmt: skip
