"""Annealing: chains carried along a path of models, one kernel step (or several) at each beta."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from .. import random
from ..algebra import Path
from ..check import instance, number
from ..model import Model
from ..random import Seed, Source
from .compiled import compiled
from .kernel import Cost, Kernel, Proposal, check_chains, check_kernel, started


def anneal(
    path: Path, kernel: Kernel | Callable[[float], Kernel], betas: Sequence[float], x: Tensor, *, seed: Seed
) -> Iterator[tuple[float, Any]]:
    """After each beta's step: that beta and the chains' state. `kernel` may be a function of beta, to adapt along the way.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=1.0)
        >>> path = gb.Geometric(model.space.uniform(), model)
        >>> x = path.start.sample(16, seed=0)
        >>> for beta, state in gb.sample.anneal(path, gb.sample.GibbsSweep(), [0.0, 0.5, 1.0], x, seed=1):
        ...     pass
        >>> bool(state.u.mean() > 20)
        True
    """
    instance(path, Path, "path", hint="; such as gb.Geometric(start, end)")
    make = by_beta(kernel)
    ladder = [number(beta, f"betas[{place}]") for place, beta in enumerate(betas)]
    if not ladder:
        raise ValueError("betas: expected at least one, got none")
    x = check_chains(path.at(ladder[0]), x)
    return _steps(path, make, ladder, x, random.generator(seed, x.device))


def by_beta(kernel: Kernel | Callable[[float], Kernel]) -> Callable[[float], Kernel]:
    """`kernel` as a function of beta, whether it is one already or serves every beta; both are checked."""
    if isinstance(kernel, Kernel | Proposal | type) or not callable(kernel):
        always = check_kernel(kernel)
        return lambda beta: always
    return lambda beta: check_kernel(kernel(beta), "kernel(beta)")


def transition(kernel: Kernel, model: Model, x: Tensor, generator: Source) -> tuple[Any, Cost]:
    """The chains' state after one step on a model that they have not been on before, and what it cost."""
    runner = compiled(kernel, model, x)
    state, first = started(runner, model, x)
    state, info = runner.step(model, state, generator)
    return state, first.plus(info.cost)


def _steps(
    path: Path, make: Callable[[float], Kernel], betas: list[float], x: Tensor, generator: Source
) -> Iterator[tuple[float, Any]]:
    for beta in betas:
        state, _ = transition(make(beta), path.at(beta), x, generator)
        x = state.x
        yield beta, state
