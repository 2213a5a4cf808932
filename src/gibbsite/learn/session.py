"""One run of `fit` while it goes on: everything that changes from step to step, and how it is kept and put back."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from .. import random
from ..files import append_line, read_lines, write_lines
from ..model import device_of
from .average import Average
from .checkpoint import CheckpointError, Checkpoints
from .data import Data
from .guard import Diverged, Guard, Watch
from .objective import Objective
from .order import Order
from .processes import Group
from .snapshot import Snapshot, into_module, into_optimiser, of_module, of_optimiser


@final
class Session:
    """The state of a run: step, weights, optimiser, average, order of the data, generators, guard, metrics."""

    def __init__(
        self,
        objective: Objective,
        data: Data,
        optimiser: torch.optim.Optimizer,
        batch: int,
        seed: int,
        schedule: Callable[[int], float] | None,
        average: Average | None,
        clip: float | Callable[[torch.optim.Optimizer], None] | None,
        guard: Guard,
    ):
        self.group = Group.current()
        self.objective, self.data, self.optimiser, self.average = objective, data, optimiser, average
        self.module = self.group.wrapped(objective)
        self.schedule, self.clip, self.seed = schedule or (lambda step: 1.0), clip, seed
        self.rates = [group["lr"] for group in optimiser.param_groups]
        self.order = Order(len(data), batch, seed)
        self.generator = self._generator(0)
        self.watch, self.retries, self.shrink = Watch(guard), 0, 1.0
        self.step, self.interrupted = 0, False
        self.metrics: list[dict[str, Any]] = []
        self._sums: dict[str, float] = {}
        self._count, self._unwritten = 0, list[dict[str, Any]]()
        self._checkpoints: Checkpoints | None = None
        self._lines: Path | None = None
        self._good = self.snapshot()

    def _generator(self, attempt: int) -> torch.Generator:
        """The generator of the objective's draws: of this process, and another after each retry."""
        source = random.generator(self.seed, device_of(self.objective))
        assert isinstance(source, torch.Generator)
        jump = self.group.rank + self.group.size * attempt
        return source if not jump else source.manual_seed(random.substream(self.seed, jump))

    def advance(self) -> None:
        """One update; a diverged one goes back to the last good state, and raises unless a retry is left."""
        rows = self.data.rows(self.group.share(self.order.next()), self.order.generator)
        report = self.module(rows, seed=self.generator)
        numbers = {"loss": float(report.loss.detach()), **{key: float(value) for key, value in report.metrics.items()}}
        self.optimiser.zero_grad(set_to_none=True)
        report.loss.backward()
        numbers["gradient"] = float(self._clipped())
        if (wrong := self.watch.wrong(self.group.mean(numbers))) is not None:
            self._diverged(*wrong)
            return
        factor = self.schedule(self.step) * self.shrink
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        self.optimiser.step()
        if self.average is not None:
            self.average.update()
        self.step += 1
        for key, value in numbers.items():
            self._sums[key] = self._sums.get(key, 0.0) + value
        self._count += 1

    def _clipped(self) -> Tensor:
        """The norm of the gradient, which is bounded if asked."""
        parameters = [p for group in self.optimiser.param_groups for p in group["params"] if p.grad is not None]
        if callable(self.clip):
            self.clip(self.optimiser)
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        if isinstance(self.clip, int | float):
            torch.nn.utils.clip_grads_with_norm_(parameters, self.clip, norm)
        return norm

    def _diverged(self, quantity: str, value: float) -> None:
        step, guard, retry, shrink = self.step, self.watch.guard, self.retries + 1, self.shrink * self.watch.guard.shrink
        self.restore(self._good)
        if retry > guard.retries:
            raise Diverged(step, quantity, value, self.step)
        self.retries, self.shrink = retry, shrink  # not those of the last good state, which knows nothing of this
        self.generator = self._generator(self.retries)
        self._write({"step": step, "event": "diverged", "quantity": quantity, "value": value, "back_to": self.step,
                     "rate_factor": self.shrink, "retry": self.retries})  # fmt: skip

    def snapshot(self) -> Snapshot:
        """All of it."""
        optimiser = of_optimiser(self.optimiser)
        tensors = {
            **of_module(self.objective, "objective"),
            **optimiser.tensors,
            **{f"average.{key}": value.clone() for key, value in (self.average.weights if self.average else {}).items()},
            "generator": self.generator.get_state(),
            **self.order.tensors(),
        }
        state = {"step": self.step, "optimiser": optimiser.state, "order": self.order.state(), "watch": self.watch.state(),
                 "retries": self.retries, "shrink": self.shrink, "processes": self.group.size,
                 "sums": dict(self._sums), "summed": self._count}  # fmt: skip
        return Snapshot(tensors, state)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot, if it is of this objective, optimiser and data."""
        tensors, state = snapshot
        if state["processes"] != self.group.size:
            raise CheckpointError(
                f"processes: the checkpoint was written by {state['processes']}, this run has {self.group.size}"
            )
        into_module(self.objective, "objective", tensors)
        into_optimiser(self.optimiser, snapshot)
        if self.average is not None:
            for key, value in self.average.weights.items():
                value.copy_(tensors[f"average.{key}"])
        self.generator.set_state(tensors["generator"].cpu())
        self.order.restore(tensors, state["order"])
        self.watch.restore(state["watch"])
        self.step, self.retries, self.shrink = state["step"], state["retries"], state["shrink"]
        self._sums, self._count = dict(state["sums"]), state["summed"]

    def log(self) -> None:
        """Writes the means of the numbers since the last time."""
        if self._count:
            means = {key: value / self._count for key, value in self._sums.items()}
            self._write({"step": self.step, **self.group.mean(means)})
        self._sums, self._count = {}, 0

    def _write(self, line: dict[str, Any]) -> None:
        self.metrics.append(line)
        if self._lines is None or self.group.rank:
            return
        self._unwritten.append(line)
        try:
            while self._unwritten:
                append_line(self._lines, self._unwritten[0])
                self._unwritten.pop(0)
        except OSError as error:
            warnings.warn(f"{self._lines}: not written ({error}); kept in memory and tried again", stacklevel=2)

    def save(self, last: bool = False) -> None:
        """Keeps this state as the last good one, on disk where there is one; not while the guard has doubts."""
        if not self.watch.calm:
            return
        self._good = self.snapshot()
        if self._checkpoints is None:
            return
        try:
            self._checkpoints.write(self.step, self._good)
        except OSError as error:
            if last:
                raise CheckpointError(
                    f"{self._checkpoints.path(self.step)}: not written ({error}); the model is in memory"
                ) from error
            warnings.warn(f"{self._checkpoints.path(self.step)}: not written ({error}); tried again later", stacklevel=2)

    @contextmanager
    def writing(self, checkpoints: Checkpoints | None, lines: Path | None) -> Iterator[None]:
        """Goes on from the last checkpoint there is, and holds the folder until the end."""
        if checkpoints is None:
            yield
            return
        checkpoints.lock()
        try:
            if (found := checkpoints.read()) is not None:
                self.restore(found)
                self._good = found
            self._checkpoints, self._lines = checkpoints, lines
            self._forget_later_lines()
            yield
        finally:
            checkpoints.unlock()

    def _forget_later_lines(self) -> None:
        """Metrics of steps after the checkpoint will be written again."""
        assert self._lines is not None
        if self.group.rank or not self._lines.exists():
            return
        self.metrics = [line for line in read_lines(self._lines) if line.get("step", 0) <= self.step]
        write_lines(self._lines, self.metrics)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Ctrl-C lets the step end; a second one does not wait."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: Any) -> None:
            self.interrupted = True
            signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
