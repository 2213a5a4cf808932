"""The Ising model through its transition: energy, specific heat and magnetisation against the exact values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from .. import diagnose
from ..exact import kaufman_log_z
from ..models import Ising
from ..random import generator
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MINUS
from ..sample import BlockGibbs, SwendsenWang, Trace, trace
from ..sample.kernel import Kernel
from .recipe import Bars, Recipe, at_least, finished

CRITICAL = math.log(1 + math.sqrt(2)) / 2
_LAGS = 200


@final
@dataclass(frozen=True)
class IsingTransition:
    """Sample a square Ising lattice at couplings across its transition and compare with the exact values."""

    side: int = 40
    """Sites along each side of the lattice, which wraps around."""
    couplings: tuple[float, ...] = (0.2, 0.3, 0.36, 0.4, 0.42, 0.43, 0.4407, 0.45, 0.46, 0.48, 0.52, 0.6)
    """Couplings K = J / kT, each edge counted once; the infinite lattice orders at 0.4407."""
    chains: int = 32
    """Independent chains at each coupling; their spread gives the standard errors, so at least 2."""
    steps: int = 1000
    """Swendsen-Wang steps that are kept, at each coupling."""
    warmup: int = 200
    """Steps before those, thrown away."""
    local_steps: int = 5000
    """Checkerboard Gibbs sweeps at the coupling nearest the transition, to compare how fast the two forget."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, side=4, chains=2, steps=4, warmup=0, local_steps=4)
        if not self.couplings or min(self.couplings) <= 0:
            raise ValueError(f"couplings: expected positive numbers, got {self.couplings}")


def exact(side: int, coupling: float) -> tuple[float, float]:
    """Energy and specific heat per site of the side x side torus: -d log Z / dK / N and K^2 d^2 log Z / dK^2 / N."""
    k = torch.tensor(coupling, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(kaufman_log_z(side, side, k), k, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, k)
    return -slope.item() / side**2, coupling**2 * curvature.item() / side**2


def onsager_magnetisation(coupling: float) -> float:
    """The magnetisation of the infinite lattice, (1 - sinh(2K)^-4)^(1/8) above the transition (Yang 1952)."""
    return 0.0 if coupling <= CRITICAL else (1 - math.sinh(2 * coupling) ** -4) ** 0.125


def over_chains(values: Float[Tensor, "draws chains"]) -> tuple[float, float]:
    """The mean, and its Monte Carlo standard error from the spread of the independent chains."""
    means = values.double().mean(0)
    return means.mean().item(), (means.std() / math.sqrt(len(means))).item()


def _magnetisation(x: Shaped[Tensor, "chains sites"]) -> Float[Tensor, " chains"]:
    return (2 * x.double().mean(-1) - 1).abs()


def _measure(config: IsingTransition, coupling: float, run: Trace) -> Result:
    sites = config.side**2
    energy = -run.u.double() / (coupling * sites)
    heat = coupling**2 * sites * (energy - energy.mean()) ** 2
    watched = torch.stack((energy, run.values.double()), -1)
    effective, agreement = diagnose.ess(watched), diagnose.rhat(watched)
    exact_energy, exact_heat = exact(config.side, coupling)
    result: Result = {"kind": "coupling", "coupling": coupling, "seconds": run.seconds, "draws": len(energy)}
    for name, values in (("energy", energy), ("heat", heat), ("magnetisation", run.values)):
        result[name], result[f"{name}_error"] = over_chains(values)
    result |= {"exact_energy": exact_energy, "exact_heat": exact_heat}
    return result | {"ess": effective.min().item(), "rhat": agreement.max().item()}


def _trace(config: IsingTransition, kernel: Kernel, coupling: float, steps: int, source, advance) -> Trace:
    model = Ising.lattice(config.side, coupling=coupling).to(config.device)
    x = model.space.uniform().sample(config.chains, seed=source)
    options = {"steps": steps, "warmup": config.warmup, "seed": source, "progress": advance}
    return finished(trace(kernel, model, x, statistic=_magnetisation, **options))


def run(config: IsingTransition, directory: RunDirectory, bars: Bars) -> None:
    """Samples every coupling; then compares how fast clusters and single sites forget near the transition."""
    source = generator(config.seed, config.device)
    nearest = min(config.couplings, key=lambda k: abs(k - CRITICAL))
    pictures = {}
    work = len(config.couplings) * (config.steps + config.warmup) + config.local_steps + config.warmup
    with bars.total(work) as part:
        for coupling in config.couplings:
            sampled = _trace(config, SwendsenWang(), coupling, config.steps, source, part(f"coupling {coupling}"))
            directory.record(_measure(config, coupling, sampled))
            pictures[f"{coupling}"] = sampled.state.x[:1].view(config.side, config.side)
            directory.save_samples("lattices", pictures)
            if coupling == nearest:
                directory.record(_forgetting("Swendsen-Wang", coupling, sampled))
        local = _trace(config, BlockGibbs(), nearest, config.local_steps, source, part("Gibbs sweeps"))
        directory.record(_forgetting("Gibbs sweeps", nearest, local))


def _forgetting(name: str, coupling: float, run: Trace) -> Result:
    lags = min(_LAGS, len(run.values) // 4)
    rho = diagnose.autocorrelation(run.values, lags).tolist()
    ess = diagnose.ess(run.values).item()
    return {"kind": "forgetting", "kernel": name, "coupling": coupling, "autocorrelation": rho, "seconds": run.seconds,
            "ess": ess, "draws": run.values.numel()}  # fmt: skip


def findings(config: IsingTransition, results: Sequence[Result]) -> dict[str, float]:
    """The largest distances from the exact energy and specific heat in standard errors, and the worst R-hat."""
    rows = [row for row in results if row["kind"] == "coupling"]
    if not rows:
        return {}
    distance = {
        name: max(abs(row[name] - row[f"exact_{name}"]) / row[f"{name}_error"] for row in rows)
        for name in ("energy", "heat")
    }
    found = {"energy_worst_z": distance["energy"], "heat_worst_z": distance["heat"]}
    ess = {row["kernel"]: row["ess"] / row["draws"] for row in results if row["kind"] == "forgetting"}
    if len(ess) == 2:
        found["cluster_over_local_ess"] = ess["Swendsen-Wang"] / ess["Gibbs sweeps"]
    return found


def _quantities(config: IsingTransition, rows: Sequence[Result]) -> Picture:
    k = [row["coupling"] for row in rows]
    smooth = torch.linspace(min(k), max(k), 161).tolist() if len(k) > 1 else k
    curve = [exact(config.side, value) for value in smooth]

    def measured(name: str) -> dict[str, plots.Line]:
        return {"measured": plots.Line(k, [row[name] for row in rows], [row[f"{name}_error"] for row in rows])}

    torus, infinite = "exact, this lattice", "exact, infinite lattice"
    levels = [onsager_magnetisation(value) for value in smooth]
    shown = (
        ("energy", "Energy", "energy / J per site", {torus: plots.Line(smooth, [e for e, _ in curve])}),
        ("heat", "Specific heat", "specific heat / k per site", {torus: plots.Line(smooth, [c for _, c in curve])}),
        ("magnetisation", "Magnetisation", "mean |m|", {infinite: plots.Line(smooth, levels)}),
    )
    contents = [
        plots.Panel("coupling K", label, title=title, points=measured(name), curves=curves, marks={"": CRITICAL})
        for name, title, label, curves in shown
    ]
    caption = (
        "Points are measured, with two-sided bars of one standard error (mostly smaller than the points). Dashed: the exact "
        "values of this finite lattice, by Kaufman's formula and its derivatives. Dotted: Yang's magnetisation of the "
        "infinite lattice, from which a finite one differs near the transition. The vertical line is the transition of the "
        "infinite lattice, K = 0.4407."
    )
    alt = "Energy, specific heat and magnetisation against coupling; the measured points lie on the exact curves."
    return Picture(plots.panels(contents, columns=3, height=3.0), caption, alt)


def _table(rows: Sequence[Result]) -> Table:
    def cells(row: Result) -> list[str]:
        pairs = [
            [number(row[n], row[f"{n}_error"]), f"{row[f'exact_{n}']:.5f}".replace("-", MINUS)] for n in ("energy", "heat")
        ]
        ends = [number(row["magnetisation"], row["magnetisation_error"]), f"{row['ess']:.0f}", f"{row['rhat']:.3f}"]
        return [f"{row['coupling']:g}", *pairs[0], *pairs[1], *ends]

    columns = ("K", "energy", "exact", "specific heat", "exact", "|m|", "ESS", "R-hat")
    caption = (
        "Means with their Monte Carlo standard error, taken from the spread of independent chains. ESS is the smaller and "
        "R-hat the larger of those of energy and |m|, over all chains together."
    )
    return Table(columns, [cells(row) for row in rows], caption)


def _pictures(directory: RunDirectory) -> list[Picture]:
    saved = sorted(directory.samples("lattices").items(), key=lambda item: float(item[0]))
    if not saved:
        return []
    wanted = sorted({round(i * (len(saved) - 1) / 7) for i in range(8)})
    chosen = [saved[index] for index in wanted]
    figure = plots.lattices(torch.stack([spins for _, spins in chosen]).numpy(), [f"K = {name}" for name, _ in chosen])
    alt = "Lattices of spins: noise at weak coupling, patches of all sizes at the transition, one colour at strong coupling."
    return [Picture(figure, "The last state of the first chain, one square a spin.", alt)]


def _forgetting_section(results: Sequence[Result]) -> list[Section]:
    rows = [row for row in results if row["kind"] == "forgetting"]
    if len(rows) < 2:
        return []
    figure = plots.autocorrelation({row["kernel"]: row["autocorrelation"] for row in rows}, x="lag, in steps or sweeps")
    caption = f"Autocorrelation of |m| at K = {rows[0]['coupling']:g}."
    lines = [[row["kernel"], f"{row['draws'] / row['ess']:.1f}", f"{row['ess'] / row['seconds']:.0f}"] for row in rows]
    blocks = [
        Text("Near the transition patches of one spin reach across the lattice. Gibbs sweeps wear them away site by site; "
             "Swendsen-Wang turns whole clusters at once, and so forgets within a few steps."),
        Picture(figure, caption, "Autocorrelation against lag: fast decay for Swendsen-Wang, slow for Gibbs sweeps."),
        Table(("kernel", "steps per effective sample", "effective samples of |m| per second"), lines, "Of all chains."),
    ]  # fmt: skip
    return [Section("How fast the samplers forget", blocks)]


def page(config: IsingTransition, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    rows = [row for row in results if row["kind"] == "coupling"]
    found = findings(config, results)
    lead = "No coupling was finished."
    if rows:
        worst = max(found["energy_worst_z"], found["heat_worst_z"])
        lead = (
            f"Ising lattices of {config.side} x {config.side} sites at {len(rows)} couplings, sampled by Swendsen-Wang. The "
            f"measured energies and specific heats lie within {worst:.1f} standard errors of their exact values."
        )
    sections = []
    if rows:
        sections.append(Section("Through the transition", [_quantities(config, rows), _table(rows)]))
    sections += [Section("What the lattices look like", pictures) for pictures in [_pictures(directory)] if pictures]
    return Page("The Ising model through its transition", lead, sections + _forgetting_section(results))


_LAPTOP = IsingTransition()
RECIPE = Recipe(
    figure="no figure: the demo",
    summary="a 40 x 40 Ising model through its transition, against the exact values",
    presets={
        "smoke": replace(_LAPTOP, side=8, couplings=(0.25, 0.44, 0.55), chains=32, steps=150, warmup=50, local_steps=300),
        "laptop": _LAPTOP,
        "paper": replace(_LAPTOP, side=64, chains=32, steps=20_000, warmup=1000, local_steps=20_000),
    },
    run=run,
    findings=findings,
    page=page,
)
