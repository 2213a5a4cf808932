"""Carrying out a plan: learning by `gibbsite.learn.fit` in pieces, with a look at held-out utterances after each."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import torch

from ...learn import Average, Fitted, fit
from ...learn.schedule import Cosine, Warmup
from .batches import Batch, Batches, Masks
from .criterion import Criterion
from .edits import Edits, edits
from .objective import Transcription
from .plan import Plan
from .recogniser import Recogniser
from .task import Task, check_lengths, criterion_of, recogniser_of

_CLIP = 5.0


def learn(
    plan: Plan,
    task: Task,
    *,
    out: Path,
    progress: Callable[[int], None] = lambda steps: None,
    looked: Callable[[dict[str, Any]], None] = lambda row: None,
    known: Sequence[int] = (),
) -> tuple[Recogniser, Criterion, Fitted]:
    """The recogniser that a plan leads to, with the moving average of its weights.

    `looked` is told the epoch, the errors on held-out utterances and the seconds of an epoch, by the clock and of the CPU,
    after each piece, unless its epoch is among those `known` from before an interruption. A run that was cut short in `out`
    goes on, as `fit` does.
    """
    criterion = criterion_of(plan, task.alphabet.classes, task.transcripts()).to(plan.device)
    recogniser = recogniser_of(plan, task.size, criterion.classes)
    check_lengths(task, recogniser, criterion)
    batches = task.batches(task.corpus.train, plan.batch, plan.device)
    held_out = task.batches(task.corpus.validation, plan.batch, plan.device)
    objective, average = Transcription(recogniser, criterion), Average(recogniser, plan.average)
    options: dict[str, Any] = {
        "optimiser": torch.optim.Adam(objective.parameters(), plan.rate), "average": average, "batch": 1, "seed": plan.seed,
        "schedule": Warmup(len(batches)) * Cosine(plan.epochs * len(batches)), "clip": _CLIP, "out": out,
        "log_every": len(batches), "save_every": len(batches),
    }  # fmt: skip
    data = Batches(batches, Masks(times=plan.time_masks, bands=plan.band_masks))
    done, fitted = 0, None
    averaged = recogniser_of(plan, task.size, criterion.classes).eval().requires_grad_(False)
    for epoch in sorted({max(1, plan.epochs * look // plan.looks) for look in range(1, plan.looks + 1)}):
        if epoch in known and epoch < plan.epochs:
            continue
        pace = _Pace(progress, done * len(batches), plan.device)
        fitted = fit(objective, data, steps=epoch * len(batches), progress=pace, **options)
        spent = pace.of(len(batches))
        if fitted.interrupted:
            raise KeyboardInterrupt
        average.copy_to(averaged)
        if epoch not in known:
            found = counts(averaged, criterion, held_out)
            error = sum(edit.errors for edit in found) / max(1, sum(edit.length for edit in found))
            looked({"epoch": epoch, "error": error if found else None, **spent})
        done = epoch
    assert fitted is not None
    return averaged, criterion, fitted


@torch.no_grad()
def counts(recogniser: Recogniser, criterion: Criterion, batches: Sequence[Batch]) -> list[Edits]:
    """The edits between what was said and the most probable path, utterance by utterance."""
    found = list[Edits]()
    for batch in batches:
        scores, frames = recogniser(batch.features, batch.lengths)
        for heard, labels, length in zip(
            criterion.best(scores, frames), batch.labels.tolist(), batch.label_lengths.tolist()
        ):
            found.append(edits(labels[:length], heard))
    return found


@final
class _Pace:
    """Counts the steps that `fit` makes and times them; it is told first those of earlier calls, `shown` already."""

    def __init__(self, progress: Callable[[int], None], shown: int, device: str):
        self._progress, self._shown, self._device = progress, shown, device
        self._made, self._began = -1, self._clocks()

    def __call__(self, steps: int) -> None:
        first = self._made < 0
        self._made = 0 if first else self._made + steps
        self._progress(max(0, steps - self._shown) if first else steps)

    def of(self, steps: int) -> dict[str, float]:
        """The seconds that so many steps take, by the clock and of the CPU."""
        ended = self._clocks()
        return {name: (ended[name] - self._began[name]) / max(1, self._made) * steps for name in ended}

    def _clocks(self) -> dict[str, float]:
        if torch.device(self._device).type == "cuda":
            torch.cuda.synchronize(self._device)
        return {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}
