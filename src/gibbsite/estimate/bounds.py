"""Bounds of log Z from importance weights: the log of their mean from below, a jackknife from above; and IWAE's."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import function
from ..processes import Group
from ..random import Seed, Source
from ..sample.kernel import Cost
from ..space import whole
from .estimate import MARGIN, Estimate, few
from .weights import ess, log_mean


@final
@dataclass(frozen=True)
class Bounds:
    """E[lower] <= log Z <= E[upper], the second for n large enough; printed with the n and ESS that say how far to go."""

    lower: float
    upper: float
    ess: float
    n: int

    def __str__(self) -> str:
        return f"[{self.lower:.4f}, {self.upper:.4f}] from n = {self.n:,} with ESS {self.ess:,.1f}"


def residual_bounds(log_w: Float[Tensor, " n"]) -> Bounds:
    """T_n = log mean w <= log Z <= (2n - 1) T_n - 2 (n - 1) T_(n-1), in the mean.

    T_(n-1) leaves each weight out in turn. The second holds only for n large enough: it takes back twice the bias of T_n,
    which is -Var(w) / (2n Z^2) + O(1/n^2); taking it back once, the middle of the two, is the jackknife. All in log space.

    References: Deng et al. (2020), Residual energy-based models for text generation, theorem 2; Nowozin (2018), Debiasing
    evidence approximations.

    Example:
        >>> import torch
        >>> log_w = torch.linspace(-1, 1, 101)
        >>> print(residual_bounds(log_w))
        [0.1646, 0.1678] from n = 101 with ESS 76.6
    """
    w = torch.as_tensor(log_w).detach().double()
    if w.ndim != 1 or len(w) < 2 or w.isnan().any() or (w == math.inf).any() or not w.isfinite().any():
        raise ValueError(f"log_w: expected at least two log weights, not NaN and not all -inf, got shape {tuple(w.shape)}")
    n = len(w)
    whole_, left_out = log_mean(w), _leave_one_out(w)
    # T_n + 2 (n - 1) (T_n - T_(n-1)): the small difference is what survives the large factor
    upper = whole_ + 2 * (n - 1) * float((whole_ - left_out).mean())
    return Bounds(whole_, upper, ess(w), n)


def _leave_one_out(w: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """log mean of all but one: log(S - w_i) - log(n - 1), where w_i holds most of S from the others anew."""
    total = w.logsumexp(0)
    share = (w - total).exp()
    rest = total + torch.log1p(-share)
    for place in (share > 0.5).nonzero()[:, 0].tolist():
        rest[place] = torch.cat((w[:place], w[place + 1 :])).logsumexp(0)
    return rest - math.log(len(w) - 1)


def iwae(
    log_weights: Callable[[Tensor, int, Source], Tensor], data: Tensor, draws: int, *, seed: Seed, batch: int = 100
) -> Estimate:
    """mean over data of log (1/k) sum_i p(x, h_i) / q(h_i | x), h_i drawn from q(h | x), k = `draws`: below log p(x).

    `log_weights(x, k, generator)` draws k latents for each x and returns log p(x, h) - log q(h | x), shape (k, len(x)).
    The error is that of the draws, for these data. There is no upper end.

    References: Burda et al. (2016), Importance weighted autoencoders.

    Example:
        >>> import torch, gibbsite as gb
        >>> def log_weights(x, k, generator):  # h ~ N(0, 1), x | h ~ N(h, 1), and q(h | x) = N(x / 2, 1)
        ...     prior, noise = gb.distributions.Normal.standard(1), torch.randn(k, len(x), 1, generator=generator)
        ...     h = x / 2 + noise
        ...     return prior(h) + prior(x - h) - prior(noise)
        >>> bound = gb.estimate.iwae(log_weights, torch.tensor([[0.0], [1.0]]), 500, seed=0)
        >>> exact = -0.5 * torch.log(torch.tensor(4 * torch.pi)).item() - 0.125
        >>> abs(bound.value - exact) < 4 * bound.stderr
        True
    """
    function(log_weights, "log_weights", "lambda x, k, generator: log_p - log_q")
    k, data = whole(draws, "draws", 2), torch.as_tensor(data)
    if not data.ndim or not len(data) or (data.is_floating_point() and not data.isfinite().all()):
        raise ValueError(f"data: expected at least one row, all finite, got shape {tuple(data.shape)} or NaN or infinity")
    group, parts = Group.current(data.device), []
    source = group.source(random.generator(seed, data.device))
    with group.agreed():
        for x in group.part(data, "data").split(whole(batch, "batch")):
            parts.append(_bounded(log_weights, x, k, source))
    values, variances, sizes = group.gather(torch.cat(parts)).unbind(1)
    value, size = float(values.mean()), float(sizes.median())
    error = math.sqrt(float(variances.sum())) / len(data)
    why = few(size, k, "draws (the median over data)")
    return Estimate(value, error, value - MARGIN * error, math.inf, size, k, Cost(k, 0), not why, why)


def _bounded(log_weights: Callable[[Tensor, int, Source], Tensor], x: Tensor, k: int, source: Source) -> Tensor:
    """Of each x: the log of its mean weight, that one's variance, and the ESS."""
    with torch.no_grad():
        log_w = torch.as_tensor(log_weights(x, k, source)).double()
    if log_w.shape != (k, len(x)) or log_w.isnan().any():
        raise ValueError(f"log_weights: expected ({k}, {len(x)}) numbers, none NaN, got shape {tuple(log_w.shape)}")
    total = log_w.logsumexp(0)
    sizes = (2 * total - (2 * log_w).logsumexp(0)).exp()
    spread = (log_w.softmax(0) * k).var(0) / k  # NaN where every weight is 0: of such a mean nothing is known
    return torch.stack((total - math.log(k), spread.nan_to_num(math.inf), sizes.nan_to_num(0.0)), 1)
