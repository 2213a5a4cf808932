"""Kernels made from kernels: `Cycle`, `Mixture`, `Repeat`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from .. import random
from ..model import Model
from ..random import Source
from .kernel import Cost, Info, Kernel


@final
@dataclass(frozen=True)
class Cycle(Kernel):
    """One step of each kernel in turn. Between unlike kernels the state is made anew, at one evaluation more each."""

    kernels: Sequence[Kernel]

    def __post_init__(self):
        if not self.kernels:
            raise ValueError("kernels: expected at least one")

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernels[0].init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        cost, infos = Cost(), []
        for index, kernel in enumerate(self.kernels):
            if index:
                state, cost = kernel.init(model, state.x), cost.plus(Cost(1, 0))
            state, info = kernel.step(model, state, generator)
            infos.append(info)
            cost = cost.plus(info.cost)
        if len(self.kernels) > 1:
            state, cost = self.kernels[0].init(model, state.x), cost.plus(Cost(1, 0))
        return state, pooled(infos, cost)


@final
@dataclass(frozen=True)
class Mixture(Kernel):
    """One step of one kernel, chosen with probability proportional to its weight; the chains share the choice."""

    kernels: Sequence[Kernel]
    weights: Sequence[float] | None = None

    def __post_init__(self):
        weights = [1.0] * len(self.kernels) if self.weights is None else list(self.weights)
        if not self.kernels or len(weights) != len(self.kernels) or min(weights) < 0 or sum(weights) == 0:
            raise ValueError(f"weights: expected {len(self.kernels)} non-negative numbers, one a kernel, got {self.weights}")

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernels[0].init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        index = random.choose(self.weights or [1.0] * len(self.kernels), generator)
        if index == 0:
            return self.kernels[0].step(model, state, generator)
        state, info = self.kernels[index].step(model, self.kernels[index].init(model, state.x), generator)
        return self.kernels[0].init(model, state.x), info._replace(cost=info.cost.plus(Cost(2, 0)))


@final
@dataclass(frozen=True)
class Repeat(Kernel):
    """`times` steps of one kernel counted as one."""

    kernel: Kernel
    times: int

    def __post_init__(self):
        if self.times < 1:
            raise ValueError(f"times: expected at least 1, got {self.times}")

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernel.init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        infos, cost = [], Cost()
        for _ in range(self.times):
            state, info = self.kernel.step(model, state, generator)
            infos.append(info)
            cost = cost.plus(info.cost)
        return state, pooled(infos, cost)


def pooled(infos: Sequence[Info], cost: Cost) -> Info:
    """The info of several steps as one: mean acceptance, and whether any was accepted."""
    acceptance, accepted = infos[0].acceptance, infos[0].accepted
    for info in infos[1:]:
        acceptance, accepted = acceptance + info.acceptance, accepted | info.accepted
    return Info(acceptance / len(infos), accepted, cost)
