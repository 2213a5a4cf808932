"""`gibbsite.learn.fit`: the loop that minimises an objective, resumes bit for bit, and stops when it diverges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from ..sample.driver import progress_bar
from ..space import whole
from .average import Average
from .checkpoint import Checkpoints
from .data import Data, as_data
from .guard import Guard
from .objective import Objective
from .session import Session

Schedule = Callable[[int], float]


@final
@dataclass(frozen=True)
class Fitted:
    """What `fit` leaves: the objective with its learned weights, the moving average, and the metrics that were logged."""

    objective: Objective
    average: Average | None
    metrics: list[dict[str, Any]] = field(repr=False)
    step: int = 0
    interrupted: bool = False


def fit(
    objective: Objective,
    data: Data | Tensor | Sequence[Tensor],
    *,
    optimiser: torch.optim.Optimizer,
    steps: int,
    batch: int,
    seed: int,
    schedule: Schedule | None = None,
    average: Average | None = None,
    clip: float | Callable[[torch.optim.Optimizer], None] | None = None,
    out: Path | str | None = None,
    save_every: int = 1000,
    log_every: int = 100,
    keep: int = 2,
    guard: Guard | None = None,
    progress: bool | Callable[[int], None] | None = None,
) -> Fitted:
    """Minimises the objective for `steps` mini-batches of `batch` examples, each epoch in a new random order.

    `schedule` maps a step to a factor of the learning rate; `average` is a moving average of the weights; `clip` bounds the
    gradient's norm, or is a function that changes the gradients. With `out`, metrics.jsonl and checkpoint/ are written
    there, and a run that finds a checkpoint goes on from it: its weights then equal, bit for bit, those of a run that was
    never stopped. Ctrl-C finishes the step, saves and returns. A run that diverges raises `Diverged` with the weights of
    the last good checkpoint in place (see `Guard`).

    Under torchrun every process takes its share of each mini-batch, and gradients are averaged; `batch` is the total.

    Example:
        >>> import torch, gibbsite as gb
        >>> data = gb.models.Ising.lattice(3, coupling=0.3).space.uniform().sample(256, seed=0)
        >>> model = gb.models.Ising.lattice(3, coupling=0.0)
        >>> chains = gb.learn.Persistent(gb.sample.GibbsSweep(), data[:64])
        >>> objective = gb.learn.Contrastive(model, chains)
        >>> optimiser = torch.optim.SGD(objective.parameters(), lr=0.05)
        >>> gb.learn.fit(objective, data, optimiser=optimiser, steps=20, batch=32, seed=0).step
        20
    """
    if not isinstance(objective, Objective):
        raise TypeError(f"objective: expected a gibbsite.learn.Objective, got {type(objective).__name__}")
    steps, batch = whole(steps, "steps"), whole(batch, "batch")
    session = Session(
        objective, as_data(data), optimiser, batch, whole(seed, "seed", 0), schedule, average, clip, guard or Guard()
    )
    checkpoints = None if out is None else Checkpoints(Path(out) / "checkpoint", keep=keep, rank=session.group.rank)
    with session.writing(checkpoints, None if out is None else Path(out) / "metrics.jsonl"):
        with session.signals(), progress_bar(progress, steps, "learning") as tell:
            tell(session.step)
            while session.step < steps and not session.interrupted:
                session.advance()
                tell(1)
                if session.step % whole(log_every, "log_every") == 0 or session.step == steps:
                    session.log()
                if session.step % whole(save_every, "save_every") == 0:
                    session.save()
        session.log()
        session.save(last=True)
    return Fitted(objective, average, session.metrics, session.step, session.interrupted)
