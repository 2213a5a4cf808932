"""Running a kernel while keeping one statistic of every state instead of the states themselves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Shaped
from torch import Tensor

from ..random import Seed
from ..space import Space
from .chain import Statistic
from .driver import Driver, Progress, measured, trimmed
from .kernel import Cost, Kernel, State
from .tempering import Replicas


@dataclass(frozen=True)
class Trace:
    """`values` (draws, chains, ...) of the statistic and `u` (draws, chains), and what it took; see `Chain`."""

    values: Shaped[Tensor, "draws chains *dims"] = field(repr=False)
    u: Float[Tensor, "draws chains"] = field(repr=False)
    acceptance: Float[Tensor, " chains"] = field(repr=False)
    cost: Cost
    steps: int
    seconds: float
    state: Any = field(repr=False)
    interrupted: bool = False


def trace(
    kernel: Kernel,
    model: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "chains *event"] | State | Replicas,
    *,
    statistic: Statistic,
    steps: int,
    warmup: int = 0,
    thin: int = 1,
    seed: Seed,
    space: Space | None = None,
    progress: Progress = None,
) -> Trace:
    """As `run`, but keeps `statistic(x)` (chains, ...) of every `thin`-th state, so that memory does not grow with x.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> x = model.space.uniform().sample(8, seed=0)
        >>> count = lambda x: x.sum(-1)
        >>> gb.sample.trace(gb.sample.Gibbs(), model, x, statistic=count, steps=50, thin=5, seed=1).values.shape
        torch.Size([10, 8])
    """
    driver = Driver(kernel, model, x, steps=steps, warmup=warmup, thin=thin, seed=seed, space=space)
    first, u, draws = measured(statistic, driver.state.x), driver.state.u, steps // thin
    values, potentials = first.new_empty(draws, *first.shape), u.new_empty(draws, *u.shape)

    def keep(start: int, states: Tensor, u: Tensor) -> bool:
        potentials[start : start + len(u)] = u
        for draw, x in enumerate(states, start):
            values[draw] = measured(statistic, x)
        return True

    done = driver.collect(keep, progress)
    return Trace(trimmed(values, done), trimmed(potentials, done), *driver.ends())
