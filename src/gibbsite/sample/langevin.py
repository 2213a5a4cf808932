"""Langevin dynamics, its Metropolis-adjusted form MALA, and the Gaussian random walk."""

import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..local import score
from ..model import Model, check_model, evaluate
from ..random import Source
from ..space import Real
from .kernel import MH, Alias, Cost, Info, Kernel, Proposal, State, always


def check_step_size(step_size: float) -> None:
    """Refuses steps that are not positive numbers."""
    if isinstance(step_size, bool) or not (isinstance(step_size, numbers.Real) and 0 < step_size < float("inf")):
        raise ValueError(f"step_size: expected a positive number, got {step_size!r}")


def real(model: Model, x: Tensor) -> Tensor:
    """x, checked, if the model lives on real states."""
    if not isinstance(check_model(model).space, Real):
        raise TypeError(f"kernel: expected a model on Real states, got one on {model.space}")
    return model.space.check(x)


def squared_norm(x: Float[Tensor, "chains *event"]) -> Float[Tensor, " chains"]:
    """The sum of squares of each event."""
    return x.reshape(len(x), -1).square().sum(-1)


@final
@dataclass(frozen=True, eq=False)
class Drift(Proposal):
    """x' = x + eps^2/2 grad U(x) + eps xi, xi ~ N(0, I), eps the step size.

    The state keeps the gradient at x, so that a step takes one gradient. With xi' the noise that would lead back,
    xi' = (x - x' - eps^2/2 grad U(x')) / eps, the log ratio is (|xi|^2 - |xi'|^2) / 2.

    References: Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """

    step_size: float

    def __post_init__(self):
        check_step_size(self.step_size)

    def init(self, model: Model, x: Tensor) -> State:
        return State(real(model, x), *score(model, x, start=True))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        new, noise, momentum = _drifted(model, state, self.step_size, generator)
        back = torch.add(momentum, new.local, alpha=self.step_size / 2)  # the way back takes xi' = -p - eps/2 grad U(x')
        return new, 0.5 * (squared_norm(noise) - squared_norm(back)), Cost(1, 1)


def _drifted(model: Model, state: State, step_size: float, generator: Source) -> tuple[State, Tensor, Tensor]:
    """The state at x' = x + eps p, with its gradient; the noise xi, and the momentum p = xi + eps/2 grad U(x)."""
    noise = random.normal(state.x.shape, generator, state.x.dtype)
    momentum = torch.add(noise, state.local, alpha=step_size / 2)
    x = torch.add(state.x, momentum, alpha=step_size)
    return State(x, *score(model, x, start=False)), noise, momentum


@final
@dataclass(frozen=True, eq=False)
class Langevin(Kernel):
    """Unadjusted Langevin dynamics: x' = x + eps^2/2 grad U(x) + eps xi, the moves of `Drift`, each of them taken.

    Its stationary law is off by a term of order eps^2: on N(0, 1) its variance is 1 / (1 - eps^2/4). Where that matters,
    use `MALA`.

    References: Roberts and Tweedie (1996); Welling and Teh (2011).

    Example:
        >>> import torch, gibbsite as gb
        >>> kernel, model = gb.sample.Langevin(0.1), gb.distributions.Normal.standard(2)
        >>> state, _ = kernel.step(model, kernel.init(model, torch.zeros(4, 2)), torch.Generator().manual_seed(0))
        >>> state.x.shape
        torch.Size([4, 2])
    """

    step_size: float

    def __post_init__(self):
        check_step_size(self.step_size)

    def init(self, model: Model, x: Tensor) -> State:
        return Drift(self.step_size).init(model, x)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        new, _, _ = _drifted(model, state, self.step_size, generator)
        return new, always(new.u, Cost(1, 1))


@final
@dataclass(frozen=True, eq=False)
class MALA(Alias):
    """The Metropolis-adjusted Langevin algorithm, `MH(Drift(step_size))`: HMC with one leapfrog step.

    References: Besag (1994); Roberts and Rosenthal (1998), Optimal scaling of discrete approximations to Langevin
    diffusions (aim for an acceptance of 0.574).

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.distributions.Normal.standard(2)
        >>> gb.run(gb.sample.MALA(0.9), model, torch.zeros(8, 2), steps=10, seed=0).samples.shape
        torch.Size([10, 8, 2])
    """

    step_size: float

    def __post_init__(self):
        check_step_size(self.step_size)

    @cached_property
    def kernel(self) -> MH:
        return MH(Drift(self.step_size))


@final
@dataclass(frozen=True, eq=False)
class RandomWalk(Proposal):
    """x' = x + step_size xi, xi ~ N(0, I): symmetric, needs no gradient; aim for an acceptance of 0.234.

    References: Metropolis et al. (1953); Roberts et al. (1997), Weak convergence and optimal scaling of random walk
    Metropolis algorithms.
    """

    step_size: float

    def __post_init__(self):
        check_step_size(self.step_size)

    def init(self, model: Model, x: Tensor) -> State:
        return State(real(model, x), evaluate(model, x, start=True))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        noise = random.normal(state.x.shape, generator, state.x.dtype)
        x = torch.add(state.x, noise, alpha=self.step_size)
        return State(x, evaluate(model, x)), torch.zeros_like(state.u), Cost(1, 0)
