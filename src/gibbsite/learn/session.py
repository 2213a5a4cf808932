"""One run of `fit` while it goes on: everything that changes from step to step, and how it is kept and put back."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import final

import torch
from torch import Tensor

from .. import random
from ..model import NotFinite, device_of
from ..processes import Group
from . import gradients, identity
from .average import Average
from .checkpoint import Checkpoints
from .data import Data, digest, placed
from .guard import Diverged, Guard, Watch
from .interrupt import Interrupt
from .journal import Journal
from .objective import Objective, Report, reported
from .order import Order
from .snapshot import CheckpointError, Snapshot, check_tensors, into_optimiser, into_tensors, of_module, of_optimiser

Schedule = Callable[[int], float]
Clip = float | Callable[[torch.optim.Optimizer], None]


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
        schedule: Schedule | None,
        average: Average | None,
        clip: Clip | None,
        guard: Guard,
        journal: Journal,
    ):
        self.device = device_of(objective)
        self.group = Group.current(self.device)
        self.objective, self.data, self.optimiser, self.average = objective, data, optimiser, average
        self.schedule, self.clip, self.seed, self.journal = schedule, clip, seed, journal
        self.rates = [group["lr"] for group in optimiser.param_groups]
        self.order = Order(len(data), batch, seed, self.group)
        self.identity = {
            **{f"objective.{key}": value for key, value in identity.settings(objective).items()},
            **identity.of_optimiser(optimiser),
            "data": digest(data), "batch": str(batch), "seed": str(seed),
            "schedule": identity.of_function(schedule), "clip": identity.of_function(clip),
            "average": "None" if average is None else str(average.decay),
            **{f"guard.{key}": str(value) for key, value in asdict(guard).items()},
        }  # fmt: skip
        self.module = gradients.wrapped(objective, self.group)
        self.retries, self.shrink = 0, 1.0
        self.generator = self._generator()
        self.watch, self.interrupt = Watch(guard), Interrupt()
        self.step, self.stopped = 0, False
        self._sums: dict[str, float] = {}
        self._count = 0
        self._checkpoints: Checkpoints | None = None
        self._good = self.snapshot()

    def _generator(self) -> torch.Generator:
        """The generator of the objective's draws: of this process, and another after each retry."""
        number = random.substream(self.seed, self.group.rank + self.group.size * self.retries)
        return torch.Generator(self.device).manual_seed(number)

    def advance(self) -> None:
        """One update; a diverged one goes back to the last good state, and raises unless a retry is left."""
        report, cause = self._report()
        if self.group.any(report is None):
            self._diverged("potential", math.nan, cause)
            return
        assert report is not None
        self.optimiser.zero_grad(set_to_none=True)
        report.loss.backward()
        gradients.averaged(self.objective, self.group)
        numbers = self._numbers(report, self._clipped())
        self.stopped = numbers.pop("stop") > 0
        if (wrong := self.watch.wrong(numbers)) is not None:
            self._diverged(*wrong)
            return
        self._update()
        for key, value in numbers.items():
            self._sums[key] = self._sums.get(key, 0.0) + value
        self._count += 1

    def _report(self) -> tuple[Report | None, NotFinite | None]:
        rows = placed(self.data.rows(self.order.next(), self.order.draws), self.device)
        try:
            return reported(self.module(rows, seed=self.generator)), None
        except NotFinite as error:
            return None, error

    def _clipped(self) -> Tensor:
        """The norm of the gradient, which is bounded if asked."""
        parameters = [p for group in self.optimiser.param_groups for p in group["params"] if p.grad is not None]
        if callable(self.clip):
            self.clip(self.optimiser)
        norm = gradients.norm(parameters)
        if isinstance(self.clip, float):
            gradients.bound(parameters, self.clip, norm)
        return norm

    def _numbers(self, report: Report, gradient: Tensor) -> dict[str, float]:
        """The step's numbers, means over all processes; brought to the host at once."""
        named = {"loss": report.loss, **report.metrics, "gradient": gradient, "stop": float(self.interrupt.asked)}
        values = [torch.as_tensor(value, device=self.device).detach().double() for value in named.values()]
        return dict(zip(named, self.group.mean(torch.stack(values)).tolist(), strict=True))

    def _update(self) -> None:
        factor = self.shrink * (1.0 if self.schedule is None else self.schedule(self.step))
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        self.optimiser.step()
        if self.average is not None:
            self.average.update()
        self.step += 1

    def _diverged(self, quantity: str, value: float, cause: Exception | None = None) -> None:
        step, guard, retry, shrink = self.step, self.watch.guard, self.retries + 1, self.shrink * self.watch.guard.shrink
        self.restore(self._good)
        line = {"step": step, "event": "diverged", "quantity": quantity, "value": value, "back_to": self.step}
        if retry > guard.retries:
            self.journal.write(line)
            raise Diverged(step, quantity, value, self.step) from cause
        self.retries, self.shrink = retry, shrink  # not those of the last good state, which knows nothing of this
        self.generator = self._generator()
        self.journal.write({**line, "rate_factor": self.shrink, "retry": self.retries})

    @property
    def _averages(self) -> dict[str, Tensor]:
        return self.average.weights if self.average else {}

    def snapshot(self) -> Snapshot:
        """All of it."""
        optimiser = of_optimiser(self.optimiser)
        tensors = {
            **of_module(self.objective, "objective"),
            **optimiser.tensors,
            **{f"average.{key}": value.clone() for key, value in self._averages.items()},
            "generator": self.generator.get_state(),
            **self.order.tensors(),
        }
        state = {"step": self.step, "optimiser": optimiser.state, "watch": self.watch.state(), "retries": self.retries,
                 "shrink": self.shrink, "sums": dict(self._sums), "summed": self._count, "identity": self.identity,
                 "journal": self.journal.state()}  # fmt: skip
        return Snapshot(tensors, state)

    def check(self, snapshot: Snapshot) -> None:
        """An error unless the snapshot is of this run."""
        identity.check(self.identity, snapshot.state["identity"])
        check_tensors(self.objective.state_dict(), "objective", snapshot.tensors)
        check_tensors(self._averages, "average", snapshot.tensors)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot of this run."""
        tensors, state = snapshot
        into_tensors(self.objective.state_dict(), "objective", tensors)
        into_tensors(self._averages, "average", tensors)
        into_optimiser(self.optimiser, snapshot)
        self.generator.set_state(tensors["generator"].cpu())
        self.order.restore(tensors)
        self.watch.restore(state["watch"])
        self.step, self.retries, self.shrink = state["step"], state["retries"], state["shrink"]
        self._sums, self._count = dict(state["sums"]), state["summed"]

    def log(self) -> None:
        """Writes the means of the numbers since the last time."""
        self.journal.write({"step": self.step, **{key: value / self._count for key, value in self._sums.items()}})
        self._sums, self._count = {}, 0

    def save(self, last: bool = False) -> None:
        """Keeps this state as the last good one, on disk if asked; while the guard has doubts, only the last is written."""
        self.journal.flush()
        if not (self.watch.calm or last):
            return
        now = self.snapshot()
        if self.watch.calm:
            self._good = now
        if self._checkpoints is None:
            return
        try:
            self._checkpoints.write(self.step, now)
        except OSError as error:
            path = self._checkpoints.path(self.step)
            if last:
                raise CheckpointError(f"{path}: not written ({error}); the model is in memory") from error
            warnings.warn(f"{path}: not written ({error}); tried again later", stacklevel=2)

    @contextmanager
    def writing(self, checkpoints: Checkpoints | None, steps: int) -> Iterator[None]:
        """Goes on from the last checkpoint there is, and holds the folder until the end; rates end as they began."""
        try:
            if checkpoints is not None:
                with self.group.agreed(CheckpointError):
                    if not checkpoints.folder.exists():
                        self.journal.check_new()
                with self.group.agreed(CheckpointError):
                    checkpoints.lock()
                self._resume(checkpoints, steps)
            yield
        finally:
            for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
                group["lr"] = rate
            if checkpoints is not None:
                checkpoints.unlock()

    def _resume(self, checkpoints: Checkpoints, steps: int) -> None:
        there = checkpoints.steps()
        with self.group.agreed(CheckpointError):
            found = checkpoints.read(there[-1]) if there else None
            if found is not None:
                self.check(found)
                if found.state["step"] > steps:
                    raise CheckpointError(
                        f"{checkpoints.folder}: holds step {found.state['step']}, beyond the {steps} steps asked for; ask "
                        "for more, or choose another directory"
                    )
        with self.group.agreed(CheckpointError):
            self.journal.restore(found.state["journal"] if found else None)
        self.journal.lines = self.group.first(self.journal.lines)
        if found is not None:
            self.restore(found)
        with self.group.agreed(CheckpointError):
            calm = found if self.watch.calm else checkpoints.read(there[-2]) if there[1:] else None
        self._good, self._checkpoints = calm or self._good, checkpoints
