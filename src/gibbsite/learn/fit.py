"""`gibbsite.learn.fit`: the loop that minimises an objective, resumes bit for bit, and stops when it diverges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from ..check import function, instance, number
from ..processes import Group
from ..sample.driver import progress_bar
from ..space import whole
from .average import Average
from .checkpoint import Checkpoints
from .data import Data, as_data
from .guard import Guard
from .journal import Journal, Listener
from .objective import Objective
from .session import Clip, Schedule, Session


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
    clip: Clip | None = None,
    out: Path | str | None = None,
    save_every: int = 1000,
    log_every: int = 100,
    keep: int = 2,
    guard: Guard | None = None,
    progress: bool | Callable[[int], None] | None = None,
    listener: Listener | None = None,
) -> Fitted:
    """Minimises the objective for `steps` mini-batches of `batch` examples, each epoch in a new random order.

    `schedule` maps a step to a factor of the learning rate (`gibbsite.learn.schedule`); `average` is a moving average of
    the weights; `clip` bounds the gradient's norm, or is a function that changes the gradients. With `out`, metrics.jsonl
    and checkpoint/ are written there, and a run that finds a checkpoint goes on from it: its weights then equal, bit for
    bit, those of a run that was never stopped. A checkpoint of another run is an error. `listener` is told every line of
    metrics too (`TensorBoard`). Ctrl-C finishes the step, saves and returns. A run that diverges raises `Diverged` with the
    weights of the last good checkpoint in place (see `Guard`).

    Under torchrun every process takes its share of each mini-batch, of which `batch` is the whole, and gradients are
    averaged; each has chains and draws of its own, and the first one writes and tells the metrics, means over all.

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
    instance(objective, Objective, "objective")
    _check_optimiser(optimiser, objective)
    steps, batch, seed = whole(steps, "steps"), whole(batch, "batch"), whole(seed, "seed", 0)
    save_every, log_every, keep = whole(save_every, "save_every"), whole(log_every, "log_every"), whole(keep, "keep")
    _check_options(schedule, average, guard, listener)
    if clip is not None and not callable(clip):
        clip = number(clip, "clip", above=0)
    folder = None if out is None else Path(out)
    first = Group.current().rank == 0
    journal = Journal(folder / "metrics.jsonl" if folder is not None and first else None, listener if first else None)
    session = Session(
        objective, as_data(data, objective.space), optimiser, batch, seed, schedule, average, clip, guard or Guard(), journal
    )
    checkpoints = None if folder is None else Checkpoints(folder / "checkpoint", keep=keep, group=session.group)
    with session.writing(checkpoints, steps), session.interrupt.heard():
        _learn(session, steps, save_every, log_every, progress if first else False)
        session.save(last=True)
    return Fitted(objective, average, journal.lines, session.step, session.step < steps)


def _learn(
    session: Session, steps: int, save_every: int, log_every: int, progress: bool | Callable[[int], None] | None
) -> None:
    with progress_bar(progress, steps, "learning") as tell:
        tell(session.step)
        while session.step < steps and not session.stopped:
            before = session.step
            session.advance()
            tell(session.step - before)  # less than 0 when a diverged run goes back
            if session.step <= before:
                continue
            if session.step % log_every == 0 or session.step == steps:
                session.log()
            if session.step % save_every == 0 and session.step < steps:
                session.save()


def _check_options(
    schedule: Schedule | None, average: Average | None, guard: Guard | None, listener: Listener | None
) -> None:
    if schedule is not None:
        function(schedule, "schedule", "gibbsite.learn.schedule.Warmup(1000)")
    if average is not None:
        instance(average, Average, "average")
    if guard is not None:
        instance(guard, Guard, "guard")
    if listener is not None:
        function(listener, "listener", "gibbsite.learn.TensorBoard(folder)")


def _check_optimiser(optimiser: torch.optim.Optimizer, objective: Objective) -> None:
    instance(optimiser, torch.optim.Optimizer, "optimiser", "; for example torch.optim.Adam(objective.parameters())")
    own = {id(parameter) for parameter in objective.parameters()}
    foreign = [tuple(p.shape) for group in optimiser.param_groups for p in group["params"] if id(p) not in own]
    if foreign:
        raise ValueError(
            f"optimiser: expected parameters of the objective, got one of shape {foreign[0]} that is not among them; "
            "make it of objective.parameters()"
        )
