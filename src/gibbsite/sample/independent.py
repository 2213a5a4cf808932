"""Proposals that do not look at U: independent draws from a distribution, and uniform flips."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from .. import random
from ..check import instance
from ..model import Distribution, Factorised, Model, check_model, evaluate
from ..random import Source
from ..space import whole
from .clamp import as_mask, check_mask, check_parity, discrete, free_sites
from .informed import apply_moves
from .kernel import Cost, Proposal, State


@final
@dataclass(frozen=True, eq=False)
class Independent(Proposal):
    """Proposes x' from a distribution q whatever x is (Metropolis independence sampling, MIS).

    The acceptance is min(1, w(x') / w(x)) with w = p / q. Clamping needs a q with independent sites.

    References: Hastings (1970); Liu (2001), Monte Carlo strategies in scientific computing, 5.4.2.
    """

    q: Distribution
    clamp: Tensor | None = None

    def __post_init__(self):
        instance(self.q, Distribution, "q")
        object.__setattr__(self, "clamp", as_mask(self.clamp))

    def init(self, model: Model, x: Tensor) -> State:
        if self.q.space != check_model(model).space:
            raise ValueError(f"q: expected a distribution on {model.space}, got one on {self.q.space}")
        if self.clamp is not None:
            check_mask(self.clamp, model.space)
            if not isinstance(self.q, Factorised):
                raise TypeError(f"clamp: {type(self.q).__name__} has dependent sites; its conditional law is not known")
        x = model.space.check(x)
        state = State(x, evaluate(model, x, start=True), evaluate(self.q, x))
        if bool((state.local == -torch.inf).any()):
            raise ValueError(
                "x: expected states that q can propose, got some with q(x) = 0: the chain could never leave them"
            )
        return state

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        x = self.q.sample(len(state.x), seed=generator)
        if self.clamp is not None:
            x = torch.where(self.clamp.to(x.device), state.x, x)
        new = State(x, evaluate(model, x), evaluate(self.q, x))
        return new, state.local - new.local, Cost(1, 0)


@final
@dataclass(frozen=True, eq=False)
class RandomFlips(Proposal):
    """The symmetric random walk on discrete states: `sites` random sites (with repetition) shift by random amounts."""

    sites: int = 1
    clamp: Tensor | None = None

    def __post_init__(self):
        object.__setattr__(self, "sites", whole(self.sites, "sites"))

    def init(self, model: Model, x: Tensor) -> State:
        x = discrete(model).check(x)
        free_sites(model, self.clamp, x.device)
        check_parity(model, self.sites, "sites")
        return State(x, evaluate(model, x, start=True))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        space, free, shape = discrete(model), free_sites(model, self.clamp, state.x.device), (len(state.x), self.sites)
        site = free[random.integers(len(free), shape, generator)]
        shift = random.integers(space.states - 1, shape, generator)
        x = apply_moves(space, state.x, site * (space.states - 1) + shift)
        return State(x, evaluate(model, x)), torch.zeros_like(state.u), Cost(1, 0)
