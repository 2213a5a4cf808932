"""Inclusive-NRF, exclusive-NRF and CoopNet on a mixture of 32 modes: the modes that are covered, and divergences."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from ..algebra import Tilt
from ..distributions import FixedScale, LatentNormal, Marginal, Normal, NormalMixture
from ..distributions.marginal import normal_net
from ..estimate import divergence, integrate
from ..learn import (
    Contrastive,
    Cooperative,
    Diverged,
    Exclusive,
    Guard,
    Negatives,
    Objective,
    Penalised,
    Revised,
    SpectralNorm,
    fit,
    schedule,
)
from ..models import MLP, perceptron
from ..random import Source, generator, substream
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MISSING
from ..sample import HMC, SGLD, Langevin
from ..space import Real
from .plane import density, mean_and_error, modes_reached
from .recipe import Advance, Bars, Recipe, at_least, finished
from .trained import Trained

_RADII, _ON_EACH, _SCALE = (2.0, 3.0, 4.0, 5.0), 8, 0.1
_SIDE, _SHOWN = 12.0, 6.0  # of the box of integrals and of the pictures; the base is a normal law of scale 3
_BASE = 3.0
_GUARD = Guard(most=100.0)  # nats
_STREAMS = 16  # of random numbers, of each method and repeat


@final
@dataclass(frozen=True)
class Toy:
    """Learn a mixture of 32 normal laws on four circles with three kinds of generators beside the energy."""

    examples: int = 1600
    """Training examples."""
    energy: tuple[int, ...] = (100, 100)
    """Hidden layers of the energy."""
    decoder: tuple[int, ...] = (50, 50)
    """Hidden layers of the generators."""
    latent: int = 2
    """Latent variables of the generators."""
    scale: float = 0.3
    """The generators' standard deviation of x given them."""
    batch: int = 100
    """Examples in a mini-batch, and pairs drawn from the generator."""
    updates: int = 2000
    """Steps of Adam, of the energy and the generator at once; its learning rate falls as a cosine."""
    rate: float = 0.0001
    """Adam's learning rate of the energy."""
    spectral: float = 0.02
    """What the sum of the energy's spectral norms is multiplied by in the loss."""
    generator_rate: float = 0.002
    """Adam's learning rate of the generator, which is to follow the energy."""
    steps: int = 10
    """Steps by which draws are revised."""
    step_size: float = 0.1
    """Their size in x (and in h with the inclusive kind)."""
    inner: float = 0.05
    """The size of Langevin steps on q(h | x)."""
    nodes: int = 4096
    """Nodes of the integral over latent variables."""
    points: int = 401
    """Points a dimension of the integrals over the plane."""
    test: int = 20_000
    """Samples of the truth that the integrals are checked with."""
    repeats: int = 3
    """Runs of each method, each with its own data and weights."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, examples=1, energy=1, decoder=1, latent=1, batch=1, updates=10, steps=1, nodes=1, points=5, repeats=1)
        if min(self.scale, self.rate, self.generator_rate, self.step_size, self.inner) <= 0:
            raise ValueError("scale, rates, step_size, inner: expected positive numbers")


def four_circles() -> NormalMixture:
    """32 equal normal laws: 8 on each of four circles, every other circle turned by half the angle between two."""
    means = [
        (radius * math.cos(angle), radius * math.sin(angle))
        for turn, radius in enumerate(_RADII)
        for angle in (2 * math.pi * (k + turn % 2 / 2) / _ON_EACH for k in range(_ON_EACH))
    ]
    return NormalMixture(torch.ones(len(means)), torch.tensor(means), _SCALE)


def methods(config: Toy) -> dict[str, Callable[[LatentNormal], Negatives]]:
    """The three kinds, each of a generator."""
    step, inner = config.step_size, Langevin(config.inner)
    return {
        "inclusive-NRF": lambda q: Revised(q, SGLD(step), inner, config.steps),
        "exclusive-NRF": lambda q: Exclusive(q, HMC(config.inner, 3), config.steps),
        "CoopNet": lambda q: Cooperative(q, Langevin(step), inner, config.steps),
    }


@final
class Bounded(nn.Module):
    """x -> side tanh(x / side): no draw is far from all data, where the energy's slope would throw it farther."""

    def forward(self, x: Tensor) -> Tensor:
        return _SHOWN * torch.tanh(x / _SHOWN)


def stream(config: Toy, place: int, part: int) -> int:
    """The seed of one part of a repeat; all methods have the same data and the same weights to start from."""
    return substream(config.seed, _STREAMS * place + part)


def potential(config: Toy, place: int) -> Tilt:
    """U before learning: a network beside a wide normal law, without which exp U need not have an integral."""
    return Tilt(Normal.diagonal(torch.zeros(2), _BASE), MLP(Real(2), config.energy, seed=stream(config, place, 0)))


def start(config: Toy, place: int) -> LatentNormal:
    """A generator before learning; its means spread as far as the data, so that the energy need not pull it there."""
    mean = perceptron(config.latent, 2, config.decoder, seed=stream(config, place, 1))
    h, (weight, bias) = normal_net(1024, config.latent, stream(config, place, 7)), mean[-1].parameters()
    with torch.no_grad():
        x = mean(h.to(weight.dtype))
        stretch = examples(config, place).std() / x.std(0)
        weight.mul_(stretch[:, None])
        bias.sub_(x.mean(0)).mul_(stretch)
    return LatentNormal(FixedScale(nn.Sequential(mean, Bounded()), config.scale), config.latent, 2)


def examples(config: Toy, place: int) -> Tensor:
    """The training examples of a repeat."""
    return four_circles().sample(config.examples, seed=stream(config, place, 2))


def run(config: Toy, directory: RunDirectory, bars: Bars) -> None:
    """Learns with each method and seed, and records modes and divergences; goes on after the last run recorded."""
    done = {(row["place"], row["method"]) for row in directory.results() if row.get("kind") == "learned"}
    count = config.repeats * len(methods(config))
    with bars.total(count * config.updates) as part:
        for place in range(config.repeats):
            for name in methods(config):
                if (place, name) not in done:
                    advance = part(f"{name}, repeat {place + 1}")
                    row = {"kind": "learned", "place": place, "method": name}
                    directory.record(row | learned(config, place, name, directory, advance))


def learned(config: Toy, place: int, name: str, directory: RunDirectory, advance: Advance) -> Result:
    """One run of one method: what the energy and the generator have learned, and what it took."""
    model, own, data = potential(config, place), start(config, place), examples(config, place)
    objective: Objective = Contrastive(model, methods(config)[name](own))
    if config.spectral:
        norm = SpectralNorm(model.potential, seed=stream(config, place, 6))
        objective = Penalised(objective, norm, config.spectral)
    objective = objective.to(config.device)
    groups = [
        {"params": list(model.parameters()), "lr": config.rate},
        {"params": list(own.parameters()), "lr": config.generator_rate},
    ]
    optimiser = torch.optim.Adam(groups, betas=(0.5, 0.999))
    options: dict[str, Any] = {"batch": config.batch, "seed": stream(config, place, 3), "progress": advance}
    options |= {"schedule": schedule.Cosine(config.updates, 0.02), "log_every": max(1, config.updates // 20)}
    began = time.process_time()
    try:
        fitted = finished(fit(objective, data, optimiser=optimiser, steps=config.updates, guard=_GUARD, **options))
    except Diverged as error:
        return {"diverged": str(error)}
    row: Result = {"seconds": time.process_time() - began, "curve": [[x["step"], x["gap"]] for x in fitted.metrics]}
    row |= measured(config, place, model, own, directory if place == 0 else None, name)
    if place == 0 and name == "inclusive-NRF":
        directory.save_model(model)
    return row


def measured(config: Toy, place: int, model: Tilt, own: LatentNormal, directory: RunDirectory | None, name: str) -> Result:
    """Divergences by integration; modes that 100 draws reach and the share near one, means over 100 times 100 draws."""
    truth = four_circles().double().to(config.device)
    q = Marginal(own, config.nodes, seed=stream(config, place, 4)).to(config.device)
    row: Result = {}
    for key, other in (("energy", model), ("generator", q)):
        found = divergence(truth, other, -_SIDE, _SIDE, config.points)
        row[key] = {"value": found.value, "error": found.stderr, "why": found.why}
    row["test_z"] = by_samples(config, place, truth, model, row["energy"]["value"])
    source = generator(stream(config, place, 5), config.device)
    proposals = own.split(own.sample(10_000, seed=source))[1]
    moved = revised(config, model, proposals, source)
    for key, x in (("proposed", proposals), ("revised", moved)):
        reached = [modes_reached(part, truth) for part in x.split(100)]
        row[key] = [sum(values) / len(reached) for values in zip(*reached)]
        row[f"{key}_all"] = modes_reached(x, truth)[0]
    if directory is not None:
        directory.save_samples(name, {"proposed": proposals[:2000], "revised": moved[:2000]} | pictures(model, q))
    return row


def by_samples(config: Toy, place: int, truth: NormalMixture, model: Tilt, below: float) -> float:
    """How far the mean of log p - log exp U / Z over samples of the truth is from the divergence, in standard errors."""
    x = truth.sample(config.test, seed=stream(config, place, 8))
    with torch.no_grad():
        away = truth(x) - model(x).double()
    log_z = integrate(model, -_SIDE, _SIDE, config.points).value
    return (away.mean().item() + log_z - below) / (away.std().item() / config.test**0.5)


def revised(config: Toy, model: Tilt, x: Tensor, source: Source) -> Tensor:
    """Draws of the generator after Langevin steps on the energy alone, as many and as large for every method."""
    kernel = Langevin(config.step_size)
    state = kernel.init(model, x)
    for _ in range(config.steps):
        state, _ = kernel.step(model, state, source)
    return state.x


def pictures(model: Tilt, q: Marginal) -> dict[str, Tensor]:
    """The densities to look at."""
    return {"energy": density(model, _SHOWN), "generator": density(q, _SHOWN)}


def sound(results: Sequence[Result]) -> list[Result]:
    """The rows of runs that did not diverge."""
    return [row for row in results if row.get("kind") == "learned" and "diverged" not in row]


def findings(config: Toy, results: Sequence[Result]) -> dict[str, float]:
    """Of each method, means over repeats: the energy's and the generator's divergence, modes that 100 draws reach."""
    rows, found = sound(results), {}
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        label = name.lower().replace("-", "_")
        for key in ("energy", "generator"):
            found[f"{label}_{key}_divergence"] = mean_and_error([row[key]["value"] for row in own])[0]
        for key in ("proposed", "revised"):
            found[f"{label}_{key}_modes"] = mean_and_error([row[key][0] for row in own])[0]
    if rows:
        found["test_z"] = max((row["test_z"] for row in rows), key=abs)
        found["diverged"] = float(sum("diverged" in row for row in results))
    return found


def _spread(rows: Sequence[Result], value: Callable[[Result], float]) -> str:
    return number(*mean_and_error([value(row) for row in rows]))


def _table(rows: Sequence[Result], results: Sequence[Result]) -> Table:
    cells = []
    for name in dict.fromkeys(row["method"] for row in results if row.get("kind") == "learned"):
        own = [row for row in rows if row["method"] == name]
        tried = sum(row.get("method") == name for row in results)
        numbers = [
            _spread(own, value) if own else MISSING
            for value in (
                lambda row: row["energy"]["value"],
                lambda row: row["generator"]["value"],
                lambda row: row["proposed"][0],
                lambda row: 100 * row["proposed"][1],
                lambda row: row["revised"][0],
                lambda row: 100 * row["revised"][1],
                lambda row: row["seconds"],
            )
        ]
        cells.append([name, f"{len(own)} of {tried}", *numbers])
    caption = (
        "Means over the runs that did not diverge, and standard errors. KL(truth || energy) and KL(truth || generator) in "
        "nats, by integration; of 100 draws, the modes that they reach and the percentage within 3 standard deviations of "
        "one, as the generator proposes them and after Langevin steps on the energy, the same for all methods."
    )
    columns = ("method", "runs", "KL, energy", "KL, generator", "modes", "near, %", "modes, revised", "near, revised, %",
               "CPU seconds")  # fmt: skip
    return Table(columns, cells, caption)


def _doubts(rows: Sequence[Result]) -> Table:
    cells = []
    for row in rows:
        values = [number(row[key]["value"], row[key]["error"]) for key in ("energy", "generator")]
        modes, why = [str(row["proposed_all"]), str(row["revised_all"])], row["energy"]["why"] or row["generator"]["why"]
        cells.append([row["method"], str(row["place"] + 1), *values, number(row["test_z"]), *modes, why or "none"])
    caption = (
        "Each run: divergences with the error of the grid; how far the energy's is from that of samples of the truth, in "
        "standard errors; the modes of 32 that 10,000 draws reach; what casts doubt on the integrals."
    )
    columns = ("method", "repeat", "KL, energy", "KL, generator", "test z", "modes, all", "modes, revised", "doubts")
    return Table(columns, cells, caption)


def _pictures(config: Toy, directory: RunDirectory, rows: Sequence[Result]) -> list[Picture]:
    box, shown = (-_SHOWN, _SHOWN), []
    kept = {name: found for name in methods(config) if (found := directory.samples(name))}
    if kept:
        truth = four_circles().double()
        densities = {"truth": density(truth, _SHOWN)} | {f"{name}, energy": found["energy"] for name, found in kept.items()}
        note = "exp U / Z by integration, on one scale."
        shown.append(Picture(plots.densities(densities, box, columns=4), note, "Densities of the truth and the energies."))
        clouds = {"truth": truth.sample(2000, seed=0)} | {
            f"{name}, proposed": found["proposed"] for name, found in kept.items()
        }
        clouds |= {"training examples": examples(config, 0)}
        clouds |= {f"{name}, revised": found["revised"] for name, found in kept.items()}
        note = "2000 draws of the generators, and where the Langevin steps take them."
        shown.append(Picture(plots.clouds(clouds, box, columns=4), note, "Draws of the truth and of the generators."))
    if rows:
        lines = {
            row["method"]: plots.Line([x[0] for x in row["curve"]], [x[1] for x in row["curve"]])
            for row in rows if row["place"] == 0
        }  # fmt: skip
        panel = plots.Panel("update", "U(negatives) - U(data)", lines)
        shown.append(Picture(plots.panels([panel]), "The first repeat.", "Gap between data and negatives."))
    return shown


def page(config: Toy, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    rows, found, lead = sound(results), findings(config, results), "No run was finished."
    if rows:
        words = [
            f"{name}: {found[f'{label}_energy_divergence']:.2f} nats, {found[f'{label}_proposed_modes']:.1f} modes"
            for name in dict.fromkeys(row["method"] for row in rows)
            for label in [name.lower().replace("-", "_")]
        ]
        lead = f"KL(truth || energy), and the modes of 32 that 100 draws of the generator reach. {'; '.join(words)}."
    about = Text(
        f"32 normal laws of standard deviation {_SCALE:g}, 8 on each of four circles of radii 2, 3, 4 and 5; "
        f"{config.examples} examples. U(x) = log N(x; 0, {_BASE:g}^2) + network; each generator has {config.latent} latent "
        f"variables, a bounded mean and a scale of {config.scale:g}. {config.updates} updates of {config.batch} examples; "
        f"inclusive: {config.steps} steps of SGLD of size {config.step_size:g} on (h, x); CoopNet: as many of Langevin on x "
        "and then on h; exclusive: no revision, the entropy's gradient by Hamiltonian steps on q(h | x)."
    )
    blocks: list[Text | Picture | Table] = [about]
    if any(row.get("kind") == "learned" for row in results):
        blocks += [_table(rows, results), *_pictures(config, directory, rows), _doubts(rows)]
    return Page("Generators beside an energy", lead, [Section("EBM-SLP, section 2.3.4, algorithms 7 and 8", blocks)])


_LAPTOP = Toy()
RECIPE = Recipe(
    figure="EBM-SLP, section 2.3.4: inclusive-NRF (algorithms 7 and 8), on the mixture of Song and Ou (2018)",
    summary="inclusive-NRF, exclusive-NRF and CoopNet on 32 modes: modes covered and divergences",
    presets={
        "smoke": Toy(
            energy=(32,), decoder=(32,), examples=400, updates=100, steps=5, rate=0.001, nodes=256, points=241, repeats=1
        ),
        "laptop": _LAPTOP,
        "paper": Toy(updates=500_000),
    },
    run=run,
    findings=findings,
    page=page,
    trained=Trained(
        build=lambda config: potential(config, 0),
        data=lambda config: examples(config, 0),
        kernel=lambda config: Langevin(config.step_size),
    ),
)
