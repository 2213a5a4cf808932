"""Negatives by Markov chains: started at the data (CD), kept from update to update (PCD), or taken from a reservoir."""

from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from .. import random
from ..model import Distribution, Model
from ..random import Source
from ..sample.combine import Repeat
from ..sample.compiled import Compiled, compiled
from ..sample.kernel import Kernel, check_kernel
from ..space import whole
from .contrastive import Drawn, Negatives


def moved(kernel: Kernel, model: Model, x: Tensor, steps: int, source: Source) -> tuple[Tensor, Tensor]:
    """x after `steps` steps, by compiled loops where there are any, and the mean acceptance."""
    runner = compiled(Repeat(kernel, steps) if steps > 1 else kernel, model, x)
    with torch.no_grad():
        if isinstance(runner, Compiled):
            x, info = runner.moved(model, x, source)
        else:
            state, info = runner.step(model, runner.init(model, x), source)
            x = state.x
    return x, info.acceptance.mean()


@final
class Restart:
    """Puts a draw of `start` in the place of each chain with a probability."""

    def __init__(self, probability: float, start: Distribution | None):
        if not 0 <= probability <= 1:
            raise ValueError(f"restart: expected a probability, got {probability}")
        if probability and not isinstance(start, Distribution):
            raise TypeError(f"start: expected a gibbsite.Distribution to restart from, got {type(start).__name__}")
        self.probability, self.start = probability, start

    def __call__(self, x: Shaped[Tensor, "chains *event"], source: Source) -> Shaped[Tensor, "chains *event"]:
        if not self.probability or self.start is None:
            return x
        anew = random.uniform((len(x),), source).to(x.device) < self.probability
        fresh = self.start.sample(len(x), seed=source).to(x.device)
        return torch.where(anew.view(-1, *[1] * (x.ndim - 1)), fresh, x)


@final
class FromData(Negatives):
    """CD-k: chains start at the mini-batch and make k steps.

    References: Hinton (2002), Training products of experts by minimizing contrastive divergence.
    """

    def __init__(self, kernel: Kernel, steps: int = 1):
        super().__init__()
        self.kernel, self.steps = check_kernel(kernel), whole(steps, "steps")

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        x, acceptance = moved(self.kernel, model, data, self.steps, seed)
        return Drawn(x, acceptance=acceptance)


@final
class Persistent(Negatives):
    """Stochastic maximum likelihood (PCD): all chains go on from where the last update left them.

    Before each update a chain starts anew, at a draw of `start`, with probability `restart`.

    References: Younes (1989); Tieleman (2008); EBM-SLP, algorithms 5 and 6; Du and Mordatch (2019) for restarts.
    """

    x: Tensor

    def __init__(
        self,
        kernel: Kernel,
        x: Shaped[Tensor, "chains *event"],
        steps: int = 1,
        *,
        restart: float = 0.0,
        start: Distribution | None = None,
    ):
        super().__init__()
        self.kernel, self.steps, self.renew = check_kernel(kernel), whole(steps, "steps"), Restart(restart, start)
        self.register_buffer("x", started(x))

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        x, acceptance = moved(self.kernel, model, self.renew(self.x, seed), self.steps, seed)
        self.x.copy_(x)
        return Drawn(x, acceptance=acceptance)


@final
class Reservoir(Negatives):
    """A replay buffer of many states, of which the next `chains` make some steps at each update and go back.

    The slots take turns, so that every slot is used; more slots mean that each has seen more updates when its turn comes.

    References: Du and Mordatch (2019), Implicit generation and generalization in energy-based models.
    """

    x: Tensor
    turn: Tensor

    def __init__(
        self,
        kernel: Kernel,
        x: Shaped[Tensor, "slots *event"],
        chains: int,
        steps: int = 1,
        *,
        restart: float = 0.0,
        start: Distribution | None = None,
    ):
        super().__init__()
        self.kernel, self.steps, self.renew = check_kernel(kernel), whole(steps, "steps"), Restart(restart, start)
        self.chains = whole(chains, "chains")
        self.register_buffer("x", started(x))
        if self.chains > len(x):
            raise ValueError(f"chains: expected at most the {len(x)} slots of the reservoir, got {chains}")
        self.register_buffer("turn", torch.tensor(0, device=x.device))

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        slots = (self.turn + torch.arange(self.chains, device=self.x.device)) % len(self.x)
        x, acceptance = moved(self.kernel, model, self.renew(self.x[slots], seed), self.steps, seed)
        self.x[slots] = x.to(self.x.dtype)
        self.turn.add_(self.chains).remainder_(len(self.x))
        return Drawn(x, acceptance=acceptance)


def started(x: Tensor) -> Tensor:
    """A copy of the states that chains start at, if there are any."""
    if not isinstance(x, Tensor) or x.ndim < 1 or not len(x):
        came = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"x: expected states of 1 chain or more, as space.uniform().sample(100, seed=0) makes, got {came}")
    return x.detach().clone()
