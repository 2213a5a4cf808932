"""Parallel tempering along a path of models."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from .. import random
from ..algebra import Geometric
from ..check import instance, number
from ..model import Distribution, Model, evaluate
from ..random import Source
from .kernel import Cost, Info, Kernel, acceptance, check_kernel, started


class Replicas(NamedTuple):
    """x and u are the last rung's, the model itself; `rungs` are the states of all, from the base to the model."""

    x: Shaped[Tensor, "chains *event"]
    u: Float[Tensor, " chains"]
    rungs: tuple[Any, ...]
    swap_rate: Float[Tensor, "chains pairs"]  # probability of the last swap tried of each pair, NaN before the first
    parity: int


@final
@dataclass(frozen=True, eq=False)
class Tempering(Kernel):
    """A copy of each chain at every beta of `Geometric(base, model)`; each makes a step, then neighbours may swap.

    Neighbours r, r + 1 swap with probability min(1, exp(U_r(y) + U_(r+1)(x) - U_r(x) - U_(r+1)(y))); even and odd pairs take
    turns, which moves states along the ladder fastest. The joint law of all copies is exactly stationary. `betas` rise to 1.

    References: Swendsen and Wang (1986), Replica Monte Carlo; Geyer (1991); Syed et al. (2022), Non-reversible tempering.
    """

    kernel: Kernel
    base: Distribution
    betas: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0)

    def __post_init__(self):
        check_kernel(self.kernel)
        instance(self.base, Distribution, "base", hint="; such as model.space.uniform()")
        b = tuple(number(beta, f"betas[{place}]") for place, beta in enumerate(self.betas))
        if len(b) < 2 or b[-1] != 1 or b[0] < 0 or any(lo >= hi for lo, hi in pairwise(b)):
            raise ValueError(f"betas: expected at least two numbers that rise from 0 or more to exactly 1, got {b}")
        object.__setattr__(self, "betas", b)

    def init(self, model: Model, x: Tensor) -> Replicas:
        return self.start(model, [x] * len(self.betas))

    def start(self, model: Model, xs: Sequence[Tensor]) -> Replicas:
        """The state of replicas that stand at `xs`, one batch of chains a rung."""
        rungs = tuple(self.kernel.init(m, x) for m, x in zip(self._models(model), xs, strict=True))
        rate = torch.full((len(xs[0]), len(xs) - 1), torch.nan, dtype=rungs[-1].u.dtype, device=rungs[-1].u.device)
        return Replicas(rungs[-1].x, rungs[-1].u, rungs, rate, 0)

    def _models(self, model: Model) -> list[Model]:
        path = Geometric(self.base, model)
        return [path.at(beta) for beta in self.betas]

    def step(self, model: Model, state: Replicas, generator: Source) -> tuple[Replicas, Info]:
        models, rungs, cost, info = self._models(model), list(state.rungs), Cost(), None
        for r, rung in enumerate(rungs):
            rungs[r], info = self.kernel.step(models[r], rung, generator)
            cost = cost.plus(info.cost)
        assert info is not None
        rate = state.swap_rate.clone()
        for r in range(state.parity, len(rungs) - 1, 2):
            low, high = rungs[r], rungs[r + 1]
            low_u, high_u = evaluate(models[r], high.x), evaluate(models[r + 1], low.x)
            log_accept = acceptance(low_u + high_u - low.u - high.u, torch.minimum(low_u, high_u))
            swap = random.accept(log_accept, generator)
            rate[:, r] = log_accept.exp()
            wide = swap.view(-1, *[1] * (low.x.ndim - 1))
            rungs[r], first = started(self.kernel, models[r], torch.where(wide, high.x, low.x))
            rungs[r + 1], second = started(self.kernel, models[r + 1], torch.where(wide, low.x, high.x))
            cost = cost.plus(Cost(2, 0)).plus(first).plus(second)
        new = Replicas(rungs[-1].x, rungs[-1].u, tuple(rungs), rate, 1 - state.parity)
        return new, info._replace(cost=cost)
