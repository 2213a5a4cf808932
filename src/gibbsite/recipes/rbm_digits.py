"""A restricted Boltzmann machine learned from handwritten digits, its log-likelihood bracketed while it learns."""

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor

from ..datasets import Images, digits
from ..diagnose import autocorrelation, ess, rhat
from ..distributions import Bernoulli
from ..estimate import Estimate, bracket, log_likelihood
from ..learn import Average, Binarised, Contrastive, Persistent, fit
from ..learn.schedule import Cosine
from ..models import RBM
from ..random import bernoulli, generator, substream
from ..report import RunDirectory
from ..report.directory import Result
from ..sample import BlockGibbs
from ..sample.run import run as run_chains
from .rbm_digits_page import page
from .recipe import Advance, Bars, Recipe, at_least, beyond, finished
from .trained import Trained

_ENUMERABLE = 16  # hidden units up to which log Z is summed too
_LAGS = 50
_SHOWN = 64  # images in a picture


@final
@dataclass(frozen=True)
class RBMDigits:
    """Learn a restricted Boltzmann machine from scikit-learn's handwritten digits and bracket its log-likelihood."""

    hidden: int = 128
    """Hidden units."""
    updates: int = 15_000
    """Steps of Adam."""
    batch: int = 100
    """Images in a mini-batch; their pixels are drawn anew, with the grey levels as probabilities, each time."""
    chains: int = 100
    """Persistent chains that negatives come from."""
    steps: int = 5
    """Sweeps of block Gibbs that these chains make before each update."""
    rate: float = 0.006
    """Adam's learning rate at first; it falls along a cosine to a hundredth of that."""
    decay: float = 0.999
    """Of the moving average of the weights, which is what is kept and evaluated."""
    looks: int = 10
    """How often the log-likelihood is bracketed while learning."""
    temperatures: int = 500
    """Steps of annealing of these brackets; the last one, of the model that is kept, takes ten times as many."""
    particles: int = 100
    """Chains of annealing in each direction."""
    walkers: int = 64
    """Chains that samples are drawn from."""
    draws: int = 2000
    """States kept of each of these chains, after as many that are not."""
    thin: int = 1
    """Sweeps of block Gibbs from one such state to the next."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, hidden=1, updates=1, batch=1, chains=1, steps=1, looks=1, temperatures=1, particles=3, walkers=4,
                 draws=2 * _LAGS, thin=1)  # fmt: skip
        if self.rate <= 0 or not 0 <= self.decay < 1 or self.looks > self.updates:
            raise ValueError(
                "rate, decay, looks: expected rate > 0, decay in [0, 1) and no more looks than updates, got "
                f"{self.rate}, {self.decay}, {self.looks} in {self.updates}"
            )


@functools.cache
def _images() -> Images:
    return digits()


def bits(config: RBMDigits, part: str) -> Int[Tensor, "images 64"]:
    """The training or test images with their pixels drawn once: what all log-likelihoods are of."""
    images = {"train": _images().train, "test": _images().test}[part]
    return _images().binarised(images, seed=substream(config.seed, 1 if part == "train" else 2)).to(config.device)


def build(config: RBMDigits) -> RBM:
    """The machine before training: small weights, visible biases at the logits of the mean image."""
    start = Bernoulli.fit(bits(config, "train").cpu()).logits.detach()
    small = RBM(len(start), config.hidden, seed=substream(config.seed, 3))
    return RBM.from_weights(small.weight, start, small.hidden_bias).to(config.device)


TRAINED = Trained(
    build=build,
    data=lambda config: bits(config, "train"),
    kernel=lambda config: BlockGibbs(),
    image=lambda config: _images().shape,
)


def run(config: RBMDigits, directory: RunDirectory, bars: Bars) -> None:
    """Learns the machine, with a bracket at each look; then brackets what is kept, and runs chains of it."""
    sweeps = 2 * config.draws * config.thin
    with bars.total(config.updates + sweeps) as part:
        _independent(config, directory)
        if not directory.model_path.exists():
            _learn(config, directory, part("learning"))
        else:
            part("learning")(config.updates)
        machine = TRAINED.load(config, directory)
        assert isinstance(machine, RBM)
        found = {row.get("kind") for row in directory.results()}
        if "log_z" not in found:
            part("bracketing log Z")
            _bracket(config, machine, directory)
        if "chains" not in found:
            _draw(config, machine, directory, part("sampling"))


def _independent(config: RBMDigits, directory: RunDirectory) -> None:
    """The baseline: each pixel for itself, with its frequency in the training images; its log Z is 0."""
    if any(row.get("kind") == "independent" for row in directory.results()):
        return
    train = bits(config, "train")
    base = Bernoulli.fit(train).to(config.device)
    row = {part: float(base(bits(config, part)).double().mean().detach()) for part in ("train", "test")}
    directory.record({"kind": "independent", "images": len(train), "test_images": len(bits(config, "test")), **row})


def _learn(config: RBMDigits, directory: RunDirectory, advance: Advance) -> None:
    """Maximum likelihood with persistent chains (PCD), the averaged weights kept.

    It is one run of `fit`, stopped at each look and gone on with: each look that was recorded is not taken again.
    """
    machine = build(config).requires_grad_(True)
    start = Bernoulli.fit(bits(config, "train").cpu()).sample(config.chains, seed=substream(config.seed, 4))
    objective = Contrastive(machine, Persistent(BlockGibbs(), start.to(config.device), config.steps))
    data = Binarised(_images().grey(_images().train))
    optimiser, average = torch.optim.Adam(objective.parameters(), config.rate), Average(machine, config.decay)
    options: dict[str, Any] = {
        "optimiser": optimiser, "average": average, "batch": config.batch, "seed": config.seed, "out": directory.path,
        "schedule": Cosine(config.updates, end=0.01), "log_every": max(1, config.updates // 100),
        "save_every": max(1, config.updates // 20),
    }  # fmt: skip
    averaged, before = build(config).requires_grad_(False), 0
    taken = {row["updates"] for row in directory.results() if row.get("kind") == "look"}
    for look in range(1, config.looks + 1):
        updates = config.updates * look // config.looks
        if updates in taken and look < config.looks:
            continue
        finished(fit(objective, data, steps=updates, progress=beyond(before, advance), **options))
        before = updates
        average.copy_to(averaged)
        if updates not in taken:
            directory.record({"kind": "look", "updates": updates, **_likelihoods(config, averaged, config.temperatures)[1]})
    directory.save_model(averaged)


def _likelihoods(config: RBMDigits, machine: RBM, temperatures: int) -> tuple[Estimate, Result]:
    """log Z between its ends, and the mean log-likelihood of both parts: value, error, ends, trust."""
    train = bits(config, "train")
    seed = substream(config.seed, 5)
    log_z = bracket(machine, data=train, seed=seed, temperatures=temperatures, chains=config.particles)
    each = {part: log_likelihood(machine, bits(config, part), log_z) for part in ("train", "test")}
    ends = {part: [mean.value, mean.stderr, mean.lower, mean.upper] for part, mean in each.items()}
    return log_z, {**ends, "trusted": log_z.trusted, "why": log_z.why}


def _bracket(config: RBMDigits, machine: RBM, directory: RunDirectory) -> None:
    """The bracket of the model that is kept; where log Z can be summed, it stands beside it."""
    log_z, row = _likelihoods(config, machine, 10 * config.temperatures)
    directory.save_log_z(log_z)
    exact = float(machine.log_z()) if config.hidden <= _ENUMERABLE else None
    base = Bernoulli.fit(bits(config, "train")).to(config.device)
    test = bits(config, "test")
    gain = (machine(test) - base(test).detach()).double()  # but for log Z: its error over images is that of the gain
    row |= {"log_z": asdict(replace(log_z, cost=tuple(log_z.cost))), "exact": exact, "gain_deviation": float(gain.std())}
    largest = machine.weight.norm(dim=1).argsort(descending=True)[:_SHOWN]
    directory.save_samples("model", {"filters": machine.weight[largest].view(-1, *_images().shape)})
    directory.record({"kind": "log_z", **row})


def _draw(config: RBMDigits, machine: RBM, directory: RunDirectory, advance: Advance) -> None:
    """Chains from independent pixels; R-hat, ESS and autocorrelation of U and of the number of pixels that are on."""
    source = generator(substream(config.seed, 6), torch.device(config.device))
    start = Bernoulli.fit(bits(config, "train")).to(config.device).sample(config.walkers, seed=source)
    sweeps = config.draws * config.thin
    sizes = {"steps": sweeps, "warmup": sweeps, "thin": config.thin, "seed": source, "progress": advance}
    chain = finished(run_chains(BlockGibbs(), machine, start, **sizes))
    lit = chain.samples.double().sum(-1)
    row: Result = {"kind": "chains", "acceptance": chain.accept_rate, "seconds": chain.seconds}
    for name, values in (("U", chain.u), ("pixels that are on", lit)):
        row[name] = {"rhat": float(rhat(values)), "ess": float(ess(values)), "mean": float(values.double().mean()),
                     "autocorrelation": autocorrelation(values, _LAGS).tolist()}  # fmt: skip
    samples, grey = chain.samples[-1, :_SHOWN], _images().grey(_images().test[:_SHOWN])
    hidden = bernoulli(machine.hidden_logits(samples), source)
    pictures = {"samples": samples, "probabilities": machine.visible_logits(hidden).sigmoid(),
                "data": bits(config, "test")[:_SHOWN], "grey": grey}  # fmt: skip
    shaped = {name: x.view(-1, *_images().shape) for name, x in pictures.items()}
    directory.save_samples("chains", {**shaped, "u": chain.u})
    directory.record(row)


def findings(config: RBMDigits, results: Sequence[Result]) -> dict[str, float]:
    """The test log-likelihood, how far apart its ends are, what it has above independent pixels; R-hat of the chains; and
    the error of log Z where it is known.
    """
    rows = {row["kind"]: row for row in results if "kind" in row}
    found: dict[str, float] = {}
    if (last := rows.get("log_z")) is not None:
        value, _, lower, upper = last["test"]
        found |= {"test_log_likelihood": value, "its_ends_apart": upper - lower}
        found["above_independent_pixels"] = value - rows["independent"]["test"]
        if last["exact"] is not None:
            found["log_z_minus_exact"] = last["log_z"]["value"] - last["exact"]
    if (chains := rows.get("chains")) is not None:
        found["r_hat_of_u"] = chains["U"]["rhat"]
    return found


RECIPE = Recipe(
    figure="the measurement of Salakhutdinov and Murray (2008), table 1, on smaller images and from both sides",
    summary="a restricted Boltzmann machine of handwritten digits, its log-likelihood bracketed; the demo",
    presets={
        "smoke": RBMDigits(hidden=12, updates=600, rate=0.01, looks=3, temperatures=100, draws=100, decay=0.99),
        "laptop": RBMDigits(),
    },
    run=run,
    findings=findings,
    page=page,
    trained=TRAINED,
)
