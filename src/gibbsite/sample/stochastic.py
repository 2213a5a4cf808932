"""Langevin and Hamiltonian dynamics without rejection, for estimated gradients and decreasing steps: SGLD and SGHMC."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..check import function, number
from ..local import score
from ..model import Model, check_potential
from ..models.posterior import StochasticScore
from ..random import Source
from .kernel import Cost, Info, Kernel, State, always
from .langevin import check_step_size, real

Schedule = Callable[[Float[Tensor, " chains"]], Float[Tensor, " chains"]]


@final
@dataclass(frozen=True)
class PolynomialDecay:
    """t -> scale (offset + t)^-power, a step size after t steps.

    The squares of the steps are the time steps of the dynamics; they must sum to infinity and their squares must not,
    for the bias to vanish: 1/4 < power <= 1/2.

    References: Welling and Teh (2011), whose step is the square of this one, and whose gamma is twice this power.
    """

    scale: float
    offset: float = 1.0
    power: float = 1 / 3

    def __post_init__(self):
        number(self.scale, "scale", above=0)
        number(self.offset, "offset", above=0)
        number(self.power, "power", least=0)

    def __call__(self, t: Float[Tensor, " chains"]) -> Float[Tensor, " chains"]:
        return self.scale * (self.offset + t) ** -self.power


def polynomial_decay(scale: float, offset: float = 1.0, power: float = 1 / 3) -> PolynomialDecay:
    """The schedule t -> scale (offset + t)^-power.

    Example:
        >>> import torch
        >>> from gibbsite.sample import polynomial_decay
        >>> polynomial_decay(0.5, power=0.5)(torch.tensor([0.0, 3.0])).tolist()
        [0.5, 0.25]
    """
    return PolynomialDecay(scale, offset, power)


class SGLDLocal(NamedTuple):
    """The gradient at x, exact or estimated, and how many steps the chain has made."""

    gradient: Tensor
    t: Int[Tensor, " chains"]


class SGHMCLocal(NamedTuple):
    """The gradient at x, how many steps the chain has made, and its momentum."""

    gradient: Tensor
    t: Int[Tensor, " chains"]
    momentum: Tensor


@final
@dataclass(frozen=True, eq=False)
class SGLD(Kernel):
    """x' = x + eps_t^2/2 g(x) + eps_t xi, g an estimate of grad U (the monograph's eq. 2.24, its delta = eps^2/2).

    `step_size` is a number, or a function of the tensor of step counts t (one a chain) such as `polynomial_decay(...)`.
    A model that is a `StochasticScore` (`models.Posterior`) is asked for an estimate at every new x, and `state.u` is
    then an estimate too; other models give their exact score. Without rejection the law is right as eps -> 0 only.

    References: Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.sample import SGLD, polynomial_decay
        >>> kernel, model = SGLD(polynomial_decay(0.5)), gb.distributions.Normal.standard(2)
        >>> state, _ = kernel.step(model, kernel.init(model, torch.zeros(3, 2)), torch.Generator().manual_seed(0))
        >>> state.local.t.tolist()
        [1, 1, 1]
    """

    step_size: float | Schedule

    def __post_init__(self):
        _check(self.step_size)

    def init(self, model: Model, x: Tensor) -> State:
        x = real(model, x)
        u, gradient = score(model, x, start=True)
        return State(x, u, SGLDLocal(gradient, torch.zeros_like(u, dtype=torch.long)))

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        local: SGLDLocal = state.local
        epsilon = _step(self.step_size, local.t, state.x)
        noise = random.normal(state.x.shape, generator, state.x.dtype)
        x = state.x + epsilon * (epsilon / 2 * local.gradient + noise)
        u, gradient, cost = _estimate(model, x, generator)
        return State(x, u, SGLDLocal(gradient, local.t + 1)), always(u, cost)


@final
@dataclass(frozen=True, eq=False)
class SGHMC(Kernel):
    """x' = x + eps_t p;  p' = (1 - a) p + eps_t g(x') + (2 a - eps_t^2 V)^(1/2) xi, a the friction.

    In the paper's letters v = eps p, eta = eps^2 and alpha = a; V is a known variance of the entries of the gradient's
    estimate, taken off the noise that is put in (`gradient_variance`, 0 by default; never below no noise). Momenta start
    at 0. As eps -> 0 the law of x is the target whatever the friction.

    References: Chen et al. (2014), Stochastic gradient Hamiltonian Monte Carlo, eq. 15.

    Example:
        >>> import torch, gibbsite as gb
        >>> kernel, model = gb.sample.SGHMC(0.1), gb.distributions.Normal.standard(2)
        >>> state, _ = kernel.step(model, kernel.init(model, torch.ones(3, 2)), torch.Generator().manual_seed(0))
        >>> state.x.tolist() == [[1.0, 1.0]] * 3
        True
    """

    step_size: float | Schedule
    friction: float = 0.1
    gradient_variance: float = 0.0

    def __post_init__(self):
        _check(self.step_size)
        number(self.friction, "friction", above=0, most=1)
        number(self.gradient_variance, "gradient_variance", least=0)

    def init(self, model: Model, x: Tensor) -> State:
        x = real(model, x)
        u, gradient = score(model, x, start=True)
        return State(x, u, SGHMCLocal(gradient, torch.zeros_like(u, dtype=torch.long), torch.zeros_like(x)))

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        local: SGHMCLocal = state.local
        epsilon = _step(self.step_size, local.t, state.x)
        x = state.x + epsilon * local.momentum
        u, gradient, cost = _estimate(model, x, generator)
        spread = (2 * self.friction - epsilon**2 * self.gradient_variance).clamp(min=0).sqrt()
        noise = random.normal(x.shape, generator, x.dtype)
        momentum = (1 - self.friction) * local.momentum + epsilon * gradient + spread * noise
        return State(x, u, SGHMCLocal(gradient, local.t + 1, momentum)), always(u, cost)


def _check(step_size: float | Schedule) -> None:
    if callable(step_size):
        function(step_size, "step_size", "polynomial_decay(0.1)")
    else:
        check_step_size(step_size)


def _step(step_size: float | Schedule, t: Tensor, x: Tensor) -> Tensor:
    """The step of each chain, shaped to multiply x."""
    if not callable(step_size):
        return torch.full((1,) * x.ndim, step_size, dtype=x.dtype, device=x.device)
    value = torch.as_tensor(step_size(t.to(x.dtype)), dtype=x.dtype, device=x.device)
    if tuple(value.shape) not in ((), (len(x),)) or not bool(((value > 0) & value.isfinite()).all()):
        raise ValueError(
            f"step_size(t): expected positive numbers, one or one a chain, got shape {tuple(value.shape)} from "
            f"{value.min().item()} to {value.max().item()}"
        )
    return value.view(-1, *[1] * (x.ndim - 1))


def _estimate(model: Model, x: Tensor, generator: Source) -> tuple[Tensor, Tensor, Cost]:
    """U(x) and its gradient, estimated if the model does that, and the cost."""
    if isinstance(model, StochasticScore):
        u, gradient = model.stochastic_score(x, generator)
        return check_potential(u, x, u.shape, start=False), gradient, Cost(model.fraction, model.fraction)
    return *score(model, x, start=False), Cost(1, 1)
