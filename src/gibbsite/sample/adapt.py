"""Adaptation: a new kernel, tuned before any sample is kept."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import number
from ..model import Model, as_model
from ..random import Seed, Source
from ..space import Space, whole
from .kernel import Info, Kernel, check_chains, check_kernel
from .langevin import real

Function = Callable[[Tensor], Tensor]
K = TypeVar("K", bound=Kernel)
V = TypeVar("V")


@final
class Adapted(NamedTuple, Generic[K]):
    """The tuned kernel, and where the chains stand after tuning: start the run from there."""

    kernel: K
    x: Tensor


@final
@dataclass
class DualAveraging:
    """Nesterov's dual averaging of log eps, so that the mean acceptance approaches the target.

    With h_t the running mean of target - acceptance (the first `delay` steps weigh less),
    log eps_t = log(10 start) - sqrt(t) h_t / gamma, and the answer is the average of log eps_t with weights t^-kappa.

    References: Hoffman and Gelman (2014), section 3.2.
    """

    start: float
    target: float
    gamma: float = 0.05
    delay: float = 10.0
    kappa: float = 0.75

    def __post_init__(self):
        self.start, self.target = number(self.start, "start", above=0), number(self.target, "target", above=0, below=1)
        self._centre, self._t, self._error, self._average = math.log(10 * self.start), 0, 0.0, math.log(self.start)
        self.current = self.start

    def update(self, acceptance: float) -> None:
        """Takes in the acceptance seen with `current`, and moves `current`."""
        self._t += 1
        share = 1 / (self._t + self.delay)
        self._error += share * (self.target - acceptance - self._error)
        log_step = self._centre - math.sqrt(self._t) / self.gamma * self._error
        self._average += self._t**-self.kappa * (log_step - self._average)
        self.current = math.exp(max(-60.0, min(60.0, log_step)))

    @property
    def answer(self) -> float:
        """The averaged value."""
        return math.exp(self._average)


def step_size(
    make: Callable[[float], K],
    model: Function,
    x: Tensor,
    *,
    target: float,
    steps: int,
    seed: Seed,
    start: float = 0.1,
    space: Space | None = None,
) -> Adapted[K]:
    """The kernel make(eps) whose mean acceptance over the chains is `target`, by dual averaging for `steps` steps.

    Targets that are known to serve well: 0.234 random walk, 0.574 MALA and discrete Langevin, 0.65 HMC, 0.8 NUTS. Any
    positive parameter that lowers the acceptance as it grows can be tuned so.

    References: Hoffman and Gelman (2014); Roberts and Rosenthal (1998).

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.sample import MALA, adapt
        >>> model = gb.distributions.Normal.standard(4)
        >>> tuned = adapt.step_size(MALA, model, torch.zeros(16, 4), target=0.574, steps=200, seed=0)
        >>> chain = gb.run(tuned.kernel, model, tuned.x, steps=100, seed=1)
    """
    model = as_model(model, space)
    x, tuner = check_chains(model, x), DualAveraging(start, target)
    source = random.generator(seed, x.device)
    for _ in range(whole(steps, "steps")):
        x, info = _move(make(tuner.current), model, x, source)
        tuner.update(_mean(info))
    return Adapted(make(tuner.answer), x)


def best(
    make: Callable[[V], K],
    candidates: Sequence[V],
    model: Function,
    x: Tensor,
    *,
    steps: int,
    seed: Seed,
    space: Space | None = None,
) -> Adapted[K]:
    """The kernel make(c), c a candidate, that jumps farthest: mean squared distance moved, per evaluation and gradient.

    Distances are between float views, so that for bits it is the number of bits changed. For integers (how many flips to
    draw, how many leapfrog steps) and for parameters in which the acceptance is not monotone (a temperature). The
    candidates take turns, `steps` steps each, all on the same chains.

    References: Pasarica and Gelman (2010), Adaptively scaling the Metropolis algorithm using expected
    squared jumped distance.

    Example:
        >>> import gibbsite as gb
        >>> from gibbsite.sample import MH, Informed, adapt
        >>> model = gb.models.Ising.lattice(4, coupling=0.1)
        >>> x = model.space.uniform().sample(16, seed=0)
        >>> tuned = adapt.best(lambda n: MH(Informed(draws=n)), [1, 3, 5], model, x, steps=20, seed=1)
    """
    model = as_model(model, space)
    x, kernels = check_chains(model, x), [make(value) for value in candidates]
    if not kernels:
        raise ValueError("candidates: expected at least one, got none")
    source = random.generator(seed, x.device)
    moved, cost = [0.0] * len(kernels), [0.0] * len(kernels)
    for _ in range(whole(steps, "steps")):
        for index, kernel in enumerate(kernels):
            new, info = _move(kernel, model, x, source)
            moved[index] += _jump(model, x, new)
            cost[index] += info.cost.evaluations + info.cost.gradients
            x = new
    rates = [distance / max(price, 1e-300) for distance, price in zip(moved, cost, strict=True)]
    return Adapted(kernels[max(range(len(rates)), key=rates.__getitem__)], x)


def diagonal_mass(
    make: Callable[[float, Tensor], K],
    model: Function,
    x: Tensor,
    *,
    steps: int,
    seed: Seed,
    target: float = 0.8,
    start: float = 0.1,
    space: Space | None = None,
) -> Adapted[K]:
    """make(eps, mass) with mass the inverse of each entry's variance, and eps tuned to `target` under that mass.

    Windowed as in Stan: 15 % of the steps find a first eps, 75 % lie in windows of doubling length that each end with a
    new mass from the states of all chains within, 10 % settle eps. Variances are shrunk towards 0.001.

    References: Carpenter et al. (2017), Stan; Hoffman and Gelman (2014).

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.sample import HMC, adapt
        >>> model = gb.distributions.Normal.diagonal(torch.zeros(2), torch.tensor([1.0, 100.0]))
        >>> tuned = adapt.diagonal_mass(lambda e, m: HMC(e, 5, m), model, torch.zeros(32, 2), steps=300, seed=0)
        >>> ratio = tuned.kernel.mass[0] / tuned.kernel.mass[1]
        >>> bool(1e3 < ratio < 1e5)
        True
    """
    model = as_model(model, space)
    x, tuner = _real_chains(model, x), DualAveraging(start, target)
    first = torch.ones(x.shape[1:], dtype=x.dtype, device=x.device)
    return _windowed(make, model, x, first, DiagonalWelford, whole(steps, "steps"), seed, tuner)


def dense_mass(
    make: Callable[[float, Tensor], K],
    model: Function,
    x: Tensor,
    *,
    steps: int,
    seed: Seed,
    target: float = 0.8,
    start: float = 0.1,
    space: Space | None = None,
) -> Adapted[K]:
    """make(eps, mass) with mass the inverse of the covariance of the flattened states, otherwise as `diagonal_mass`."""
    model = as_model(model, space)
    x, tuner = _real_chains(model, x), DualAveraging(start, target)
    first = torch.eye(x[0].numel(), dtype=x.dtype, device=x.device)
    return _windowed(make, model, x, first, DenseWelford, whole(steps, "steps"), seed, tuner)


class Welford(ABC):
    """Running mean and co-moments of states, over chains and time, in double precision."""

    def __init__(self):
        self.count = 0
        self.mean = self.scatter = torch.zeros(())

    def add(self, x: Tensor) -> None:
        """Takes in the states of all chains."""
        flat = x.reshape(len(x), -1).double()
        mean, total = flat.mean(0), self.count + len(flat)
        gap = (mean - self.mean)[None]
        self.scatter = self.scatter + self._product(flat - mean) + self.count * len(flat) / total * self._product(gap)
        self.mean, self.count = self.mean + gap[0] * (len(flat) / total), total

    @abstractmethod
    def _product(self, away: Float[Tensor, "chains n"]) -> Tensor:
        """The sum over rows of their squares, or of their outer products."""

    @abstractmethod
    def mass(self, x: Tensor) -> Tensor:
        """The inverse of the variance seen, shrunk towards 0.001 as Stan does, in the type of x."""


@final
class DiagonalWelford(Welford):
    """Variances only."""

    def _product(self, away: Tensor) -> Tensor:
        return away.square().sum(0)

    def mass(self, x: Tensor) -> Tensor:
        n = self.count
        variance = n / (n + 5) * self.scatter / max(1, n - 1) + 5 / (n + 5) * 1e-3
        return (1 / variance).view(x.shape[1:]).to(x.dtype)


@final
class DenseWelford(Welford):
    """The whole covariance matrix."""

    def _product(self, away: Tensor) -> Tensor:
        return away.T @ away

    def mass(self, x: Tensor) -> Tensor:
        n = self.count
        eye = torch.eye(len(self.scatter), dtype=self.scatter.dtype, device=self.scatter.device)
        inverse = torch.linalg.inv(n / (n + 5) * self.scatter / max(1, n - 1) + 5 / (n + 5) * 1e-3 * eye)
        return (0.5 * (inverse + inverse.T)).to(x.dtype)


def windows(steps: int) -> list[int]:
    """The ends of the windows in which a mass is learned: the first 15 % and the last 10 % of the steps lie outside."""
    first, last = round(0.15 * steps), steps - round(0.1 * steps)
    ends, start, width = [], first, max(1, round(0.025 * steps))
    while start < last:
        end = start + width if start + 3 * width <= last else last
        ends.append(end)
        start, width = end, 2 * width
    return ends


def _windowed(
    make: Callable[[float, Tensor], K],
    model: Model,
    x: Tensor,
    mass: Tensor,
    moments: Callable[[], Welford],
    steps: int,
    seed: Seed,
    tuner: DualAveraging,
) -> Adapted[K]:
    source, seen, ends = random.generator(seed, x.device), moments(), windows(steps)
    for step in range(1, steps + 1):
        x, info = _move(make(tuner.current, mass), model, x, source)
        tuner.update(_mean(info))
        if round(0.15 * steps) < step <= ends[-1]:
            seen.add(x)
        if step in ends:
            mass, seen = seen.mass(x), moments()
            tuner = DualAveraging(tuner.answer, tuner.target) if step < steps else tuner
    return Adapted(make(tuner.answer, mass), x)


def _real_chains(model: Model, x: Tensor) -> Tensor:
    return check_chains(model, real(model, x))


def _move(kernel: Kernel, model: Model, x: Tensor, source: Source) -> tuple[Tensor, Info]:
    """One step from x, with the state made anew: what it holds may depend on the parameter that is being tuned."""
    state, info = check_kernel(kernel, "make(...)").step(model, kernel.init(model, x), source)
    return state.x, info


def _mean(info: Info) -> float:
    return float(info.acceptance.nan_to_num(0.0).mean())


def _jump(model: Model, x: Tensor, new: Tensor) -> float:
    away = (model.space.embed(new) - model.space.embed(x)).double()
    return float(away.square().sum() / len(away))
