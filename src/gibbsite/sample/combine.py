"""Kernels made from kernels: `Cycle`, `Followed`, `Mixture`, `Repeat`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from .. import random
from ..check import number
from ..model import Model
from ..random import Source
from ..space import whole
from .kernel import Cost, Info, Kernel, Proposal, check_kernel, started


@final
@dataclass(frozen=True, eq=False)
class Cycle(Kernel):
    """One step of each kernel in turn. Between unlike kernels the state is made anew, which is in the cost."""

    kernels: Sequence[Kernel]

    def __post_init__(self):
        object.__setattr__(self, "kernels", _checked(self.kernels))

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
        object.__setattr__(self, "kernels", _checked(self.kernels))
        if self.weights is None:
            return
        weights = tuple(number(w, f"weights[{i}]", least=0) for i, w in enumerate(self.weights))
        if len(weights) != len(self.kernels) or not 0 < sum(weights) < float("inf"):
            raise ValueError(f"weights: expected {len(self.kernels)}, one a kernel and not all 0, got {weights}")
        object.__setattr__(self, "weights", weights)

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
class Followed(Kernel):
    """One step of `kernel`, then one of `by`; what is told of acceptance is that of `kernel` alone, as its adaptation needs.

    Example:
        >>> import gibbsite as gb
        >>> from gibbsite.sample import MALA, MH, Followed, Independent
        >>> noise = gb.distributions.Normal.standard(2)
        >>> kernel = Followed(MALA(0.5), by=MH(Independent(noise)))  # small steps, and now and then a leap
        >>> gb.run(kernel, noise, noise.sample(4, seed=0), steps=3, seed=1).samples.shape
        torch.Size([3, 4, 2])
    """

    kernel: Kernel
    by: Kernel

    def __post_init__(self):
        check_kernel(self.kernel)
        check_kernel(self.by, "by")

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernel.init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        state, info = self.kernel.step(model, state, generator)
        inner, before = started(self.by, model, state.x)
        inner, other = self.by.step(model, inner, generator)
        state, after = started(self.kernel, model, inner.x)
        cost = info.cost.plus(other.cost).plus(before).plus(after)
        return state, Info(info.acceptance, info.accepted | other.accepted, cost)


@final
@dataclass(frozen=True, eq=False)
class Repeat(Kernel):
    """`times` steps of one kernel counted as one."""

    kernel: Kernel
    times: int

    def __post_init__(self):
        check_kernel(self.kernel)
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


def _checked(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels, each checked by its place."""
    if isinstance(kernels, Kernel | Proposal) or not isinstance(kernels, Iterable):
        raise TypeError(f"kernels: expected a list of kernels, got {type(kernels).__name__}")
    checked = tuple(check_kernel(kernel, f"kernels[{place}]") for place, kernel in enumerate(kernels))
    if not checked:
        raise ValueError("kernels: expected at least one, got an empty list")
    return checked


def pooled(infos: Sequence[Info], cost: Cost) -> Info:
    """The info of several steps as one: mean acceptance, and whether any was accepted."""
    acceptance, accepted = infos[0].acceptance, infos[0].accepted
    for info in infos[1:]:
        acceptance, accepted = acceptance + info.acceptance, accepted | info.accepted
    return Info(acceptance / len(infos), accepted, cost)
