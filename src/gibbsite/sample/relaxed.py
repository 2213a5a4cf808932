"""Baselines that move bits through a continuous relaxation: relaxed MALA, relaxed HMC, discrete SVGD."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..model import Model, dtype_of, evaluate
from ..random import Source
from ..space import Binary
from .kernel import MH, Cost, Info, Kernel, Proposal, State, always
from .langevin import check_step_size, squared_norm
from .trajectory import Point, Unit, leapfrog, slope

_HALF_NORMAL_MEDIAN = 0.6744897501960817


class Relaxed(NamedTuple):
    """The real state behind the bits, x = [z > 0], and the gradient of the surrogate there."""

    z: Tensor
    gradient: Tensor


class Particles(NamedTuple):
    """The real state behind the bits, x = [z > 0]; Adam's two moments; how many steps were made."""

    z: Tensor
    first: Tensor
    second: Tensor
    t: Int[Tensor, " chains"]


def _surrogate(model: Model, temperature: float) -> Callable[[Tensor], Tensor]:
    """log p^T(z) = -|z|^2 / 2 + U(sigmoid(z / T)), without the constant."""
    return lambda z: torch.add(model((z / temperature).sigmoid()), squared_norm(z), alpha=-0.5)


def _check(step_size: float, temperature: float) -> None:
    check_step_size(step_size)
    if not temperature > 0:
        raise ValueError(f"temperature: expected a positive number, got {temperature}")


def _start(model: Model, x: Tensor) -> tuple[State, Tensor]:
    """x and U(x) checked, and the z of median size behind x."""
    if not isinstance(model.space, Binary):
        raise TypeError(f"kernel: expected a model on Binary states, got one on {model.space}")
    x = model.space.check(x)
    z = _HALF_NORMAL_MEDIAN * (2 * model.space.embed(x, dtype_of(model)) - 1)
    return State(x, evaluate(model, x, start=True)), z


def _bits(z: Tensor, x: Tensor) -> Tensor:
    return (z > 0).to(x.dtype)


@final
@dataclass(frozen=True, eq=False)
class RelaxedDrift(Proposal):
    """z' = z + eps^2/2 grad log p^T(z) + eps xi and x' = [z' > 0]; the target is p_c(z) = N(z; 0, I) p([z > 0])."""

    step_size: float
    temperature: float

    def __post_init__(self):
        _check(self.step_size, self.temperature)

    def init(self, model: Model, x: Tensor) -> State:
        state, z = _start(model, x)
        return state._replace(local=Relaxed(z, slope(_surrogate(model, self.temperature), z)[1]))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        local: Relaxed = state.local
        noise = random.normal(local.z.shape, generator, local.z.dtype)
        momentum = noise + self.step_size / 2 * local.gradient
        z = local.z + self.step_size * momentum
        gradient = slope(_surrogate(model, self.temperature), z)[1]
        back = momentum + self.step_size / 2 * gradient
        x = _bits(z, state.x)
        ratio = 0.5 * (squared_norm(noise) - squared_norm(back) + squared_norm(local.z) - squared_norm(z))
        return State(x, evaluate(model, x), Relaxed(z, gradient)), ratio, Cost(2, 1)


@final
@dataclass(frozen=True, eq=False)
class RelaxedLeapfrog(Proposal):
    """z' is the end of `steps` leapfrog steps on log p^T, x' = [z' > 0]; the target is p_c(z) = N(z; 0, I) p([z > 0])."""

    step_size: float
    steps: int
    temperature: float

    def __post_init__(self):
        _check(self.step_size, self.temperature)
        if self.steps < 1:
            raise ValueError(f"steps: expected at least 1, got {self.steps}")

    def init(self, model: Model, x: Tensor) -> State:
        state, z = _start(model, x)
        return state._replace(local=Relaxed(z, slope(_surrogate(model, self.temperature), z)[1]))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        z, gradient = state.local
        momentum = random.normal(z.shape, generator, z.dtype)
        start = Point(z, momentum, state.u, gradient)
        end, _ = leapfrog(_surrogate(model, self.temperature), start, Unit(), self.step_size, self.steps)
        x = _bits(end.x, state.x)
        ratio = 0.5 * (squared_norm(momentum) - squared_norm(end.momentum) + squared_norm(z) - squared_norm(end.x))
        sound = ratio.isfinite()
        u = torch.where(sound, evaluate(model, x), -torch.inf)
        return State(x, u, Relaxed(end.x, end.gradient)), ratio, Cost(self.steps + 1, self.steps)


def RelaxedMALA(step_size: float, temperature: float = 1.0) -> MH:
    """R-MALA: bits x = [z > 0] moved by Langevin steps of z, corrected exactly: `MH(RelaxedDrift(...))`.

    z has the piecewise density p_c(z) = N(z; 0, I) p([z > 0]); the gradient is that of the smooth surrogate with
    sigmoid(z / temperature) in place of [z > 0], and the Metropolis test uses p_c itself.

    References: Grathwohl et al. (2021), appendix C.1.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> x = model.space.uniform().sample(8, seed=0)
        >>> gb.run(gb.sample.RelaxedMALA(0.5), model, x, steps=3, seed=1).samples.dtype
        torch.int8
    """
    return MH(RelaxedDrift(step_size, temperature))


def RelaxedHMC(step_size: float, steps: int = 5, temperature: float = 1.0) -> MH:
    """R-HMC: bits x = [z > 0] moved by leapfrog trajectories of z on the surrogate, corrected exactly with p_c.

    References: Grathwohl et al. (2021), appendix C.1.
    """
    return MH(RelaxedLeapfrog(step_size, steps, temperature))


@final
@dataclass(frozen=True, eq=False)
class DiscreteSVGD(Kernel):
    """D-SVGD: Adam along phi(z) = sum_j w_j (k(z_j, z) grad log p^T(z_j) + grad_(z_j) k(z_j, z)), x = [z > 0].

    The weights w_j, proportional to exp(U(sigmoid(z_j / T)) - U(x_j)), correct the surrogate's gradient for the
    piecewise target; k(z, z') = exp(-|z - z'|^2 / h) with h = med^2 / (2 log(n + 1)), med the median distance of the n
    particles. The particles are the chains, and they depend on each other. This is a deterministic flow, NOT a Markov
    kernel with a stationary law: its acceptance of 1 means nothing, and its exactness is not claimed. It is here as the
    baseline of the Gibbs-With-Gradients paper.

    References: Han et al. (2020), Stein variational inference for discrete distributions; Grathwohl et al. (2021),
    appendix C.
    """

    step_size: float = 0.01
    temperature: float = 1.0

    def __post_init__(self):
        _check(self.step_size, self.temperature)

    def init(self, model: Model, x: Tensor) -> State:
        state, z = _start(model, x)
        if len(z) < 2:
            raise ValueError(f"x: expected at least 2 particles, got {len(z)}")
        t = torch.zeros(len(z), dtype=torch.long, device=z.device)
        return state._replace(local=Particles(z, torch.zeros_like(z), torch.zeros_like(z), t))

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        local: Particles = state.local
        log_p, gradient = slope(_surrogate(model, self.temperature), local.z)
        weights = (log_p + 0.5 * squared_norm(local.z) - state.u).softmax(0)
        direction = stein_direction(local.z, gradient, weights)
        z, first, second = adam(local, direction, self.step_size)
        x = _bits(z, state.x)
        state = State(x, evaluate(model, x), Particles(z, first, second, local.t + 1))
        return state, always(state.u, Cost(2, 1))


def stein_direction(z: Tensor, gradient: Tensor, weights: Float[Tensor, " particles"]) -> Tensor:
    """phi at every particle, for normalised weights."""
    flat, slopes = z.flatten(1), gradient.flatten(1)
    distance = torch.cdist(flat, flat)
    pairs = distance[tuple(torch.triu_indices(len(z), len(z), 1, device=z.device))]
    width = (pairs.median().square() / (2 * math.log(len(z) + 1))).clamp(min=torch.finfo(z.dtype).tiny ** 0.5)
    kernel = torch.exp(-distance.square() / width) * weights
    repulsion = 2 / width * (kernel.sum(1, keepdim=True) * flat - kernel @ flat)
    return (kernel @ slopes + repulsion).view_as(z)


def adam(local: Particles, direction: Tensor, step_size: float) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adam uphill along `direction`: the new z and moments (decays 0.9 and 0.999)."""
    first = 0.9 * local.first + 0.1 * direction
    second = 0.999 * local.second + 0.001 * direction.square()
    t = (local.t + 1).view(-1, *[1] * (direction.ndim - 1)).to(direction.dtype)
    rate = step_size * (1 - 0.999**t).sqrt() / (1 - 0.9**t)
    return local.z + rate * first / (second.sqrt() + 1e-8), first, second
