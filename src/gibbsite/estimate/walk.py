"""Chains carried along a path of models, and the weights they gather: what annealed importance sampling is made of."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from .. import random
from ..algebra import Geometric, Path
from ..check import instance, number
from ..model import Distribution, device_of, evaluate
from ..processes import Group
from ..random import Seed, Source
from ..sample.anneal import by_beta, transition
from ..sample.driver import Progress, progress_bar
from ..sample.gibbs import BlockGibbs
from ..sample.kernel import Cost, Kernel, check_chains
from ..space import whole
from .rbm_path import RBMPath
from .rbm_walk import RBMWalk, covers

Kernels = Kernel | Callable[[float], Kernel]


class Walk(NamedTuple):
    """Log weights in double precision, where the chains stand at the end, and what each took."""

    log_w: Float[Tensor, " chains"]
    x: Shaped[Tensor, "chains *event"]
    cost: Cost


def ladder(betas: Sequence[float]) -> list[float]:
    """The betas, if they rise from 0 to 1."""
    if not isinstance(betas, Iterable) or isinstance(betas, str):
        raise TypeError(f"betas: expected numbers that rise from 0 to 1, such as linear(1000), got {betas!r}")
    values = [number(beta, f"betas[{place}]") for place, beta in enumerate(betas)]
    if len(values) < 2 or values[0] != 0 or values[-1] != 1 or any(low >= high for low, high in pairwise(values)):
        shown = f"{len(values)} from {min(values)} to {max(values)}" if values else "none"
        raise ValueError(f"betas: expected at least two numbers that rise from 0 to 1, got {shown}; such as linear(1000)")
    return values


def start_of(path: Path) -> Distribution:
    """The distribution that a path starts from, if it is one and lives in the space where the path ends."""
    instance(path, Path, "path", hint="; such as gb.Geometric(model.space.uniform(), model)")
    base = instance(path.start, Distribution, "path.start", hint="; its log Z must be known to be 0 and draws be had")
    end = path.at(1.0)
    if base.space != end.space:
        raise ValueError(f"path: expected one space, got a start on {base.space} and an end on {end.space}")
    return base


def increment(path: Path, low: float, high: float, x: Tensor) -> Float[Tensor, " chains"]:
    """U_high(x) - U_low(x) in double precision, taken as a difference where the path knows it as one."""
    if isinstance(path, Geometric):
        return (high - low) * (evaluate(path.end, x).double() - evaluate(path.start, x).double())
    if isinstance(path, RBMPath):
        return path.increment(low, high, x)
    return evaluate(path.at(high), x).double() - evaluate(path.at(low), x).double()


def forward(
    path: Path, kernel: Kernels, betas: Sequence[float], chains: int, *, seed: Seed, progress: Progress = None
) -> Walk:
    """From draws of the path's start to its end: E[exp(log_w)] = Z exactly, for kernels that keep each beta's law.

    log w = U_0(x_0) - log q(x_0) + sum_k U_k(x_(k-1)) - U_(k-1)(x_(k-1)), x_k one step of the kernel at beta_k from x_(k-1).
    """
    steps, base = ladder(betas), start_of(path)
    group = Group.current(device_of(path.at(1.0)))
    generator = group.source(random.generator(seed, group.device))
    with group.agreed():
        x = check_chains(base, base.sample(group.share(whole(chains, "chains"), "chains"), seed=generator))
        gauge = evaluate(path.at(0.0), x).double() - evaluate(base, x).double()
        walk = _carry(path, kernel, steps, x, generator, progress)
    return _gathered(group, walk._replace(log_w=walk.log_w + gauge))


def backward(
    path: Path, kernel: Kernels, betas: Sequence[float], x: Tensor, *, seed: Seed, progress: Progress = None
) -> Walk:
    """From draws x of the path's end to its start, the same moves in the opposite order: E[exp(log_w)] = 1 / Z."""
    steps, base = ladder(betas), start_of(path)
    x = check_chains(base, x)
    group = Group.current(x.device)
    generator = group.source(random.generator(seed, x.device))
    with group.agreed():
        walk = _carry(path, kernel, steps[::-1], group.part(x, "x"), generator, progress)
        gauge = evaluate(base, walk.x).double() - evaluate(path.at(0.0), walk.x).double()
    return _gathered(group, walk._replace(log_w=walk.log_w + gauge))


def _gathered(group: Group, walk: Walk) -> Walk:
    """The chains of all processes, as if one had carried them all."""
    return Walk(group.gather(walk.log_w), group.gather(walk.x), together(group, walk.cost))


def together(group: Group, cost: Cost) -> Cost:
    """What a chain took, in the mean over processes."""
    return Cost(*group.mean(torch.tensor(cost, dtype=torch.float64, device=group.device)).tolist())


def _carry(path: Path, kernel: Kernels, betas: list[float], x: Tensor, generator: Source, progress: Progress) -> Walk:
    """The sum of the increments, each taken BEFORE the chains move at the beta that it leads to; none move at either end."""
    make, cost = by_beta(kernel), Cost(2, 0)  # of the gauge at the start of the path
    fast = isinstance(path, RBMPath) and isinstance(kernel, BlockGibbs) and covers(path, kernel, x)
    chains = RBMWalk(path, kernel, x, generator) if fast else _Chains(path, make, x, generator)  # type: ignore[arg-type]
    log_w = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    with torch.no_grad(), progress_bar(progress, len(betas) - 1, "annealing") as tell:
        for low, high in pairwise(betas):
            log_w = log_w + chains.weigh(low, high)
            cost = cost.plus(Cost(2, 0))
            if 0 < high < 1:
                cost = cost.plus(chains.move(high, log_w))
            tell(1)
    return Walk(log_w, chains.x, cost)


class _Chains:
    """Chains on any path, moved by any kernel."""

    def __init__(self, path: Path, make: Callable[[float], Kernel], x: Tensor, generator: Source):
        self._path, self._make, self._generator, self.x = path, make, generator, x

    def weigh(self, low: float, high: float) -> Tensor:
        """U_high(x) - U_low(x)."""
        return increment(self._path, low, high, self.x)

    def move(self, beta: float, log_w: Tensor) -> Cost:
        """One step at beta, and its cost; chains of weight 0 are set to where another one stands first."""
        x = _revived(self.x, log_w, beta)
        state, spent = transition(self._make(beta), self._path.at(beta), x, self._generator)
        self.x = state.x
        return spent


def _revived(x: Tensor, log_w: Tensor, beta: float) -> Tensor:
    """x with chains of weight 0, which stand where the next model is impossible, set to where another one stands."""
    dead = log_w == -torch.inf
    if not dead.any():
        return x
    if dead.all():
        raise ValueError(
            f"ais: every chain stands at a state that the model at beta={beta:g} gives probability 0; start from a base "
            "that is closer to the model (data=, base=), or take more chains"
        )
    alive = (~dead).nonzero()[:, 0]
    places = torch.where(dead, alive[0], torch.arange(len(x), device=x.device))
    return x[places]
