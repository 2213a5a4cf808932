"""Convergence of chains: effective sample size, R-hat and MCSE by ArviZ; autocorrelation."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from .. import random
from ..random import Seed
from ..space import whole
from ._arviz import each


def ess(values: Float[Tensor, "draws chains *dims"]) -> Float[Tensor, "*dims"]:
    """The effective sample size (bulk, rank-normalised) of each statistic over all chains; NaN for one that never moves.

    References: Vehtari et al. (2021), Rank-normalization, folding, and localization.

    Example:
        >>> import torch, gibbsite as gb
        >>> draws = torch.randn(1000, 4, generator=torch.Generator().manual_seed(0))
        >>> bool(3000 < gb.diagnose.ess(draws) < 5000)
        True
    """
    return _by_arviz("ess", values)


def rhat(values: Float[Tensor, "draws chains *dims"]) -> Float[Tensor, "*dims"]:
    """The rank-normalised split R-hat of each statistic: near 1 when the chains agree."""
    return _by_arviz("rhat", values)


def mcse(values: Float[Tensor, "draws chains *dims"]) -> Float[Tensor, "*dims"]:
    """The Monte Carlo standard error of each statistic's mean."""
    return _by_arviz("mcse", values)


def _by_arviz(name: str, values: Tensor) -> Tensor:
    values = torch.as_tensor(values)
    if values.ndim < 2:
        raise ValueError(f"values: expected (draws, chains, ...), got shape {tuple(values.shape)}")
    flat = values.detach().double().reshape(*values.shape[:2], -1).cpu().numpy()
    return torch.tensor(each(name, flat), dtype=torch.float64, device=values.device).view(values.shape[2:])


def autocorrelation(values: Float[Tensor, "draws chains *dims"], lags: int) -> Float[Tensor, "lags1 *dims"]:
    """The autocorrelation at lags 0, ..., `lags`, pooled over chains, by FFT."""
    draws = len(values)
    if whole(lags, "lags", 0) >= draws:
        raise ValueError(f"lags: expected 0 to {draws - 1}, got {lags}")
    centred = values.double() - values.double().mean((0, 1), keepdim=True)
    spectrum = torch.fft.rfft(centred, 2 * draws, dim=0)
    covariance = torch.fft.irfft(spectrum.abs().square(), 2 * draws, dim=0)[: lags + 1].mean(1)
    return covariance / covariance[:1]


def hamming_to_random(
    x: Shaped[Tensor, "draws chains *event"], states: int = 2, *, seed: Seed
) -> Int[Tensor, "draws chains"]:
    """The number of sites at which x differs from one random state: the test statistic of the GWG paper."""
    other = random.integers(whole(states, "states", 2), x.shape[2:], random.generator(seed, x.device))
    return (x != other).flatten(2).sum(-1)
