"""`gibbsite.moments`: a kernel run on many chains, with only the mean and variance of a statistic kept."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from ..random import Seed
from ..space import Space
from .chain import Statistic
from .driver import Driver, Progress, measured
from .kernel import Cost, Kernel, State
from .tempering import Replicas


@dataclass(frozen=True)
class Moments:
    """Mean and variance of a statistic over steps and chains; `stderr` and `rhat` from the spread of the chains' means.

    `variance` is that within chains plus that between their means, (n - 1)/n W + B/n of Gelman and Rubin (1992): before the
    chains agree it is rather too large. `rhat` is their ratio sqrt(variance / W) of whole chains, neither split nor ranked:
    a trend that all chains share is not in it, and is in that of `run` with `gibbsite.diagnose.rhat`.
    """

    mean: Float[Tensor, "..."]
    variance: Float[Tensor, "..."]
    stderr: Float[Tensor, "..."]
    rhat: Float[Tensor, "..."]
    acceptance: Float[Tensor, " chains"]
    cost: Cost
    steps: int
    seconds: float
    state: Any
    interrupted: bool = False


def moments(
    kernel: Kernel,
    model: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "chains *event"] | State | Replicas,
    *,
    steps: int,
    warmup: int = 0,
    thin: int = 1,
    seed: Seed,
    space: Space | None = None,
    statistic: Statistic | None = None,
    progress: Progress = None,
) -> Moments:
    """As `run`, but keeps only the mean and variance of `statistic(x)` (of x itself, if none is given).

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> start = model.space.uniform().sample(8, seed=0)
        >>> gb.moments(gb.sample.GibbsSweep(), model, start, steps=200, warmup=20, seed=1).mean.shape
        torch.Size([16])
    """
    driver = Driver(kernel, model, x, steps=steps, warmup=warmup, thin=thin, seed=seed, space=space)
    chains = len(driver.state.x)
    if chains < 2:
        raise ValueError("x: expected at least 2 chains, whose spread gives the standard error")
    mean = square = torch.zeros((), dtype=torch.float64, device=driver.state.x.device)

    def keep(first: int, states: Tensor, u: Tensor) -> bool:
        nonlocal mean, square
        for draw, x in enumerate(states, first + 1):
            value = (x if statistic is None else measured(statistic, x)).double()
            change = value - mean
            mean = mean + change / draw
            square = square + change * (value - mean)
        return True

    if driver.draws < 2:
        raise ValueError(f"steps: expected at least 2 kept steps, got {driver.draws}")
    count = driver.collect(keep, progress)
    if not count:
        raise KeyboardInterrupt  # in warm-up: there is nothing to keep
    between, within = mean.var(0), (square / (count - 1)).mean(0)
    total = within * (count - 1) / count + between
    ratio = torch.where(within > 0, (total / within).sqrt(), torch.where(between > 0, torch.inf, 1.0))
    return Moments(mean.mean(0), total, (between / chains).sqrt(), ratio, *driver.ends())
