"""Every discrete kernel with a model it is tested on, and for each a mutant: the same kernel with one plausible mistake."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

import gibbsite as gb
from gibbsite import random
from gibbsite.model import evaluate
from gibbsite.sample.clamp import discrete
from gibbsite.sample.gibbs import start
from gibbsite.sample.hamming_ball import _ball, _shift
from gibbsite.sample.kernel import Cost, Kernel, Proposal, State, always, select

S = gb.sample


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def spins() -> gb.Model:
    """Eight spins, couplings of both signs and fields."""
    g = _generator()
    couplings = 0.4 * torch.randn(8, 8, generator=g).triu(1)
    return gb.models.Ising(couplings + couplings.T, 0.3 * torch.randn(8, generator=g))


def ring() -> gb.Model:
    """A bipartite graph of eight ferromagnetic spins with fields."""
    edges = torch.tensor([[i, (i + 1) % 8] for i in range(8)] + [[0, 3]])
    weights = 0.2 + 0.5 * torch.rand(9, generator=_generator())
    return gb.models.Ising.from_edges(8, edges, weights, 0.3 * torch.randn(8, generator=_generator()))


def annealed() -> gb.Model:
    """The ring halfway from independent bits: a sum that has the ring's colour classes."""
    base = gb.distributions.Bernoulli(torch.randn(8, generator=_generator()))
    return gb.Geometric(base, ring()).at(0.6)


def colours() -> gb.Model:
    """Five sites of three states, no closed form, not multilinear."""
    table = torch.randn(5, 3, generator=_generator())
    space = gb.Categorical(5, 3)

    def potential(x):
        z = space.embed(x) * table
        return z.sum((-1, -2)) + torch.tanh(z.sum(-1)).prod(-1) + (z[..., 1:, :] * z[..., :-1, :]).sum((-1, -2))

    return gb.Potential(potential, space)


def bits() -> gb.Model:
    """Eight bits with a smooth potential that first order does not capture."""
    mixing = torch.randn(8, 4, generator=_generator())
    space = gb.Binary(8)
    return gb.Potential(lambda x: torch.tanh(space.embed(x) @ mixing).sum(-1) * 1.5, space)


@dataclass(frozen=True)
class Uncorrected(Proposal):
    """The proposal with its reverse probability forgotten (GWG's `fixed_proposal` fault: the ratio of q is taken as 1)."""

    proposal: Proposal

    def init(self, model, x):
        return self.proposal.init(model, x)

    def propose(self, model, state, generator):
        new, ratio, cost = self.proposal.propose(model, state, generator)
        return new, torch.zeros_like(ratio), cost


@dataclass(frozen=True)
class Inverted(Uncorrected):
    """The proposal with q(old) / q(new) upside down."""

    def propose(self, model, state, generator):
        new, ratio, cost = self.proposal.propose(model, state, generator)
        return new, -ratio, cost


@dataclass(frozen=True)
class Synchronous(Kernel):
    """All sites redrawn at once from the conditionals at the old state: coupled sites in one block."""

    def init(self, model, x):
        return start(model, x)

    def step(self, model, state, generator):
        _, change = gb.site_logits(model, state.x)
        x = random.categorical(change, generator).to(state.x.dtype).view_as(state.x)
        return State(x, evaluate(model, x)), always(state.u, Cost())


@dataclass(frozen=True)
class SynchronousBlocks(Kernel):
    """Block Gibbs whose blocks hold coupled sites: the check is skipped."""

    def init(self, model, x):
        return start(model, x)

    def step(self, model, state, generator):
        x = state.x
        for block in (torch.arange(4), torch.arange(4, 8)):
            sites = block.expand(len(x), -1)
            _, change = gb.site_logits(model, x, sites=sites)
            drawn = random.categorical(change, generator)
            x = x.scatter(1, sites, drawn.to(x.dtype))
        return State(x, evaluate(model, x)), always(state.u, Cost())


@dataclass(frozen=True)
class WrongMove(Kernel):
    """Gibbs that always leaves the current value when it can: k != x_i with its conditional probability."""

    def init(self, model, x):
        return start(model, x)

    def step(self, model, state, generator):
        sites = discrete(model).sites
        site = random.integers(sites, (len(state.x),), generator)[:, None]
        _, change = gb.site_logits(model, state.x, sites=site)
        change = change[:, 0].scatter(1, state.x.long().gather(1, site), -torch.inf)
        x = state.x.scatter(1, site, random.categorical(change, generator)[:, None].to(state.x.dtype))
        return State(x, evaluate(model, x)), always(state.u, Cost())


@dataclass(frozen=True)
class Centreless(Kernel):
    """The Hamming ball around x itself, without drawing a centre first."""

    def init(self, model, x):
        return start(model, x)

    def step(self, model, state, generator):
        space, block = discrete(model), torch.arange(3).expand(len(state.x), -1)
        shifts = _ball(3, 1, space.states)
        ball = torch.stack([_shift(state.x, block, row.expand(len(block), -1), space.states) for row in shifts], 1)
        u = evaluate(model, ball)
        index = random.categorical(u, generator)
        row = torch.arange(len(block))
        return State(ball[row, index], u[row, index]), always(state.u, Cost())


@dataclass(frozen=True)
class WeakBonds(Kernel):
    """Wolff or Swendsen-Wang with the bond probability 1 - exp(-J) for 1 - exp(-2J)."""

    kernel: Kernel

    def init(self, model, x):
        return self.kernel.init(model, x)

    def step(self, model, state, generator):
        class Weak(gb.Model, gb.Ferromagnet):
            space = model.space

            def forward(self, x):
                return model(x)

            def bonds(self):
                edges, strength, field = model.bonds()
                return edges, strength / 2, field

        return self.kernel.step(Weak(), state, generator)


@dataclass(frozen=True)
class Impatient(Kernel):
    """Repeats a kernel until a step is accepted, twice at most: the number of steps depends on the outcome."""

    kernel: Kernel

    def init(self, model, x):
        return self.kernel.init(model, x)

    def step(self, model, state, generator):
        once, info = self.kernel.step(model, state, generator)
        twice, _ = self.kernel.step(model, once, generator)
        return select(info.accepted, once, twice), info


@dataclass(frozen=True)
class StateDependentMixture(Kernel):
    """A mixture whose choice looks at the state."""

    kernels: tuple[Kernel, Kernel]

    def init(self, model, x):
        return self.kernels[0].init(model, x)

    def step(self, model, state, generator):
        one, info = self.kernels[0].step(model, state, generator)
        other, _ = self.kernels[1].step(model, self.kernels[1].init(model, state.x), generator)
        return select(state.x[:, 0] == 0, one, self.kernels[0].init(model, other.x)), info


class Case(NamedTuple):
    name: str
    kernel: Callable[[], Any]
    model: Callable[[], gb.Model]
    mutant: Callable[[], Any]


def _base() -> gb.Distribution:
    return gb.distributions.Bernoulli(torch.randn(8, generator=_generator()))


def _mh(name: str, proposal: Callable[[], Proposal], model: Callable[[], gb.Model], mutant: type = Uncorrected) -> Case:
    return Case(name, lambda: S.MH(proposal()), model, lambda: S.MH(mutant(proposal())))


def _gwg() -> Kernel:
    return S.MH(S.Informed())


CASES = [
    Case("Gibbs", S.Gibbs, spins, WrongMove),
    Case("Gibbs, 2 sites", lambda: S.Gibbs(2), colours, lambda: S.Repeat(WrongMove(), 2)),
    Case("Gibbs, enumerated", S.Gibbs, bits, WrongMove),
    Case("GibbsSweep", S.GibbsSweep, spins, Synchronous),
    Case("GibbsSweep, 3 states", S.GibbsSweep, colours, Synchronous),
    Case("BlockGibbs", S.BlockGibbs, ring, SynchronousBlocks),
    Case("BlockGibbs, annealed ring", S.BlockGibbs, annealed, SynchronousBlocks),
    Case("HammingBall 3, 2", lambda: S.HammingBall(3, 2), spins, Centreless),
    Case("HammingBall 3, 1", lambda: S.HammingBall(3, 1), colours, Centreless),
    _mh("GWG", S.Informed, spins),
    _mh("GWG, not multilinear", S.Informed, bits),
    _mh("GWG, 3 states", S.Informed, colours),
    _mh("GWG, 3 draws", lambda: S.Informed(draws=3), spins),
    _mh("GWG, 2 draws, 3 states", lambda: S.Informed(draws=2), colours),
    _mh("GWG, window 2", lambda: S.InformedWindow(2), bits),
    _mh("GWG, window 3, 3 states", lambda: S.InformedWindow(3), colours),
    _mh("Zanella, square root", lambda: S.Informed(how="exact"), bits),
    _mh("Zanella, Barker", lambda: S.Informed(how="exact", balance=S.Barker()), colours),
    _mh("Zanella, min", lambda: S.Informed(how="exact", balance=S.Minimum()), bits),
    _mh("Zanella, max", lambda: S.Informed(how="exact", balance=S.Maximum()), bits),
    _mh("GWG, temperature 1.3", lambda: S.Informed(balance=S.Power(1.3)), spins),
    _mh("path auxiliary", lambda: S.PathAuxiliary(3), spins),
    _mh("path auxiliary, 3 states", lambda: S.PathAuxiliary(2), colours),
    _mh("DMALA", lambda: S.DiscreteLangevin(0.5), bits),
    _mh("DMALA, 3 states", lambda: S.DiscreteLangevin(1.0), colours),
    _mh("DMALA, exact Barker", lambda: S.DiscreteLangevin(0.5, how="exact", balance=S.Barker()), bits),
    _mh("independence (MIS)", lambda: S.Independent(_base()), spins, Inverted),
    Case("random walk", lambda: S.MH(S.RandomFlips(2)), colours, lambda: S.Unadjusted(S.RandomFlips(2))),
    Case(
        "MH within Gibbs",
        lambda: S.WithinGibbs(lambda held: S.Informed(clamp=held), blocks=[[0, 1, 2], [3, 4], [5, 6, 7]]),
        bits,
        lambda: S.WithinGibbs(lambda held: Uncorrected(S.Informed(clamp=held)), blocks=[[0, 1, 2], [3, 4], [5, 6, 7]]),
    ),
    Case("Swendsen-Wang", S.SwendsenWang, ring, lambda: WeakBonds(S.SwendsenWang())),
    Case("Wolff", S.Wolff, ring, lambda: WeakBonds(S.Wolff())),
    Case("Followed", lambda: S.Followed(_gwg(), S.Gibbs()), bits, lambda: S.Followed(_gwg(), WrongMove())),
    Case("Cycle", lambda: S.Cycle([_gwg(), S.Gibbs()]), bits, lambda: S.Cycle([_gwg(), WrongMove()])),
    Case(
        "Mixture",
        lambda: S.Mixture([_gwg(), S.GibbsSweep()], [1, 3]),
        bits,
        lambda: StateDependentMixture((_gwg(), S.GibbsSweep())),
    ),
    Case("Repeat", lambda: S.Repeat(_gwg(), 2), spins, lambda: Impatient(_gwg())),
]

_mask = torch.tensor([False, True, False, False, True, False, False, False])
CLAMPED = [
    ("Gibbs", S.Gibbs(clamp=_mask), spins),
    ("GibbsSweep", S.GibbsSweep(clamp=_mask), spins),
    ("BlockGibbs", S.BlockGibbs(clamp=_mask), ring),
    ("HammingBall", S.HammingBall(3, 2, clamp=_mask), spins),
    ("GWG", S.MH(S.Informed(clamp=_mask)), spins),
    ("GWG, 3 draws", S.MH(S.Informed(draws=3, clamp=_mask)), bits),
    ("GWG, window 2", S.MH(S.InformedWindow(2, clamp=_mask)), bits),
    ("Zanella", S.MH(S.Informed(how="exact", balance=S.Barker(), clamp=_mask)), bits),
    ("path auxiliary", S.MH(S.PathAuxiliary(3, clamp=_mask)), bits),
    ("DMALA", S.MH(S.DiscreteLangevin(0.5, clamp=_mask)), bits),
    ("random walk", S.MH(S.RandomFlips(3, clamp=_mask)), bits),
    ("MH within Gibbs", S.WithinGibbs(lambda held: S.RandomFlips(clamp=held), clamp=_mask), bits),
    ("Swendsen-Wang", S.SwendsenWang(clamp=_mask), ring),
    ("Wolff", S.Wolff(clamp=_mask), ring),
]
