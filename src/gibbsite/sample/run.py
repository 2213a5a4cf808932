"""`gibbsite.run`: a kernel run on many chains, with every kept state stored."""

from collections.abc import Callable

import torch
from jaxtyping import Shaped
from torch import Tensor

from ..diagnose.convergence import rhat
from ..random import Seed
from ..space import Space
from .chain import Chain, Statistic
from .driver import Driver, Progress, trimmed
from .kernel import Kernel, State
from .tempering import Replicas

_MONITORED = 32  # sites whose R-hat is watched when no statistic is given


def run(
    kernel: Kernel,
    model: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "chains *event"] | State | Replicas,
    *,
    steps: int,
    warmup: int = 0,
    thin: int = 1,
    seed: Seed,
    space: Space | None = None,
    until_rhat: float | None = None,
    monitor: Statistic | None = None,
    progress: Progress = None,
) -> Chain:
    """Runs every chain for `warmup` steps that are thrown away, then `steps` steps of which every `thin`-th state is kept.

    x is where the chains start, or the `state` of an earlier result: with the same kernel and model the run then goes on as
    if it had never stopped, with what the kernel remembers. `steps` is rounded down to a multiple of `thin`. In compiled
    loops another `thin`, or a run in two parts with one generator, is another stream of draws from the same law.

    `until_rhat` (1.01, say) stops as soon as the largest R-hat of U and of `monitor(x)` (of the first sites, if none is
    given) is below it; `steps` is then the most. Ctrl-C returns what was drawn so far, with `interrupted` set. A progress
    bar is shown in a terminal unless `progress` says otherwise (or is a function to be told the steps made). Loops that
    are compiled for this kernel, model and device are used where there are any; they draw from the same law.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> start = model.space.uniform().sample(4, seed=0)
        >>> chain = gb.run(gb.sample.GibbsSweep(), model, start, steps=100, warmup=20, thin=2, seed=1)
        >>> chain.samples.shape, chain.interrupted
        (torch.Size([50, 4, 16]), False)
    """
    driver = Driver(kernel, model, x, steps=steps, warmup=warmup, thin=thin, seed=seed, space=space)
    start, u0, draws = driver.state.x, driver.state.u, driver.draws
    samples, potentials = start.new_empty(draws, *start.shape), u0.new_empty(draws, *u0.shape)
    check = max(50, draws // 50)

    def keep(first: int, states: Tensor, u: Tensor) -> bool:
        done = first + len(states)
        samples[first:done], potentials[first:done] = states, u
        if until_rhat is None or done // check == first // check:
            return True
        return _largest_rhat(samples[:done], potentials[:done], monitor) >= until_rhat

    done = driver.collect(keep, progress)
    return Chain(trimmed(samples, done), trimmed(potentials, done), *driver.ends())


def _largest_rhat(samples: Tensor, u: Tensor, monitor: Statistic | None) -> float:
    """Of the columns that move at all: one that is a single constant over all chains, a clamped site say, is left out."""
    watched = samples.reshape(*u.shape, -1)[..., :_MONITORED] if monitor is None else monitor(samples)
    values = torch.cat((u[..., None].double(), watched.reshape(*u.shape, -1).double()), -1)
    moving = values[..., (values != values[0, 0]).any(0).any(0)]
    return float(rhat(moving).nan_to_num(nan=torch.inf).max()) if moving.shape[-1] else float("inf")
