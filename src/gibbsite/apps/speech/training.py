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

    `looked` is told the epoch, the errors on held-out utterances and the seconds of an epoch after each piece, unless its
    epoch is among those `known` from before an interruption. A run that was cut short in `out` goes on, as `fit` does.
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
        steps, began = _Steps(progress, done * len(batches)), _clock(plan.device)
        fitted = fit(objective, data, steps=epoch * len(batches), progress=steps, **options)
        seconds = (_clock(plan.device) - began) / max(1, steps.made)
        if fitted.interrupted:
            raise KeyboardInterrupt
        average.copy_to(averaged)
        if epoch not in known:
            found = counts(averaged, criterion, held_out)
            error = sum(edit.errors for edit in found) / max(1, sum(edit.length for edit in found))
            looked({"epoch": epoch, "error": error if found else None, "seconds": seconds * len(batches)})
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
class _Steps:
    """Counts the steps that `fit` makes, and tells of them; it begins with those of earlier calls, `shown` already."""

    def __init__(self, progress: Callable[[int], None], shown: int):
        self.made, self._progress, self._shown = -1, progress, shown

    def __call__(self, steps: int) -> None:
        first = self.made < 0
        self.made = 0 if first else self.made + steps
        self._progress(max(0, steps - self._shown) if first else steps)


def _clock(device: str) -> float:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
