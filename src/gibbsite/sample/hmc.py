"""Hamiltonian Monte Carlo: a leapfrog trajectory proposes, `MH` corrects."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from ..local import score
from ..model import Model
from ..random import Source
from ..space import whole
from .kernel import MH, Alias, Cost, Proposal, State
from .langevin import check_step_size, real
from .trajectory import Point, check_mass, kinetic, leapfrog, metric


@final
@dataclass(frozen=True, eq=False)
class Leapfrog(Proposal):
    """x' is the end of `steps` leapfrog steps from x with momentum p ~ N(0, mass); the log ratio is K(p) - K(p').

    The map (x, p) -> (x', -p') keeps volume and undoes itself, so that min(1, exp(H(x, p) - H(x', p'))) corrects it
    exactly. A trajectory on which U is not finite somewhere is divergent: it proposes U = -inf, and `MH` rejects it with
    an acceptance of exactly 0, which is how to count such trajectories: `(info.acceptance == 0).sum()`.
    """

    step_size: float
    steps: int = 10
    mass: Tensor | None = None

    def __post_init__(self):
        check_step_size(self.step_size)
        check_mass(self.mass)
        object.__setattr__(self, "steps", whole(self.steps, "steps"))

    def init(self, model: Model, x: Tensor) -> State:
        x = real(model, x)
        metric(self.mass, model.space)
        return State(x, *score(model, x, start=True))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        mass = metric(self.mass, model.space)
        momentum = mass.draw(state.x, generator)
        start = Point(state.x, momentum, state.u, state.local)
        end, along = leapfrog(model, start, mass, self.step_size, self.steps)
        ratio = kinetic(momentum, mass.velocity(momentum)) - kinetic(end.momentum, mass.velocity(end.momentum))
        sound = (along + ratio).isfinite()
        u = torch.where(sound, end.u, -torch.inf)
        return State(end.x, u, end.gradient), ratio, Cost(self.steps, self.steps)


@final
@dataclass(frozen=True, eq=False)
class HMC(Alias):
    """Hamiltonian Monte Carlo on states of any shape: `MH(Leapfrog(step_size, steps, mass))`, one gradient a leapfrog step.

    H(x, p) = -U(x) + p^T mass^-1 p / 2. `mass` is None (the identity), a tensor of the event's shape (a diagonal), or a
    matrix over the flattened event; the inverse of the target's variance is a good one.

    References: Duane et al. (1987), Hybrid Monte Carlo; Neal (2011), MCMC using Hamiltonian dynamics.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.distributions.Normal.standard(3)
        >>> chain = gb.run(gb.sample.HMC(0.3, steps=5), model, torch.zeros(8, 3), steps=20, seed=0)
        >>> chain.samples.shape
        torch.Size([20, 8, 3])
    """

    step_size: float
    steps: int = 10
    mass: Tensor | None = None

    def __post_init__(self):
        proposal = Leapfrog(self.step_size, self.steps, self.mass)
        object.__setattr__(self, "steps", proposal.steps)

    @cached_property
    def kernel(self) -> MH:
        return MH(Leapfrog(self.step_size, self.steps, self.mass))
