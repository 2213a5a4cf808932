"""Importance weights in log space: their mean, its error by the delta method, and the effective sample size."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..random import Source


def log_mean(log_w: Float[Tensor, " n"]) -> float:
    """log of the mean of exp(log_w), without overflow."""
    return float(log_w.double().logsumexp(0)) - math.log(len(log_w))


def ess(log_w: Float[Tensor, " n"]) -> float:
    """(sum w)^2 / sum w^2: n for equal weights, 1 where one weight is all there is, 0 where none is positive.

    References: Kong (1992), A note on importance sampling using standardized weights.
    """
    total = log_w.double().logsumexp(0)
    return 0.0 if total == -math.inf else float((2 * total - (2 * log_w.double()).logsumexp(0)).exp())


def log_mean_error(log_w: Float[Tensor, " n"]) -> float:
    """The standard error of `log_mean` by the delta method: sd(w) / (sqrt(n) mean(w)); infinite where it cannot be known."""
    share = log_w.double().softmax(0)
    return math.inf if len(log_w) < 2 or share.isnan().any() else float(share.std()) * math.sqrt(len(log_w))


def skew_margin(log_w: Float[Tensor, " n"], z: float) -> float:
    """Standard errors by which a mean of skewed weights may exceed value + z of them: (2 z^2 + 1) g / (6 sqrt n).

    g is the weights' skewness: where large weights are rare, means are usually too small, and their errors with them.

    References: Johnson (1978), Modified t tests and confidence intervals for asymmetrical populations; Hall (1992).
    """
    share = log_w.double().softmax(0)
    centred = share - share.mean()
    spread = centred.square().mean().sqrt()
    if not spread > 1e-12 / len(log_w):
        return 0.0
    skewness = float((centred / spread).pow(3).mean())
    return max(0.0, (2 * z**2 + 1) * skewness / (6 * math.sqrt(len(log_w))))


def weighted_mean(values: Float[Tensor, "n *dims"], log_w: Float[Tensor, " n"]) -> tuple[Tensor, Tensor]:
    """sum w f / sum w and its standard error, sqrt(sum w^2 (f - mean)^2) / sum w (the delta method for a ratio)."""
    share = log_w.double().softmax(0).view(-1, *[1] * (values.ndim - 1))
    mean = (share * values.double()).sum(0)
    return mean, (share * (values.double() - mean)).square().sum(0).sqrt()


def systematic(log_w: Float[Tensor, " n"], count: int, source: Source) -> Int[Tensor, " count"]:
    """`count` indices, each i as often as count w_i / sum w rounded up or down, and that often in the mean.

    References: Kitagawa (1996); Douc and Cappe (2005), Comparison of resampling schemes for particle filtering.
    """
    cdf = log_w.double().softmax(0).cumsum(0)
    points = (torch.arange(count, device=cdf.device) + random.uniform((1,), source)) / count
    return torch.searchsorted(cdf / cdf[-1], points, right=True).clamp(max=len(log_w) - 1)
