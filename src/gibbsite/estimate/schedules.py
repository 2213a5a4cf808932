"""Where the temperatures of an annealed estimate lie: evenly, dense at both ends, or where a pilot run wants them."""

import math
from itertools import pairwise

import numpy as np

from .. import random
from ..algebra import Path
from ..check import number
from ..model import device_of
from ..random import Seed
from ..sample.anneal import by_beta, transition
from ..space import whole
from .walk import Kernels, increment, start_of


def linear(steps: int) -> tuple[float, ...]:
    """0, 1/steps, ..., 1.

    Example:
        >>> linear(4)
        (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    steps = whole(steps, "steps")
    return tuple(k / steps for k in range(steps + 1))


def sigmoid(steps: int, sharpness: float = 4.0) -> tuple[float, ...]:
    """beta_k = (s_k - s_0) / (s_steps - s_0), s_k = 1 / (1 + exp(-sharpness (2k/steps - 1))): dense at both ends.

    References: Grosse et al. (2015), Sandwiching the marginal likelihood using bidirectional Monte Carlo.

    Example:
        >>> [round(beta, 3) for beta in sigmoid(4)]
        [0.0, 0.105, 0.5, 0.895, 1.0]
    """
    steps, sharpness = whole(steps, "steps"), number(sharpness, "sharpness", above=0)
    s = [1 / (1 + math.exp(-sharpness * (2 * k / steps - 1))) for k in range(steps + 1)]
    return (0.0, *((value - s[0]) / (s[-1] - s[0]) for value in s[1:-1]), 1.0)


def adaptive(
    path: Path, kernel: Kernels, steps: int, *, pilot: int | None = None, chains: int = 100, seed: Seed
) -> tuple[float, ...]:
    """`steps` steps whose log weights have equal variance, as far as a pilot run along `pilot` even ones can tell.

    The variance of the weight of a short step is (d beta)^2 Var(dU/d beta), so betas lie at equal shares of the integral
    of sd(dU/d beta): the path's length in the Fisher metric. They are fixed before the estimate draws anything, so that
    the estimate stays unbiased; with a seed of its own it is independent of them.

    References: Gelman and Meng (1998), Simulating normalizing constants; Kiwaki (2015), Variational optimization of
    annealing schedules.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.6)
        >>> path = gb.Geometric(model.space.uniform(), model)
        >>> betas = gb.estimate.adaptive(path, gb.sample.BlockGibbs(), 20, seed=0)
        >>> len(betas), betas[0], betas[-1]
        (21, 0.0, 1.0)
    """
    grid = linear(whole(steps if pilot is None else pilot, "pilot"))
    base, make = start_of(path), by_beta(kernel)
    generator = random.generator(seed, device_of(path.at(1.0)))
    x, lengths = base.sample(whole(chains, "chains", 2), seed=generator), [0.0]
    for low, high in pairwise(grid):
        lengths.append(lengths[-1] + max(float(increment(path, low, high, x).std()), 1e-12))
        if high < 1:
            x = transition(make(high), path.at(high), x, generator)[0].x
    betas = np.interp(np.linspace(0, lengths[-1], whole(steps, "steps") + 1), lengths, grid)
    return (0.0, *betas[1:-1].tolist(), 1.0)
