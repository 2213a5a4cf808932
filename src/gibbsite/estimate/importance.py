"""Importance sampling: log Z of a tilted distribution, and expectations under it, from draws of its base."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..algebra import Tilt
from ..check import function, instance
from ..model import device_of, evaluate
from ..processes import Group
from ..random import Seed
from ..sample.kernel import Cost
from ..space import whole
from .bounds import residual_bounds
from .estimate import MARGIN, Estimate, few, skewed
from .weights import ess, log_mean, log_mean_error, skew_margin, weighted_mean

_MEMORY = 1 << 22  # numbers of states held at once


@final
@dataclass(frozen=True)
class Expectation:
    """`mean` of a statistic and its standard error, both of its shape; as far as the ESS lets one trust them."""

    mean: Float[Tensor, "*dims"]
    stderr: Float[Tensor, "*dims"]
    ess: float
    n: int
    cost: Cost
    trusted: bool
    why: str


def importance(tilt: Tilt, n: int, *, seed: Seed) -> Estimate:
    """log Z of q(x) exp V(x), from n draws of q: Z = E_q[exp V].

    The value T_n = log mean exp V is a lower bound in the mean; the lower end lies 3 standard errors below it, the upper
    end 3 above the jackknife's upper bound, and further out the more skewed the weights are (`skew_margin`). The error is
    the delta method's. Not trusted where the ESS is below 5, or that skewness moves the upper end by more than a standard
    error. No test sees draws that V would favour most and that are not among the n: `gb.bracket` looks from both sides.

    References: Kahn and Marshall (1953); Kong (1992); Deng et al. (2020), Residual energy-based models for text generation;
    Johnson (1978); Hall (1992), On the removal of skewness by transformation.

    Example:
        >>> import torch, gibbsite as gb
        >>> tilt = gb.Tilt(gb.Binary(6).uniform(), lambda x: 0.5 * x.sum(-1))
        >>> z = gb.importance(tilt, 2000, seed=0)
        >>> z.lower < gb.exact.log_z(tilt).item() < z.upper
        True
    """
    _, log_w = _weighed(tilt, n, lambda x: x.new_zeros(len(x), 0), seed)
    bounds, error = residual_bounds(log_w), log_mean_error(log_w)
    skew, value = skew_margin(log_w, MARGIN), log_mean(log_w)
    why = few(bounds.ess, n, "draws") or skewed(skew, n)
    lower, upper = value - MARGIN * error, bounds.upper + (MARGIN + skew) * error
    return Estimate(value, error, lower, upper, bounds.ess, n, Cost(1, 0), not why, why)


def snis(tilt: Tilt, statistic: Callable[[Tensor], Tensor], n: int, *, seed: Seed) -> Expectation:
    """E_p[f(x)] under p = q exp V / Z, from n draws of q: sum w f / sum w, w = exp V; its error by the delta method.

    It is biased by a term of order 1/n, far below the error where the ESS is healthy.

    References: Owen (2013), Monte Carlo theory, methods and examples, chapter 9.

    Example:
        >>> import torch, gibbsite as gb
        >>> tilt = gb.Tilt(gb.distributions.Normal.standard(2), lambda x: x.sum(-1))  # N(1, I)
        >>> found = gb.estimate.snis(tilt, lambda x: x, 5000, seed=0)
        >>> bool(((found.mean - 1).abs() < 5 * found.stderr).all())
        True
    """
    function(statistic, "statistic", "lambda x: x.sum(-1)")
    values, log_w = _weighed(tilt, n, lambda x: _statistic(statistic, x), seed)
    mean, error = weighted_mean(values, log_w)
    why = few(ess(log_w), n, "draws") or skewed(skew_margin(log_w, MARGIN), n)
    return Expectation(mean, error, ess(log_w), n, Cost(1, 0), not why, why)


def _weighed(tilt: Tilt, n: int, statistic: Callable[[Tensor], Tensor], seed: Seed) -> tuple[Tensor, Tensor]:
    """A statistic of each draw and V there, in double precision; each process has its share, in parts that fit in memory."""
    base, space = instance(tilt, Tilt, "tilt", "; such as gb.Tilt(q, lambda x: ...)").base, tilt.space
    group = Group.current(device_of(base))
    source = group.source(random.generator(seed, group.device))
    left, part = group.share(whole(n, "n", 2), "n"), max(1, _MEMORY // max(1, int(torch.Size(space.shape).numel())))
    weights, values = [], []
    with group.agreed():
        while left > 0:
            x = base.sample(min(left, part), seed=source)
            values.append(statistic(x))
            weights.append(evaluate(tilt.potential, x).double())
            left -= len(x)
    return group.gather(torch.cat(values)), group.gather(torch.cat(weights))


def _statistic(statistic: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """statistic(x), one value a state."""
    with torch.no_grad():
        f = statistic(x)
    if not isinstance(f, Tensor) or f.shape[:1] != x.shape[:1]:
        came = tuple(f.shape) if isinstance(f, Tensor) else type(f).__name__
        raise ValueError(f"statistic: expected one value a state, shape ({len(x)}, ...), got {came}")
    if not f.isfinite().all():
        place = (~f.isfinite()).nonzero()[0].tolist()
        raise ValueError(f"statistic: expected finite values, got {f[tuple(place)].item()} at {place} of {tuple(f.shape)}")
    return f.double()
