"""Sequential Monte Carlo along a path: particles weighed, resampled and moved, at temperatures given or found on the way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from .. import random
from ..algebra import Path
from ..check import number
from ..model import Distribution, device_of, evaluate
from ..processes import Group
from ..random import Seed, Source
from ..sample.anneal import by_beta, transition
from ..sample.driver import Progress, progress_bar
from ..sample.kernel import Cost, check_chains
from ..space import whole
from .estimate import FEW, MARGIN, Estimate, few
from .walk import Kernels, increment, ladder, start_of, together
from .weights import ess, systematic

_FEW_TO_FOLLOW = 50.0  # the least ESS of lineages where temperatures are chosen by the particles that they weigh
_STALL = 1e-9  # the least step in beta


@final
@dataclass(frozen=True)
class Particles:
    """The estimate of log Z, the particles with their log weights (sum of weights 1) at beta = 1, and the betas used."""

    log_z: Estimate
    x: Tensor
    log_w: Tensor
    betas: tuple[float, ...]


def smc(
    path: Path,
    kernel: Kernels,
    betas: Sequence[float] | None = None,
    *,
    particles: int = 1000,
    share: float = 0.5,
    seed: Seed,
    progress: Progress = None,
) -> Particles:
    """log Z by particles that are weighed from beta to beta, resampled where their ESS falls below half, then moved.

    With `betas` the mean of Z's estimate is Z. With None each next beta is where the ESS of the weights is `share` of what
    it was: those betas depend on the particles, which costs a bias of Z of order 1/particles; run again with the
    `betas` returned and another seed to be rid of it. The error is from the lineages: particles that descend from one first
    draw count as one, and the ESS is of lineages. Betas that follow few lineages make that error too small as well: not
    trusted below an ESS of 50 then, of 5 where `betas` are given.

    References: Del Moral et al. (2006), Sequential Monte Carlo samplers; Chan and Lai (2013), A general theory of particle
    filters (the error); Beskos et al. (2016), On the convergence of adaptive sequential Monte Carlo.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.3)
        >>> path = gb.Geometric(model.space.uniform(), model)
        >>> found = gb.estimate.smc(path, gb.sample.GibbsSweep(), particles=500, seed=0)
        >>> found.log_z.lower < gb.exact.log_z(model).item()
        True
    """
    base, given = start_of(path), None if betas is None else ladder(betas)
    n, share = whole(particles, "particles", 2), number(share, "share", above=0, below=1)
    cloud = _Cloud(path, kernel, base, n, random.generator(seed, device_of(path.at(1.0))))
    used = [0.0]
    with torch.no_grad(), progress_bar(progress, len(given) - 1 if given else 1, "particles") as tell:
        while used[-1] < 1:
            high = given[len(used)] if given else cloud.next_beta(used[-1], share)
            cloud.advance(used[-1], high)
            used.append(high)
            tell(1 if given else int(high == 1))
    found = cloud.estimate(FEW if given else _FEW_TO_FOLLOW)
    return Particles(found, cloud.group.gather(cloud.x), cloud.log_w.log_softmax(0), tuple(used))


class _Cloud:
    """Particles with their log weights, whose mean times exp(log_z) estimates Z, and the first draw each descends from.

    Of `x` each process has its share; weights and ancestors are those of all particles, one process after the other.
    """

    def __init__(self, path: Path, kernel: Kernels, base: Distribution, n: int, source: Source):
        self.group = Group.current(device_of(path.at(1.0)))
        self.path, self.make, self.common, self.own = path, by_beta(kernel), source, self.group.source(source)
        self.first = torch.arange(n, device=self.group.device)
        with self.group.agreed():
            self.x = check_chains(base, base.sample(self.group.share(n, "particles"), seed=self.own))
            gauge = evaluate(path.at(0.0), self.x).double() - evaluate(base, self.x).double()
        self.log_w = self.group.gather(gauge)
        self.log_z, self.cost = 0.0, Cost(2, 0)  # of the gauge

    def next_beta(self, low: float, share: float) -> float:
        """The beta at which the ESS is `share` of what it is now, by bisection; 1 if it stays above."""
        aim, ends = share * ess(self.log_w), (low, 1.0)
        if ess(self._weighed(low, 1.0)) >= aim:
            return 1.0
        while ends[1] - ends[0] > max(_STALL, 1e-4 * (ends[1] - low)):
            middle = 0.5 * (ends[0] + ends[1])
            ends = (middle, ends[1]) if ess(self._weighed(low, middle)) >= aim else (ends[0], middle)
        return ends[1]

    def _weighed(self, low: float, high: float) -> Tensor:
        """All log weights, were the particles now weighed for `high`."""
        self.cost = self.cost.plus(Cost(2, 0))
        with self.group.agreed():
            more = increment(self.path, low, high, self.x)
        return self.log_w + self.group.gather(more)

    def advance(self, low: float, high: float) -> None:
        """Weighs, resamples where it is due, moves."""
        self.log_w = self._weighed(low, high)
        if not (self.log_w > -math.inf).any():
            raise ValueError(f"smc: every particle has weight 0 at beta={high:g}; take more particles, or a closer base")
        if high == 1:
            return
        if ess(self.log_w) < 0.5 * len(self.log_w) or (self.log_w == -math.inf).any():
            self._resample()
        with self.group.agreed():
            state, spent = transition(self.make(high), self.path.at(high), self.x, self.own)
        self.x, self.cost = state.x, self.cost.plus(together(self.group, spent))

    def _resample(self) -> None:
        n = len(self.log_w)
        self.log_z += float(self.log_w.logsumexp(0)) - math.log(n)
        kept = systematic(self.log_w, n, self.common)
        self.x = self.group.part(self.group.gather(self.x)[kept], "particles")
        self.first = self.group.gather(self.group.part(self.first[kept], "particles"))
        self.log_w = torch.zeros_like(self.log_w)

    def estimate(self, least: float) -> Estimate:
        """log Z, with the variance between lineages; not trusted if they are fewer than `least`."""
        n = len(self.log_w)
        lineage = torch.zeros_like(self.log_w).scatter_add(0, self.first, self.log_w.softmax(0))
        value = self.log_z + float(self.log_w.logsumexp(0)) - math.log(n)
        error, size = float((n * lineage).std()) / math.sqrt(n), float(1 / lineage.square().sum())
        why = few(size, n, "lineages", least)
        return Estimate(value, error, value - MARGIN * error, math.inf, size, n, self.cost, not why, why)
