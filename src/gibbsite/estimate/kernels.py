"""Which kernel moves the chains of an annealed estimate when nobody says, and HMC tuned all along a path."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import Tensor

from .. import random
from ..algebra import Path
from ..model import device_of
from ..models.classes import coloured_of
from ..random import Seed
from ..sample.gibbs import BlockGibbs
from ..sample.hmc import HMC
from ..sample.informed import Informed
from ..sample.kernel import MH, Kernel
from ..space import Discrete, Real
from .rbm_path import RBMPath
from .walk import Kernels, start_of

_ACCEPTANCE = 0.7  # aimed at by HMC; see Beskos et al. (2013): anything from 0.6 to 0.9 is good
_GAIN = 0.3  # how far log eps moves for an acceptance that is off by 1
_LEAPS = 5


class Pair(NamedTuple):
    """A kernel for the way to the model and the one that undoes its order on the way back."""

    forward: Kernels
    backward: Kernels


class Tuned(NamedTuple):
    """The kernel at each beta, and where the pilot's chains stand at its end."""

    kernel: Callable[[float], HMC]
    x: Tensor


def default_kernels(path: Path, *, seed: Seed) -> Pair:
    """Block Gibbs where every model of the path knows its blocks, else Gibbs-With-Gradients; tuned HMC on real states."""
    middle = path.at(0.5)
    if isinstance(path, RBMPath):
        return Pair(BlockGibbs(), BlockGibbs())
    if (pairwise := coloured_of(middle)) is not None:
        return Pair(BlockGibbs(), BlockGibbs([members.tolist() for members in pairwise.classes[::-1]]))
    if isinstance(middle.space, Discrete):
        return Pair(MH(Informed()), MH(Informed()))
    if isinstance(middle.space, Real):
        tuned = tuned_hmc(path, steps=200, chains=32, seed=seed).kernel
        return Pair(tuned, tuned)
    raise TypeError(f"kernel: none is known for {middle.space}; pass one as kernel=, such as gb.sample.MH(proposal)")


def tuned_hmc(path: Path, *, steps: int, chains: int, seed: Seed) -> Tuned:
    """HMC whose step size is a function of beta, found by a pilot run along the path and fixed from then on.

    log eps moves with the acceptance seen (Robbins and Monro, 1951) while the pilot's chains climb; its mass is the inverse
    of the variance of the path's start. In between the pilot's betas log eps is interpolated.
    """
    source = random.generator(seed, device_of(path.at(1.0)))
    x = start_of(path).sample(chains, seed=source)
    mass = 1 / x.double().var(0).clamp(min=1e-12).to(x.dtype)
    grid = [0.0] * 50 + np.linspace(0, 1, steps).tolist() + [1.0] * 50
    log_step, seen = math.log(0.3), []
    for beta in grid:
        model, kernel = path.at(beta), HMC(math.exp(log_step), _LEAPS, mass)
        state, info = kernel.step(model, kernel.init(model, x), source)
        x = state.x
        log_step += _GAIN * (float(info.acceptance.nan_to_num(0.0).mean()) - _ACCEPTANCE)
        seen.append(log_step)
    betas, logs = grid[49:-49], [*seen[49:-50], float(np.mean(seen[-25:]))]

    def kernel_at(beta: float) -> HMC:
        return HMC(math.exp(float(np.interp(beta, betas, logs))), _LEAPS, mass)

    return Tuned(kernel_at, x)


def kernel_for(kernel: Kernels, beta: float) -> Kernel:
    """The kernel at one beta."""
    return kernel if isinstance(kernel, Kernel) else kernel(beta)
