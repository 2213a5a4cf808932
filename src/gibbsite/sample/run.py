"""Running kernels: warm-up, thinning, progress, stopping at a target R-hat; with the draws kept, or their moments only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from .. import random
from ..diagnose.convergence import rhat
from ..model import Model, as_model
from ..random import Seed, Source
from ..space import Space
from .chain import Chain, Statistic
from .combine import Repeat
from .compiled import compiled
from .kernel import Cost, Kernel

_MONITORED = 32  # sites whose R-hat is watched when no statistic is given


def run(
    kernel: Kernel,
    model: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "chains *event"],
    *,
    steps: int,
    warmup: int = 0,
    thin: int = 1,
    seed: Seed,
    space: Space | None = None,
    until_rhat: float | None = None,
    monitor: Statistic | None = None,
    progress: bool | None = None,
) -> Chain:
    """Runs every chain for `warmup` steps that are thrown away, then `steps` steps of which every `thin`-th state is kept.

    `until_rhat` (1.01, say) stops as soon as the largest R-hat of U and of `monitor(x)` (of the first sites, if none is
    given) is below it; `steps` is then the most. Ctrl-C returns what was drawn so far, with `interrupted` set. A progress
    bar is shown in a terminal unless `progress` says otherwise. Loops that are compiled for this kernel, model and device
    are used where there are any; they draw from the same law, not the same stream.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> start = model.space.uniform().sample(4, seed=0)
        >>> chain = gb.run(gb.sample.GibbsSweep(), model, start, steps=100, warmup=20, thin=2, seed=1)
        >>> chain.samples.shape, chain.interrupted
        (torch.Size([50, 4, 16]), False)
    """
    model, generator, x = _checked(kernel, model, x, steps, warmup, thin, seed, space)
    driver = _Driver(kernel, model, x, generator)
    draws = steps // thin
    samples = torch.empty(draws, len(x), *model.space.shape, dtype=driver.state.x.dtype, device=x.device)
    u = torch.empty(draws, len(x), dtype=driver.state.u.dtype, device=x.device)
    done, interrupted, began = 0, False, time.perf_counter()
    try:
        with _bar(progress, warmup + steps) as advance:
            driver.advance(warmup, advance)
            driver.reset()
            began = time.perf_counter()
            check = max(50, draws // 50)
            while done < draws:
                driver.advance(thin, advance)
                samples[done], u[done] = driver.state.x, driver.state.u
                done += 1
                if (
                    until_rhat is not None
                    and done % check == 0
                    and _largest_rhat(samples[:done], u[:done], monitor) < until_rhat
                ):
                    break
    except KeyboardInterrupt:
        interrupted = True
    kept = (samples, u) if done == draws else (samples[:done].clone(), u[:done].clone())
    seconds = time.perf_counter() - began
    return Chain(*kept, driver.acceptance(), driver.cost, driver.steps, seconds, driver.state, interrupted)


@dataclass(frozen=True)
class Moments:
    """Mean and variance of a statistic over steps and chains; `stderr` from the spread of the chains, `rhat` likewise."""

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
    x: Shaped[Tensor, "chains *event"],
    *,
    steps: int,
    warmup: int = 0,
    thin: int = 1,
    seed: Seed,
    space: Space | None = None,
    statistic: Statistic | None = None,
    progress: bool | None = None,
) -> Moments:
    """As `run`, but keeps only the mean and variance of `statistic(x)` (of x itself, if none is given).

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> start = model.space.uniform().sample(8, seed=0)
        >>> gb.moments(gb.sample.GibbsSweep(), model, start, steps=200, warmup=20, seed=1).mean.shape
        torch.Size([16])
    """
    model, generator, x = _checked(kernel, model, x, steps, warmup, thin, seed, space)
    if len(x) < 2:
        raise ValueError("x: expected at least 2 chains, whose spread gives the standard error")
    driver, interrupted, began, count = _Driver(kernel, model, x, generator), False, time.perf_counter(), 0
    mean = square = torch.zeros((), dtype=torch.float64, device=x.device)
    try:
        with _bar(progress, warmup + steps) as advance:
            driver.advance(warmup, advance)
            driver.reset()
            began = time.perf_counter()
            while count < steps // thin:
                driver.advance(thin, advance)
                value = (driver.state.x if statistic is None else statistic(driver.state.x)).double()
                count += 1
                delta = value - mean
                mean = mean + delta / count
                square = square + delta * (value - mean)
    except KeyboardInterrupt:
        interrupted = True
    if count < 2:
        raise ValueError(f"steps: expected at least 2 kept steps, got {count}")
    between, within = mean.var(0), (square / (count - 1)).mean(0)
    total = within * (count - 1) / count + between
    ratio = torch.where(within > 0, (total / within).sqrt(), torch.where(between > 0, torch.inf, 1.0))
    seconds, stderr = time.perf_counter() - began, (between / len(x)).sqrt()
    ends = (driver.acceptance(), driver.cost, driver.steps, seconds, driver.state, interrupted)
    return Moments(mean.mean(0), total, stderr, ratio, *ends)


class _Driver:
    """Steps a kernel and adds up what its infos say."""

    def __init__(self, kernel: Kernel, model: Model, x: Tensor, generator: Source):
        self.kernel, self.model, self.generator = kernel, model, generator
        self.state = kernel.init(model, x)
        self._runners: dict[int, Kernel] = {}
        self.reset()

    def reset(self) -> None:
        """Starts the sums anew."""
        self.cost, self.steps, self._acceptance = Cost(), 0, torch.zeros_like(self.state.u)

    def acceptance(self) -> Tensor:
        """The mean acceptance probability of each chain."""
        return self._acceptance / max(1, self.steps)

    def advance(self, steps: int, tell: Callable[[int], None]) -> None:
        """`steps` steps, in bursts of at most 100 so that the bar moves and Ctrl-C is heard."""
        while steps > 0:
            burst = min(steps, 100)
            if burst not in self._runners:
                self._runners[burst] = compiled(
                    Repeat(self.kernel, burst) if burst > 1 else self.kernel, self.model, self.state.x
                )
            self.state, info = self._runners[burst].step(self.model, self.state, self.generator)
            self._acceptance = self._acceptance + burst * info.acceptance
            self.cost, self.steps = self.cost.plus(info.cost), self.steps + burst
            tell(burst)
            steps -= burst


def _checked(
    kernel: Kernel,
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    steps: int,
    warmup: int,
    thin: int,
    seed: Seed,
    space: Space | None,
) -> tuple[Model, Source, Tensor]:
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel: expected a gibbsite.sample.Kernel, got {type(kernel).__name__}; a proposal is run as MH(proposal)"
        )
    model = as_model(model, space)
    x = model.space.check(x)
    if x.ndim != 1 + len(model.space.shape) or not len(x):
        raise ValueError(
            f"x: expected (chains, {', '.join(map(str, model.space.shape))}) with at least 1 chain, got {tuple(x.shape)}"
        )
    if steps < 1 or warmup < 0 or not 1 <= thin <= steps:
        raise ValueError(f"expected steps >= 1, warmup >= 0 and 1 <= thin <= steps, got {steps}, {warmup}, {thin}")
    return model, random.generator(seed, x.device), x


def _largest_rhat(samples: Tensor, u: Tensor, monitor: Statistic | None) -> float:
    watched = samples.flatten(2)[..., :_MONITORED] if monitor is None else monitor(samples)
    watched = watched.reshape(*u.shape, -1).double()
    values = rhat(torch.cat((u[..., None].double(), watched), -1))
    return float(values.nan_to_num(nan=torch.inf).max())


@contextmanager
def _bar(progress: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress("sampling", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("sampling", total=total)
        yield lambda steps: bar.advance(task, steps)
