"""Long runs of a model from several starts, to begin reverse annealing with, and whether they forgot their starts."""

from typing import NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from .. import random
from ..model import Model
from ..processes import Group
from ..random import Source
from ..sample.driver import Progress
from ..sample.kernel import Cost, Kernel
from ..sample.trace import trace
from .agreement import group_p_value
from .walk import together

_LOOKS = 100  # times at which the chains are looked at in the second half of the run
_DIRECTIONS = 8  # random directions along which states are compared
_ALARM = 1e-3  # probability with which chains that have forgotten their start are accused


class Settled(NamedTuple):
    """Where the chains stand, what was said against them, and what each took."""

    x: Shaped[Tensor, "chains *event"]
    why: str
    cost: Cost


def settle(
    kernel: Kernel, model: Model, starts: dict[str, Tensor], *, steps: int, seed: Source, progress: Progress = None
) -> Settled:
    """Runs chains from every start for `steps` steps, and compares their groups over the second half.

    Compared are each chain's means of U, of its distance from the median, and of the state along random directions, by a
    permutation test with a false-alarm probability of 0.001.
    """
    x = torch.cat(list(starts.values()))
    share = Group.current(x.device)
    sizes = torch.tensor([len(part) for part in starts.values()])
    start_of = torch.repeat_interleave(torch.arange(len(sizes)), sizes).to(x.device)
    flat = model.space.embed(x[:1]).flatten(1)
    directions = random.normal((flat.shape[1], _DIRECTIONS), seed, flat.dtype).to(x.device) / flat.shape[1] ** 0.5
    warmup, own = steps // 2, share.source(seed)
    with share.agreed():
        run = trace(
            kernel,
            model,
            share.part(x, "chains"),
            statistic=lambda x: model.space.embed(x, flat.dtype).flatten(1) @ directions,
            steps=max(1, steps - warmup),
            warmup=warmup,
            thin=max(1, (steps - warmup) // _LOOKS),
            seed=own,
            progress=progress,
        )
    if run.interrupted:
        raise KeyboardInterrupt
    u, means = share.gather(run.u.double().T).T, share.gather(run.values.double().mean(0))
    start_of = share.gather(share.part(start_of, "chains"))
    spread = (u - u.median()).abs().mean(0)
    means = torch.cat((u.mean(0)[:, None], spread[:, None], means), 1)
    p = group_p_value(means, start_of, seed=seed) if len(starts) > 1 else 1.0
    why = "" if p >= _ALARM else _accuse(starts, u, start_of, steps, p)
    burnt = Cost().plus(run.cost, (warmup + run.steps) / max(1, run.steps))  # warm-up took as much a step
    return Settled(share.gather(run.state.x), why, together(share, burnt))


def _accuse(starts: dict[str, Tensor], u: Tensor, group: Tensor, steps: int, p: float) -> str:
    means = ", ".join(f"{float(u[:, group == place].mean()):.2f} from {name}" for place, name in enumerate(starts))
    return (
        f"the chains have not forgotten where they started after {steps} steps: mean U is {means} (groups differ, "
        f"p = {p:.1g}); take more steps, a kernel that mixes, or pass exact draws as x="
    )
