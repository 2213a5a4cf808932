"""Ising models to be found again from their samples: lattices, random graphs, good samples, and the least error."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from .. import exact
from ..models import Ising
from ..random import Source, categorical
from ..sample import GibbsSweep, SwendsenWang, Tempering, trace, tuned_ladder
from ..sample.kernel import Kernel
from .recipe import finished

ENUMERABLE = 16  # sites up to which data are drawn, and the likelihood is maximised, by enumeration
_STEPS = 100  # of the chain behind a sample


class Problem(NamedTuple):
    """A model to be found again: a lattice of this side and theta, or (theta None) a random graph of `size` sites."""

    size: int
    theta: float | None

    @property
    def label(self) -> str:
        """What it is, in words."""
        return f"random graph, {self.size}" if self.theta is None else f"{self.size} x {self.size}, theta {self.theta:g}"

    @property
    def sites(self) -> int:
        """How many spins."""
        return self.size if self.theta is None else self.size**2

    def truth(self, seed: int) -> Ising:
        """The model; the paper's J is half of its couplings, because x'Jx counts each edge twice."""
        if self.theta is None:
            return Ising.erdos_renyi(self.size, degree=4, scale=1.0, seed=seed)
        return Ising.from_theta(self.size, theta=self.theta)


class Samples(NamedTuple):
    """Samples of a model, how they were drawn, and how many standard errors the mean of U still moved in the last half."""

    x: Shaped[Tensor, "examples sites"]
    how: str
    drift: float


def draw(truth: Ising, examples: int, source: Source) -> Samples:
    """Independent samples: by enumeration, or the last states of one chain each, of clusters or of parallel tempering."""
    if len(truth.field) <= ENUMERABLE:
        chosen = categorical(exact.probabilities(truth).log().expand(examples, -1), source)
        return Samples(exact.states(truth.space)[chosen], "enumeration", 0.0)
    kernel, how = _kernel(truth, source)
    x = truth.space.uniform().sample(examples, seed=source)
    chains = finished(trace(kernel, truth, x, statistic=lambda x: x[:, :1], steps=_STEPS, seed=source, progress=False))
    moved = (chains.u[-1] - chains.u[_STEPS // 2]).double()
    return Samples(chains.state.x, how, (moved.mean() / moved.std() * math.sqrt(examples)).item())


def _kernel(truth: Ising, source: Source) -> tuple[Kernel, str]:
    weights, base = truth.pairs.edge_weights(), truth.space.uniform()
    if not weights.numel() or weights.min() >= 0:
        return SwendsenWang(), f"Swendsen-Wang, {_STEPS} steps"
    start = Tempering(GibbsSweep(), base)
    kernel, _ = tuned_ladder(start, truth, base.sample(100, seed=source), rounds=4, steps=40, seed=source)
    return kernel, f"parallel tempering, {_STEPS} sweeps at {len(kernel.betas)} temperatures"


def least_log_rmse(truth: Ising, examples: int) -> float:
    """ln RMSE that maximum likelihood has in the limit of many samples: its variances are diag(I^-1) / examples.

    I is the covariance of the products s_i s_j of all pairs, by enumeration; the errors are those of half the couplings.

    References: Cramer (1946); Rao (1945).
    """
    s = 2 * exact.states(truth.space).double() - 1
    i, j = torch.triu_indices(s.shape[1], s.shape[1], 1)
    p, products = exact.probabilities(truth), s[:, i] * s[:, j]
    centred = products - p @ products
    information = (p[:, None] * centred).T @ centred
    return torch.linalg.inv(information).diagonal().div(4 * examples).mean().sqrt().log().item()
