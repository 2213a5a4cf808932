"""Kernels made from kernels: `Cycle`, `Mixture`, `Repeat`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from .. import random
from ..model import Model
from ..random import Source
from ..space import whole
from .kernel import Cost, Info, Kernel, started


@final
@dataclass(frozen=True, eq=False)
class Cycle(Kernel):
    """One step of each kernel in turn. Between unlike kernels the state is made anew, which is in the cost."""

    kernels: Sequence[Kernel]

    def __post_init__(self):
        object.__setattr__(self, "kernels", tuple(self.kernels))
        if not self.kernels:
            raise ValueError("kernels: expected at least one")

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernels[0].init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        cost, infos = Cost(), []
        for index, kernel in enumerate(self.kernels):
            if index:
                state, more = started(kernel, model, state.x)
                cost = cost.plus(more)
            state, info = kernel.step(model, state, generator)
            infos.append(info)
            cost = cost.plus(info.cost)
        if len(self.kernels) > 1:
            state, more = started(self.kernels[0], model, state.x)
            cost = cost.plus(more)
        return state, pooled(infos, cost)


@final
@dataclass(frozen=True, eq=False)
class Mixture(Kernel):
    """One step of one kernel, chosen with probability proportional to its weight; the chains share the choice."""

    kernels: Sequence[Kernel]
    weights: Sequence[float] | None = None

    def __post_init__(self):
        object.__setattr__(self, "kernels", tuple(self.kernels))
        weights = (1.0,) * len(self.kernels) if self.weights is None else tuple(float(w) for w in self.weights)
        sound = len(weights) == len(self.kernels) > 0 and all(w >= 0 for w in weights) and 0 < sum(weights) < float("inf")
        if not sound:
            raise ValueError(f"weights: expected {len(self.kernels)} non-negative numbers, one a kernel, got {self.weights}")
        object.__setattr__(self, "weights", None if self.weights is None else weights)

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernels[0].init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        index = random.choose(self.weights or [1.0] * len(self.kernels), generator)
        if index == 0:
            return self.kernels[0].step(model, state, generator)
        inner, before = started(self.kernels[index], model, state.x)
        inner, info = self.kernels[index].step(model, inner, generator)
        state, after = started(self.kernels[0], model, inner.x)
        return state, info._replace(cost=info.cost.plus(before).plus(after))


@final
@dataclass(frozen=True, eq=False)
class Repeat(Kernel):
    """`times` steps of one kernel counted as one."""

    kernel: Kernel
    times: int

    def __post_init__(self):
        object.__setattr__(self, "times", whole(self.times, "times"))

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
