"""What deep-ebm learns: images as bits or grey levels, made smaller if asked, and the model of them before training."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn

from .. import datasets
from ..algebra import Tilt
from ..datasets import Images
from ..distributions import Bernoulli, Independent
from ..estimate import fit_base
from ..learn import Binarised, Data, Rows
from ..models import ResidualNet
from ..random import generator, substream
from ..space import Binary, Categorical
from .recipe import at_least

Name = Literal["mnist", "frey_faces", "digits", "grey_digits"]
_LOADERS = {
    "mnist": datasets.mnist,
    "frey_faces": datasets.frey_faces,
    "digits": datasets.digits,
    "grey_digits": datasets.digits,
}
_GREY = ("frey_faces", "grey_digits")
_STATIC = substream(2021, 0)  # where the bits of images that are looked at more than once come from, whatever the run's seed


@final
@dataclass(frozen=True)
class DeepEBM:
    """Learn a deep energy-based model of images, and bracket its log-likelihood."""

    data: Name = "mnist"
    """Images: mnist and digits as bits, drawn anew whenever one is read; frey_faces and grey_digits as grey levels."""
    shrink: tuple[int, int] = (2, 2)
    """Rows and columns that are averaged into one pixel."""
    levels: int = 16
    """Grey levels of frey_faces and grey_digits, a category each; the original has 256."""
    features: int = 32
    """Feature maps of the residual network."""
    blocks: int = 4
    """Residual blocks; the first two halve the sides."""
    embedding: int = 4
    """Numbers that a grey level is embedded in."""
    sampler: Literal["GWG", "Gibbs"] = "GWG"
    """What moves the chains while learning."""
    steps: int = 20
    """Steps of GWG before each update; Gibbs makes as many as evaluate U as often."""
    slots: int = 1000
    """States in the replay buffer."""
    batch: int = 50
    """Images, and states of the buffer, for each update."""
    updates: int = 1500
    """Steps of Adam."""
    rate: float = 0.0005
    """Adam's learning rate."""
    warmup: int = 150
    """Updates over which the learning rate rises."""
    average: float = 0.99
    """Weight of the past in the moving average of the weights."""
    temperatures: tuple[int, ...] = (30, 100, 300, 1000, 3000, 10_000)
    """Numbers of annealing steps of the estimates of log Z."""
    moves: int = 1
    """Pixels that each annealing step changes: 1 is GWG, more are path-auxiliary moves (odd on bits)."""
    chains: int = 50
    """Annealed chains of each estimate, in either direction."""
    shown: int = 20
    """Images in each row of the report."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, shrink=1, levels=2, features=1, blocks=2, embedding=1, steps=1, slots=1, batch=1, updates=1)
        at_least(self, warmup=1, temperatures=1, moves=1, chains=3, shown=1)
        if self.data not in _LOADERS or self.sampler not in ("GWG", "Gibbs"):
            names = ", ".join(_LOADERS)
            raise ValueError(f"data, sampler: expected one of {names}; GWG or Gibbs; got {self.data}, {self.sampler}")
        if self.moves % 2 == 0 and self.data not in _GREY:
            raise ValueError(f"moves: expected an odd number on bits, whose parity would stay otherwise, got {self.moves}")
        if len(self.shrink) != 2 or self.rate <= 0 or not 0 <= self.average < 1 or self.batch > self.slots:
            raise ValueError(
                "shrink, rate, average, batch: expected rows and columns, rate > 0, average in [0, 1) and no larger batch "
                f"than slots, got {self.shrink}, {self.rate}, {self.average}, {self.batch} of {self.slots}"
            )


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """Images to learn from, their space, and `train` and `test` as states that stay."""

    space: Binary | Categorical
    data: Data
    train: Tensor
    test: Tensor


def problem(config: DeepEBM) -> Problem:
    """The images of a configuration, as its model takes them."""
    images = _LOADERS[config.data]()
    train, test = (smaller(images, part, config.shrink) for part in (images.train, images.test))
    shape = tuple(train.shape[1:])
    if config.data in _GREY:
        space = Categorical(shape, config.levels)
        train, test = (part.mul(config.levels - 1).round().to(space.dtype) for part in (train, test))
        return Problem(space, Rows(train), train, test)
    source = generator(_STATIC)
    data = Binarised(train)
    still = (part.rows(torch.arange(len(part)), source) for part in (data, Binarised(test)))
    return Problem(Binary(shape), data, *still)


def smaller(images: Images, part: Tensor, shrink: tuple[int, int]) -> Tensor:
    """Grey values in [0, 1], (n, rows, columns), each the mean of a block of pixels."""
    grey = images.grey(part).view(-1, 1, *images.shape)
    if images.shape[0] % shrink[0] or images.shape[1] % shrink[1]:
        raise ValueError(f"shrink: expected divisors of {images.shape}, the size of {images.name}, got {shrink}")
    return nn.functional.avg_pool2d(grey, shrink)[:, 0].clamp(0, 1)


def train_states(config: DeepEBM) -> Tensor:
    """The training images as states."""
    return problem(config).train


def shape(config: DeepEBM) -> tuple[int, int]:
    """Rows and columns of an image."""
    rows, columns = problem(config).space.shape
    return rows, columns


def untrained(config: DeepEBM) -> Tilt:
    """The model before training."""
    return model(config, problem(config))


def model(config: DeepEBM, images: Problem) -> Tilt:
    """U = log q + V before training: q independent pixels as frequent as in the images, V the residual network.

    Only V is learned. q makes the first chains look like the mean image, and is where annealing starts.
    """
    base = fit_base(images.space, images.train)
    assert isinstance(base, Bernoulli | Independent)
    network = ResidualNet(
        images.space,
        features=config.features,
        blocks=config.blocks,
        embedding=config.embedding,
        seed=substream(config.seed, 1),
    )
    return Tilt(base.requires_grad_(False), network).to(config.device)
