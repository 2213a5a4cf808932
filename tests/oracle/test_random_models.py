"""Stationarity on random small models: any kind, size, couplings, fields and clamp, under every discrete kernel."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

import gibbsite as gb

from ..models.helpers import stationarity_gap
from .cases import Uncorrected

S, M, D = gb.sample, gb.models, gb.distributions
SEEDS = 12  # models a kernel and family


@pytest.fixture(scope="module", autouse=True)
def double_throughout():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


class Dice:
    """The random numbers of one example."""

    def __init__(self, seed: int):
        self.g = torch.Generator().manual_seed(seed)
        self.scale = 2.5 * float(torch.rand((), generator=self.g))

    def size(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=self.g))

    def normal(self, *shape: int) -> torch.Tensor:
        return self.scale * torch.randn(shape, generator=self.g)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self.g)

    def pairs(self, sites: int) -> torch.Tensor:
        every = torch.triu_indices(sites, sites, 1).T
        return every[self.uniform(len(every)) < 0.7]


def ising(dice: Dice, sites: int | None = None) -> gb.Model:
    sites = sites or dice.size(2, 5)
    couplings = dice.normal(sites, sites).triu(1)
    return M.Ising(couplings + couplings.T, dice.normal(sites))


def ferromagnet(dice: Dice) -> gb.Model:
    sites = dice.size(2, 4)
    pairs = dice.pairs(sites)
    return M.Ising.from_edges(sites, pairs, dice.scale * dice.uniform(len(pairs)), dice.normal(sites))


def potts(dice: Dice) -> gb.Model:
    """Ferromagnetic: a multiple of the identity on every edge."""
    sites, states = dice.size(2, 4), dice.size(2, 3)
    pairs = dice.pairs(sites)
    strength = dice.scale * dice.uniform(len(pairs), 1, 1)
    return M.Potts.from_edges(sites, states, pairs, strength * torch.eye(states), dice.normal(sites, states))


def any_potts(dice: Dice) -> gb.Model:
    sites, states = dice.size(2, 3), dice.size(2, 3)
    pairs = dice.pairs(sites)
    return M.Potts.from_edges(sites, states, pairs, dice.normal(len(pairs), states, states), dice.normal(sites, states))


def rbm(dice: Dice) -> gb.Model:
    visible, hidden = dice.size(2, 4), dice.size(1, 3)
    return M.RBM.from_weights(dice.normal(hidden, visible), dice.normal(visible), dice.normal(hidden))


def fhmm(dice: Dice) -> gb.Model:
    times, factors = dice.size(1, 2), dice.size(1, 2)
    start, stay = (0.05 + 0.9 * dice.uniform(factors) for _ in range(2))
    return M.FHMM(dice.normal(times), dice.normal(factors), float(dice.normal()), start=start, stay=stay)


def function(dice: Dice, space: gb.Binary | gb.Categorical) -> Callable[[torch.Tensor], torch.Tensor]:
    """Nonlinear in every site, no closed form."""
    view = space.embed(space.uniform().sample(1, seed=0))[0]
    mixing = dice.normal(view.numel(), 3)
    return lambda x: torch.tanh(space.embed(x).flatten(-view.ndim) @ mixing).sum(-1) * 2


def bits(dice: Dice) -> gb.Model:
    space = gb.Binary((dice.size(1, 2), dice.size(1, 2)))
    return gb.Potential(function(dice, space), space)


def letters(dice: Dice) -> gb.Model:
    space = gb.Categorical(dice.size(1, 3), dice.size(2, 4))
    return gb.Potential(function(dice, space), space)


def product(dice: Dice) -> gb.Model:
    """Terms with and without a closed form, one of negative weight."""
    one = ising(dice, dice.size(2, 4))
    other = function(dice, one.space) if dice.size(0, 1) else D.Bernoulli(dice.normal(one.space.sites))
    return gb.Product(one, other, weights=[-0.7, 1.3])


BLOCKED = (ising, ferromagnet, potts, any_potts, rbm, fhmm)
CLUSTERS = (ferromagnet, potts)
ANY = (*BLOCKED, bits, letters, product)


class Draw(NamedTuple):
    """What a kernel is made for."""

    model: gb.Model
    clamp: torch.Tensor | None
    dice: Dice


def independent(draw: Draw) -> S.Kernel:
    space = draw.model.space
    logits = draw.dice.normal(*space.shape, space.states)
    binary = isinstance(space, gb.Binary)
    return S.MH(S.Independent(D.Bernoulli(logits[..., 0]) if binary else D.Independent(logits), clamp=draw.clamp))


def blocks(draw: Draw) -> list[list[int]]:
    """Pairs of neighbouring sites that overlap, in a random order."""
    sites = draw.model.space.sites
    starts = torch.randperm(max(1, sites - 1), generator=draw.dice.g).tolist()
    return [list(range(first, min(first + 2, sites))) for first in starts]


def mh(proposal: Callable[..., S.Proposal], *values: object, **words: object) -> Callable[[Draw], S.Kernel]:
    return lambda draw: S.MH(proposal(*values, **words, clamp=draw.clamp))


def plain(kernel: Callable[..., S.Kernel], *values: object) -> Callable[[Draw], S.Kernel]:
    return lambda draw: kernel(*values, clamp=draw.clamp)


def both(draw: Draw) -> list[S.Kernel]:
    return [S.MH(S.Informed(clamp=draw.clamp)), S.Gibbs(clamp=draw.clamp)]


KERNELS = {
    "Gibbs": (plain(S.Gibbs, 2), ANY),
    "GibbsSweep": (plain(S.GibbsSweep), ANY),
    "BlockGibbs": (plain(S.BlockGibbs), BLOCKED),
    "HammingBall": (plain(S.HammingBall, 2, 1), ANY),
    "HammingBall, whole": (plain(S.HammingBall, 9, 2), ANY),
    "GWG": (mh(S.Informed), ANY),
    "GWG, 3 draws": (mh(S.Informed, draws=3), ANY),
    "Zanella, Barker": (mh(S.Informed, how="exact", balance=S.Barker()), ANY),
    "Zanella, min": (mh(S.Informed, how="enumerate", balance=S.Minimum()), ANY),
    "Zanella, max": (mh(S.Informed, how="exact", balance=S.Maximum()), ANY),
    "GWG, temperature": (mh(S.Informed, balance=S.Power(1.3)), ANY),
    "GWG, window": (mh(S.InformedWindow, 2), ANY),
    "path auxiliary": (mh(S.PathAuxiliary, 3), ANY),
    "DMALA": (mh(S.DiscreteLangevin, 0.7), ANY),
    "DMALA, exact": (mh(S.DiscreteLangevin, 0.7, how="exact", balance=S.Barker()), ANY),
    "independence": (independent, ANY),
    "random walk": (mh(S.RandomFlips, 1), ANY),
    "random walk, 3": (mh(S.RandomFlips, 3), ANY),
    "within Gibbs": (lambda draw: S.WithinGibbs(lambda held: S.Informed(clamp=held), blocks(draw), draw.clamp), ANY),
    "Wolff": (plain(S.Wolff), CLUSTERS),
    "Swendsen-Wang": (plain(S.SwendsenWang), CLUSTERS),
    "Cycle": (lambda draw: S.Cycle(both(draw)), ANY),
    "Followed": (lambda draw: S.Followed(*both(draw)), ANY),
    "Mixture": (lambda draw: S.Mixture(both(draw), [1, 3]), ANY),
    "Repeat": (lambda draw: S.Repeat(both(draw)[0], 2), ANY),
}


def drawn(family: Callable[[Dice], gb.Model], seed: int) -> Draw:
    """The model of this seed, of strength 0 to 2.5, with a random clamp if the seed is odd."""
    dice = Dice(seed)
    model = family(dice)
    held = dice.uniform(*model.space.shape) < 0.4
    return Draw(model, held if seed % 2 and not held.all() else None, dice)


@pytest.mark.parametrize(
    ("kernel", "family"),
    [(kernel, family) for kernel in KERNELS for family in KERNELS[kernel][1]],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_every_kernel_is_stationary_on_any_small_model(kernel, family):
    for seed in range(SEEDS):
        draw = drawn(family, seed)
        assert stationarity_gap(KERNELS[kernel][0](draw), draw.model, draw.clamp) < 1e-10, f"seed {seed}"


def test_every_discrete_kernel_is_here():
    """Tempering's law is on a joint space (test_stationarity.py); the relaxed kernels are not stationary on bits alone."""
    made = [KERNELS[name][0](drawn(ferromagnet, 0)) for name in KERNELS]
    seen = {type(kernel.proposal if isinstance(kernel, S.MH) else kernel) for kernel in made}
    source = [
        value for value in vars(S).values() if isinstance(value, type) and "clamp" in getattr(value, "__annotations__", {})
    ]
    assert set(source) <= seen and {S.Cycle, S.Followed, S.Mixture, S.Repeat} <= seen


@pytest.mark.parametrize("family", [ising, letters, product], ids=lambda family: family.__name__)
def test_a_forgotten_correction_is_seen_on_a_random_model(family):
    draw = drawn(family, 2)
    assert stationarity_gap(S.MH(Uncorrected(S.Informed())), draw.model) > 1e-4
