"""Bridge sampling: the ratio of two normalising constants from draws of both models."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..algebra import Geometric
from ..model import evaluate
from ..processes import Group
from ..sample.kernel import Cost, check_chains
from .estimate import MARGIN, Estimate, few
from .weights import ess


def bridge(start: Callable[[Tensor], Tensor], end: Callable[[Tensor], Tensor], x_start: Tensor, x_end: Tensor) -> Estimate:
    """log Z_end - log Z_start from independent draws of each: log Z_end itself where `start` is a Distribution.

    The optimal bridge's fixed point, Z_1/Z_0 = E_0[p_1 a] / E_1[p_0 a], a = 1 / (n_1 p_1 / Z_1 + n_0 p_0 / Z_0), the
    root of Bennett's equation. It is as good as the two models overlap: the ESS is of the smaller of the two sums. States
    of a chain should be thinned until they are nearly independent, or the error is too small.

    References: Bennett (1976); Meng and Wong (1996), Simulating ratios of normalizing constants via a simple identity.

    Example:
        >>> import torch, gibbsite as gb
        >>> wide, model = gb.distributions.Normal.standard(2), gb.Potential(lambda x: -2 * x.square().sum(-1), gb.Real(2))
        >>> draws = 0.5 * torch.randn(500, 2, generator=torch.Generator().manual_seed(1))
        >>> z = gb.estimate.bridge(wide, model, wide.sample(500, seed=0), draws)
        >>> z.lower < torch.log(torch.tensor(torch.pi / 2)).item() < z.upper
        True
    """
    path = Geometric(start, end)
    seen = [_difference(path, check_chains(path.start, x)) for x in (x_start, x_end)]
    value, error = accept_ratio(*seen)
    shift = math.log(len(seen[0]) / len(seen[1]))
    sizes = [ess(torch.nn.functional.logsigmoid(t)) for t in (seen[0] - value - shift, value + shift - seen[1])]
    size, n = min(zip(sizes, map(len, seen), strict=True))
    why = few(size, n, "draws in the overlap of the two models")
    lower, upper = value - MARGIN * error, value + MARGIN * error
    return Estimate(value, error, lower, upper, size, n, Cost(2, 0), not why, why)


def _difference(path: Geometric, x: Tensor) -> Tensor:
    group = Group.current(x.device)
    with group.agreed():
        own = group.part(x, "x")
        seen = evaluate(path.end, own).double() - evaluate(path.start, own).double()
    return group.gather(seen)


class Ratio(NamedTuple):
    """log Z_1 / Z_0, and its standard error where all draws are independent."""

    value: float
    stderr: float


def accept_ratio(forward: Float[Tensor, " n"], reverse: Float[Tensor, " m"]) -> Ratio:
    """c = log Z_1/Z_0 at which sum_i s(f_i - c - log(n/m)) = sum_j s(c + log(n/m) - r_j), s the logistic function.

    f and r are log weights p_1/p_0, f seen by draws of p_0 and r by draws of p_1 (works of whole annealing runs in the two
    directions too, where each kernel is reversible or runs in opposite orders). The root is the fixed point of Meng and
    Wong's optimal bridge, of least asymptotic variance. It is unique, for one side falls in c and the other rises.

    References: Bennett (1976), Efficient estimation of free energy differences; Meng and Wong (1996); Shirts et al. (2003).
    """
    f, r = forward.double(), reverse.double()
    if not (len(f) and len(r)) or f.isnan().any() or r.isnan().any():
        raise ValueError(f"forward, reverse: expected at least one weight each, no NaN, got {len(f)} and {len(r)}")
    if (f == math.inf).any() or (r == -math.inf).any():
        raise ValueError("forward, reverse: a draw of one model has probability 0 there (+inf forward, -inf in reverse)")
    shift = math.log(len(f) / len(r))
    finite = torch.cat((f, r))[torch.cat((f, r)).isfinite()]
    if not len(finite):
        return Ratio(math.nan, math.inf)
    reach = abs(shift) + 50.0
    low, high = float(finite.min()) - reach, float(finite.max()) + reach
    while high - low > 1e-12 * max(1.0, abs(low)):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        excess = (f - middle - shift).sigmoid().sum() - (middle + shift - r).sigmoid().sum()
        low, high = (middle, high) if excess > 0 else (low, middle)
    c = 0.5 * (low + high)
    spread = _relative_variance((f - c - shift).sigmoid()) + _relative_variance((c + shift - r).sigmoid())
    return Ratio(c, math.sqrt(spread))


def _relative_variance(terms: Tensor) -> float:
    """The squared relative standard error of a mean."""
    if len(terms) < 2 or not terms.mean() > 0:
        return math.inf
    return float(terms.var() / (len(terms) * terms.mean().square()))
