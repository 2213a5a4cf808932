"""What `run`, `moments` and `trace` share: checks, warm-up, bursts of compiled steps, progress, interruption, sums."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import rich.progress
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from torch import Tensor

from .. import random
from ..model import Model, as_model
from ..processes import Group
from ..random import Seed, Source
from ..space import Space, whole
from .chain import Statistic
from .combine import Repeat
from .compiled import Compiled, compiled
from .kernel import Cost, Info, Kernel, State
from .tempering import Replicas

Progress = bool | Callable[[int], None] | None  # a function is told the steps just made
Keep = Callable[[int, Tensor, Tensor], bool]  # (number of the first, states (k, chains, *event), U (k, chains)) -> go on?
_BURST = 100  # steps between two looks at the clock and the keyboard
_HELD = 1 << 26  # numbers of states held at once on their way to whoever keeps them


class Driver:
    """Steps a kernel and adds up what its infos say."""

    def __init__(
        self,
        kernel: Kernel,
        model: Callable[[Tensor], Tensor],
        x: Tensor | State | Replicas,
        *,
        steps: int,
        warmup: int,
        thin: int,
        seed: Seed,
        space: Space | None,
    ):
        start = x.x if isinstance(x, State | Replicas) else x
        self.model, self.generator, start = _checked(kernel, model, start, steps, warmup, thin, seed, space)
        self.kernel, self.warmup, self.thin, self.draws = kernel, warmup, thin, steps // thin
        # a state goes on as it was left, with the momentum, step count or ladder in it; one that holds only x is made anew
        whole_state = isinstance(x, Replicas) or (isinstance(x, State) and x.local is not None)
        self.state: Any = x if whole_state else kernel.init(self.model, start)
        self._runners: dict[int, Kernel] = {}
        self._reset()

    def _reset(self) -> None:
        self.cost, self.steps, self._acceptance = Cost(), 0, torch.zeros_like(self.state.u)
        self.interrupted, self._began, self.seconds = False, time.perf_counter(), 0.0

    def collect(self, keep: Keep, progress: Progress = None) -> int:
        """Warms up, then hands the state after every `thin` steps to `keep` until it says False; how many were kept."""
        done = 0
        try:
            with torch.no_grad(), progress_bar(progress, self.warmup + self.draws * self.thin) as tell:
                self._advance(self.warmup, tell)
                self._reset()
                while done < self.draws:
                    x, u = self._draw(self.draws - done, tell)
                    done += len(x)
                    if not keep(done - len(x), x, u):
                        break
        except KeyboardInterrupt:
            if not done:
                self._reset()  # what warm-up cost is not what the draws cost
            self.interrupted = True
        self.seconds = time.perf_counter() - self._began
        return done

    def _advance(self, steps: int, tell: Callable[[int], None]) -> None:
        """`steps` steps, in bursts of at most 100 so that the bar moves and Ctrl-C is heard."""
        while steps > 0:
            burst = min(steps, _BURST)
            self.state, info = self._runner(burst).step(self.model, self.state, self.generator)
            self._count(burst, info)
            tell(burst)
            steps -= burst

    def _draw(self, most: int, tell: Callable[[int], None]) -> tuple[Tensor, Tensor]:
        """The next states to keep: one, or as many as a compiled loop makes in a burst."""
        runner = self._runner(self.thin) if self.thin <= _BURST else None
        if not isinstance(runner, Compiled):
            self._advance(self.thin, tell)
            return self.state.x[None], self.state.u[None]
        count = max(1, min(most, _BURST // self.thin, _HELD // self.state.x.numel()))
        x, u, info = runner.draws(self.model, self.state, cast(torch.Generator, self.generator), count)
        self.state = State(x[-1], u[-1])
        self._count(count * self.thin, info)
        tell(count * self.thin)
        return x, u

    def _runner(self, steps: int) -> Kernel:
        if steps not in self._runners:
            repeated = Repeat(self.kernel, steps) if steps > 1 else self.kernel
            self._runners[steps] = compiled(repeated, self.model, self.state.x)
        return self._runners[steps]

    def _count(self, steps: int, info: Info) -> None:
        self._acceptance = self._acceptance + steps * info.acceptance
        self.cost, self.steps = self.cost.plus(info.cost), self.steps + steps

    def ends(self) -> tuple[Tensor, Cost, int, float, Any, bool]:
        """Acceptance, cost, steps, seconds, state, interrupted: the last fields of every result."""
        return (
            self._acceptance / (self.steps or torch.nan),
            self.cost,
            self.steps,
            self.seconds,
            self.state,
            self.interrupted,
        )


def measured(statistic: Statistic, x: Tensor) -> Tensor:
    """statistic(x), if its leading dimension is the chains."""
    values = statistic(x)
    if not isinstance(values, Tensor) or values.shape[:1] != x.shape[:1]:
        came = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(f"statistic: expected one value a chain, shape ({len(x)}, ...), got {came}")
    return values.detach()


def trimmed(values: Tensor, count: int) -> Tensor:
    """The first `count` rows, in memory of their own unless that is all of them."""
    return values if count == len(values) else values[:count].clone()


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
    if isinstance(kernel, type):
        raise TypeError(f"kernel: expected a kernel, got the class; write {kernel.__name__}()")
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
    steps, warmup, thin = whole(steps, "steps"), whole(warmup, "warmup", 0), whole(thin, "thin")
    if thin > steps:
        raise ValueError(f"expected steps >= 1, warmup >= 0 and 1 <= thin <= steps, got {steps}, {warmup}, {thin}")
    return model, random.generator(seed, x.device), x


@contextmanager
def progress_bar(progress: Progress, total: int, what: str = "sampling") -> Iterator[Callable[[int], None]]:
    """A bar in a terminal, of the first process, or whatever `progress` says: a function that takes the steps just made."""
    if callable(progress):
        yield progress
    elif not (sys.stderr.isatty() and Group.current().rank == 0 if progress is None else progress):
        yield lambda steps: None
    else:
        columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with rich.progress.Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=total)
            yield lambda steps: bar.advance(task, steps)
