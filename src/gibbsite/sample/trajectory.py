"""What Hamiltonian samplers share: the mass of the momentum, and the leapfrog trajectory with one gradient a step."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import floats, instance
from ..model import ClosedScore
from ..random import Source
from ..space import Space


class Metric(ABC):
    """The mass matrix M of the kinetic energy K(p) = p^T M^-1 p / 2, p of shape (chains, *event); it takes the type of p."""

    @abstractmethod
    def draw(self, like: Tensor, source: Source) -> Tensor:
        """p ~ N(0, M)."""

    @abstractmethod
    def velocity(self, momentum: Tensor) -> Tensor:
        """M^-1 p."""


@final
class Unit(Metric):
    """M = I."""

    def draw(self, like: Tensor, source: Source) -> Tensor:
        return random.normal(like.shape, source, like.dtype)

    def velocity(self, momentum: Tensor) -> Tensor:
        return momentum


@final
@dataclass(frozen=True)
class Diagonal(Metric):
    """M = diag(mass), mass of the event's shape."""

    mass: Tensor

    def draw(self, like: Tensor, source: Source) -> Tensor:
        return random.normal(like.shape, source, like.dtype) * self.mass.sqrt().to(like)

    def velocity(self, momentum: Tensor) -> Tensor:
        return momentum / self.mass.to(momentum)


@final
@dataclass(frozen=True)
class Dense(Metric):
    """M = L L^T, acting on flattened events."""

    lower: Tensor
    inverse: Tensor

    def draw(self, like: Tensor, source: Source) -> Tensor:
        noise = random.normal((len(like), len(self.lower)), source, like.dtype)
        return (noise @ self.lower.T.to(like)).view_as(like)

    def velocity(self, momentum: Tensor) -> Tensor:
        return (momentum.reshape(len(momentum), -1) @ self.inverse.to(momentum)).view_as(momentum)


@lru_cache(maxsize=8)
def _dense(mass: Tensor, version: int) -> Dense:
    """The factors of a dense mass, kept while the same tensor is in use (`version` counts its changes in place)."""
    lower, failed = torch.linalg.cholesky_ex(mass)
    if int(failed) or not torch.allclose(mass, mass.T):
        raise ValueError("mass: expected a symmetric positive definite matrix")
    return Dense(lower, torch.cholesky_inverse(lower))


def check_mass(mass: Tensor | None) -> None:
    """Refuses masses that no event could have."""
    if mass is not None:
        floats(instance(mass, Tensor, "mass", hint="; write torch.tensor(...)"), "mass")


def metric(mass: Tensor | None, space: Space) -> Metric:
    """The metric of a mass: None, one number an entry of the event (diagonal), or a matrix over the flattened event."""
    if mass is None:
        return Unit()
    if tuple(mass.shape) == space.shape:
        if not bool((mass > 0).all()):
            raise ValueError("mass: expected positive numbers")
        return Diagonal(mass)
    size = torch.Size(space.shape).numel()
    if tuple(mass.shape) != (size, size):
        raise ValueError(f"mass: expected shape {space.shape} or {(size, size)}, got {tuple(mass.shape)}")
    return _dense(mass, mass._version)


def slope(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Float[Tensor, " chains"], Tensor]:
    """U(x) and its gradient, unchecked: along a trajectory a value that is not finite is a divergence, not an error."""
    if isinstance(function, ClosedScore):
        with torch.no_grad():
            return function.closed_score(x)
    with torch.enable_grad():
        z = x.detach().requires_grad_()
        u = function(z)
    if not u.requires_grad:
        return u, torch.zeros_like(x)
    (gradient,) = torch.autograd.grad(u, z, torch.ones_like(u), allow_unused=True)
    return u.detach(), torch.zeros_like(x) if gradient is None else gradient


def inner(a: Tensor, b: Tensor) -> Float[Tensor, " chains"]:
    """The inner product of each chain's events."""
    return torch.linalg.vecdot(a.reshape(len(a), -1), b.reshape(len(b), -1))


def kinetic(momentum: Tensor, velocity: Tensor) -> Float[Tensor, " chains"]:
    """p^T M^-1 p / 2."""
    return 0.5 * inner(momentum, velocity)


class Point(NamedTuple):
    """A point of phase space with the potential and gradient there."""

    x: Tensor
    momentum: Tensor
    u: Tensor
    gradient: Tensor


def leapfrog(
    function: Callable[[Tensor], Tensor], start: Point, mass: Metric, step_size: float, steps: int
) -> tuple[Point, Float[Tensor, " chains"]]:
    """The end of a trajectory, and the sum of U along it: not finite if U was not finite anywhere.

    p += eps/2 grad U(x); then `steps` times x += eps M^-1 p; p += eps grad U(x), half of it the last time.
    """
    x, u, gradient, along = start.x, start.u, start.gradient, torch.zeros_like(start.u)
    at = function.closed_score if isinstance(function, ClosedScore) else partial(slope, function)
    with torch.no_grad():
        p = torch.add(start.momentum, gradient, alpha=step_size / 2)
        for left in range(steps - 1, -1, -1):
            x = torch.add(x, mass.velocity(p), alpha=step_size)
            u, gradient = at(x)
            p.add_(gradient, alpha=step_size if left else step_size / 2)
            along += u
    return Point(x, p, u, gradient), along
