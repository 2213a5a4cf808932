"""Bridge sampling: the ratio of two normalising constants from weights seen from both sides."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


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
    if len(terms) < 2:
        return math.inf
    return float(terms.var() / (len(terms) * terms.mean().square()))
