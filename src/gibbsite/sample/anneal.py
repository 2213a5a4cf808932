"""Annealing: chains carried along a path of models, one kernel step (or several) at each beta."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from .. import random
from ..algebra import Path
from ..random import Seed
from .kernel import Kernel


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
    if not isinstance(path, Path):
        raise TypeError(f"path: expected a gibbsite.Path such as gb.Geometric(start, end), got {type(path).__name__}")
    generator = random.generator(seed, x.device)
    for beta in betas:
        model = path.at(float(beta))
        chosen = kernel if isinstance(kernel, Kernel) else kernel(float(beta))
        state, _ = chosen.step(model, chosen.init(model, x), generator)
        x = state.x
        yield float(beta), state
