"""A restricted Boltzmann machine of MNIST, learned by PCD and normalised from both sides; samplers on what it learned."""

import functools
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, final

import torch
from jaxtyping import Int
from torch import Tensor

from ..datasets import Images, digits, mnist
from ..diagnose import mmd
from ..distributions import Bernoulli
from ..estimate import Estimate, bracket, log_likelihood
from ..learn import Average, Binarised, Centred, Contrastive, Persistent, fit
from ..learn.schedule import Polynomial
from ..models import RBM
from ..random import generator, substream
from ..report import RunDirectory
from ..report.directory import Result
from ..sample import MH, BlockGibbs, Gibbs, HammingBall, Informed, trace
from ..sample.kernel import Kernel
from .rbm_mnist_page import findings, page
from .recipe import Advance, Bars, Recipe, at_least, beyond, finished
from .relaxations import floor, last_states
from .trained import Trained

_ENUMERABLE = 16  # hidden units up to which log Z is summed too
_SHOWN = 64  # images in a picture
_TRAIN, _TEST, _WEIGHTS, _CHAINS, _BRACKET, _TRUTH, _SAMPLERS = range(
    1, 8
)  # streams of one seed; from the last on, samplers'


@final
@dataclass(frozen=True)
class RBMMnist:
    """Learn an RBM from binary images by PCD, bracket its log-likelihood, and see how fast samplers reach its law."""

    images: Literal["mnist", "digits"] = "mnist"
    """MNIST, or scikit-learn's digits of 8 x 8 pixels."""
    hidden: int = 500
    """Hidden units."""
    updates: int = 50_000
    """Steps of SGD on the centred gradient."""
    batch: int = 100
    """Images in a mini-batch, drawn anew from their grey levels each time; also the number of persistent chains."""
    steps: int = 5
    """Sweeps of block Gibbs that the chains make before each update."""
    rate: float = 0.2
    """Learning rate at first; it falls to 0 in a straight line."""
    average: float = 0.999
    """Decay of the moving average of the weights, which is what is kept and evaluated."""
    looks: int = 10
    """How often the log-likelihood is bracketed while learning."""
    look_temperatures: int = 500
    """Steps of annealing of these brackets."""
    temperatures: int = 10_000
    """Steps of annealing, in either direction, of the bracket of the machine that is kept."""
    particles: int = 100
    """Chains of annealing in either direction."""
    truth: int = 500
    """Chains of block Gibbs whose last states stand for the machine's law."""
    truth_steps: int = 5000
    """Sweeps that they make, from uniform random bits."""
    draws: int = 100
    """Chains of each sampler that is compared with them."""
    moves: int = 2000
    """Steps that these make, from uniform random bits."""
    ball: int = 10
    """Sites in a block of the Hamming ball sampler, whose radius is 1."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, hidden=1, updates=1, batch=1, steps=1, looks=1, look_temperatures=1, temperatures=1, particles=3,
                 truth=2, truth_steps=1, draws=2, moves=1, ball=1)  # fmt: skip
        if self.rate <= 0 or not 0 <= self.average < 1 or self.looks > self.updates or self.images not in _SETS:
            raise ValueError(
                "images, rate, average, looks: expected mnist or digits, rate > 0, average in [0, 1) and no more looks than "
                f"updates, got {self.images}, {self.rate}, {self.average}, {self.looks} in {self.updates}"
            )


_SETS = {"mnist": mnist, "digits": digits}


@functools.cache
def _images(name: str) -> Images:
    return _SETS[name]()


def bits(config: RBMMnist, part: Literal["train", "test"]) -> Int[Tensor, "images pixels"]:
    """The training or test images with their pixels drawn once: what all log-likelihoods are of."""
    images = _images(config.images)
    grey, stream = {"train": (images.train, _TRAIN), "test": (images.test, _TEST)}[part]
    return images.binarised(grey, seed=substream(config.seed, stream)).to(config.device)


def build(config: RBMMnist) -> RBM:
    """The machine before training: small weights, visible biases at the logits of the mean image."""
    start = Bernoulli.fit(bits(config, "train").cpu()).logits.detach()
    small = RBM(len(start), config.hidden, seed=substream(config.seed, _WEIGHTS))
    return RBM.from_weights(small.weight, start, small.hidden_bias).to(config.device)


TRAINED = Trained(
    build=build,
    data=lambda config: bits(config, "train"),
    kernel=lambda config: BlockGibbs(),
    image=lambda config: _images(config.images).shape,
)


def samplers(config: RBMMnist) -> Mapping[str, Kernel]:
    """The five that the paper compares; a step of Gibbs redraws one site, chosen at random."""
    gwg = {f"GWG-{n}" if n > 1 else "GWG": MH(Informed(draws=n)) for n in (1, 3, 5)}
    return {"Gibbs": Gibbs(), "Hamming ball": HammingBall(config.ball), **gwg}


def run(config: RBMMnist, directory: RunDirectory, bars: Bars) -> None:
    """Learns the machine, brackets it, and runs the samplers; goes on where an earlier call was cut short."""
    done = {(row["kind"], row.get("sampler")) for row in directory.results() if "kind" in row}
    kernels = samplers(config)
    with bars.total(config.updates + 3 * config.temperatures + config.truth_steps + len(kernels) * config.moves) as part:
        learning = part("learning")
        if ("learned", None) in done:
            learning(config.updates)
        else:
            learn(config, directory, learning)
        machine = TRAINED.load(config, directory)
        assert isinstance(machine, RBM)
        if ("bracket", None) not in done:
            log_z, row = bracketed(config, machine, config.temperatures, part("bracketing log Z"))
            directory.save_log_z(log_z)
            directory.record(row)
        if not directory.samples("truth"):
            draw_truth(config, machine, directory, part("ground truth"))
        truth = directory.samples("truth")["x"].to(config.device)
        for place, (name, kernel) in enumerate(kernels.items()):
            if ("mmd", name) not in done:
                directory.record(approach(config, machine, truth, name, kernel, place, part(name)))


def learn(config: RBMMnist, directory: RunDirectory, advance: Advance) -> None:
    """Maximum likelihood with persistent chains, in pieces with a look at the end of each; `fit` goes on with its last."""
    images, train = _images(config.images), bits(config, "train")
    machine, base = build(config).requires_grad_(True), Bernoulli.fit(train.cpu())
    start = base.sample(config.batch, seed=substream(config.seed, _CHAINS)).to(config.device)
    chains = Persistent(BlockGibbs(), start, config.steps)
    objective, data = Contrastive(machine, chains), Binarised(images.grey(images.train))
    average, averaged = Average(machine, config.average), build(config).requires_grad_(False)
    piece, before = -(-config.updates // config.looks), 0
    options: dict[str, Any] = {
        "optimiser": torch.optim.SGD(objective.parameters(), lr=config.rate), "average": average, "batch": config.batch,
        "seed": config.seed, "clip": Centred(machine, base.logits.detach().sigmoid()), "out": directory.path,
        "schedule": Polynomial(config.updates), "log_every": max(1, config.updates // 200), "save_every": piece,
    }  # fmt: skip
    looked = {row["updates"] for row in directory.results() if row.get("kind") == "look"}
    for updates in [min(config.updates, piece * look) for look in range(1, config.looks + 1)]:
        if updates in looked and updates < config.updates:
            continue
        began = time.process_time()
        finished(fit(objective, data, steps=updates, progress=beyond(before, advance), **options))
        seconds, before = time.process_time() - began, updates
        average.copy_to(averaged)
        if updates not in looked:
            _, look = bracketed(config, averaged, config.look_temperatures)
            directory.record(look | {"kind": "look", "updates": updates, "learning": seconds})
    directory.save_model(averaged)
    largest = averaged.weight.norm(dim=1).argsort(descending=True)[:_SHOWN]
    shown = {"filters": averaged.weight[largest], "data": bits(config, "test")[:_SHOWN], "chains": chains.x[:_SHOWN]}
    directory.save_samples("images", {name: x.view(-1, *images.shape) for name, x in shown.items()})
    alone = {part: base.to(config.device)(bits(config, part)).mean().item() for part in ("train", "test")}
    directory.record({"kind": "learned", "images": [len(train), len(bits(config, "test"))], "alone": alone})


def bracketed(config: RBMMnist, machine: RBM, temperatures: int, advance: Advance | None = None) -> tuple[Estimate, Result]:
    """log Z between its ends, the mean log-likelihood of both parts, and log Z itself where it can be summed."""
    began, train = time.process_time(), bits(config, "train")
    log_z = bracket(
        machine, data=train, temperatures=temperatures, chains=config.particles, progress=advance or False,
        seed=substream(config.seed, _BRACKET),
    )  # fmt: skip
    seconds = time.process_time() - began
    means = {part: log_likelihood(machine, bits(config, part), log_z) for part in ("train", "test")}
    row: Result = {part: [mean.value, mean.stderr, mean.lower, mean.upper] for part, mean in means.items()}
    row |= {"log_z": asdict(replace(log_z, cost=tuple(log_z.cost))), "seconds": seconds}  # pyright: ignore
    return log_z, row | {"kind": "bracket", "exact": machine.log_z().item() if config.hidden <= _ENUMERABLE else None}


def draw_truth(config: RBMMnist, machine: RBM, directory: RunDirectory, advance: Advance) -> None:
    """The last states of long chains of block Gibbs, and the MMD to them that exact draws would have."""
    source = generator(substream(config.seed, _TRUTH), config.device)
    x = last_states(BlockGibbs(), machine, config.truth, config.truth_steps, source, advance)
    directory.save_samples("truth", {"x": x})
    directory.record({"kind": "floor", "mmd": floor(x, config.draws)})


def approach(
    config: RBMMnist, machine: RBM, truth: Tensor, name: str, kernel: Kernel, place: int, advance: Advance
) -> Result:
    """The squared MMD to the truth of one sampler's chains after ever more steps, and the CPU seconds these took."""
    source = generator(substream(config.seed, _SAMPLERS + place), config.device)
    x = machine.space.uniform().sample(config.draws, seed=source)
    steps, gaps, seconds, accepted = [0], [mmd(x, truth).item()], 0.0, 0.0
    for wanted in moments(config.moves):
        more, began = wanted - steps[-1], time.process_time()
        options = {"steps": more, "thin": more, "seed": source, "progress": advance}
        part = finished(trace(kernel, machine, x, statistic=lambda x: x[:, :0], **options))
        x, seconds = part.state.x, seconds + time.process_time() - began
        accepted += more * part.acceptance.mean().item()
        steps.append(wanted)
        gaps.append(mmd(x, truth).item())
    row = {"steps": steps, "mmd": gaps, "seconds": seconds, "acceptance": accepted / config.moves}
    return {"kind": "mmd", "sampler": name, **row}


def moments(last: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, ... up to `last`, and `last`."""
    powers = range(len(str(last)))
    return [*(n * 10**power for power in powers for n in (1, 2, 5) if n * 10**power < last), last]


RECIPE = Recipe(
    figure="GWG paper, appendix E: figures 3 and 9, log-MMD of samplers on an RBM of MNIST, and its samples, figure 10",
    summary="an RBM of MNIST by PCD, its log-likelihood bracketed; Gibbs, Hamming ball and GWG on it",
    presets={
        "smoke": RBMMnist(
            images="digits", hidden=12, updates=2000, rate=0.05, looks=2, look_temperatures=50, temperatures=500,
            truth=400, truth_steps=500, draws=200, moves=40,
        ),
        "laptop": RBMMnist(),
        "paper": RBMMnist(updates=1_000_000, steps=25, temperatures=100_000, truth_steps=10_000, moves=10_000),
    },
    run=run,
    findings=findings,
    page=page,
    trained=TRAINED,
)  # fmt: skip
