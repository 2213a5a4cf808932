"""Mixtures: of any distributions, and of isotropic normal laws, evaluated together."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .. import random
from ..check import floats, instance
from ..model import Distribution, dtype_of
from ..random import Script, Seed
from ..space import Real, whole
from .normal import Moments


def _log_weights(weights: Tensor | Sequence[float], count: int) -> Float[Tensor, " count"]:
    """Their logarithms, normalised, in double precision."""
    w = torch.as_tensor(weights, dtype=torch.float64)
    if tuple(w.shape) != (count,) or not bool((w >= 0).all()) or not bool(w.sum() > 0) or not bool(w.isfinite().all()):
        raise ValueError(f"weights: expected {count} non-negative numbers, one a component, got {w.tolist()}")
    return (w / w.sum()).log()


def _normalised(log_weights: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
    """The weights; those that float32 rounded do not sum to 1 in double precision by themselves."""
    w = log_weights.exp()
    return w / w.sum()


def mixture_covariance(weights: Tensor, means: Float[Tensor, "k n"], covariances: Float[Tensor, "k n n"]) -> Tensor:
    """sum_k w_k (C_k + m_k m_k^T) - m m^T, computed about the mean m."""
    away = means - weights @ means
    return torch.einsum("k,kij->ij", weights, covariances + away[:, :, None] * away[:, None, :])


@final
class Mixture(Distribution, Moments):
    """q(x) = sum_k w_k q_k(x): distributions on one space, with weights that are normalised to sum to 1.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import Mixture, Normal
        >>> q = Mixture([1, 3], [Normal.diagonal(torch.tensor([m]), 1.0) for m in (-2.0, 2.0)])
        >>> q.mean.tolist(), q.covariance.tolist()
        ([1.0], [[4.0]])
    """

    log_weights: Tensor

    def __init__(self, weights: Tensor | Sequence[float], components: Sequence[Distribution]):
        super().__init__()
        if not components:
            raise ValueError("components: expected at least one distribution, got none")
        for place, component in enumerate(components):
            if instance(component, Distribution, f"components[{place}]").space != components[0].space:
                raise ValueError(f"components: expected one space, got {components[0].space} and {component.space}")
        self.components, self.space = nn.ModuleList(components), components[0].space
        self.register_buffer("log_weights", _log_weights(weights, len(components)).to(self._type()))

    def _type(self) -> torch.dtype:
        """The widest of the components' types."""
        return reduce(torch.promote_types, map(dtype_of, self.components))

    @property
    def weights(self) -> Float[Tensor, " components"]:
        """The probability of each component."""
        return _normalised(self.log_weights)

    def _known(self) -> list[Moments]:
        unknown = [type(c).__name__ for c in self.components if not isinstance(c, Moments)]
        if unknown:
            raise TypeError(f"moments: expected components with exact moments, got {unknown[0]}")
        return [c for c in self.components if isinstance(c, Moments)]

    @property
    def mean(self) -> Tensor:
        means = torch.stack([c.mean for c in self._known()])
        return torch.tensordot(self.weights.to(means.dtype), means, dims=1)

    @property
    def covariance(self) -> Tensor:
        known = self._known()
        means = torch.stack([c.mean.flatten() for c in known])
        return mixture_covariance(self.weights.to(means.dtype), means, torch.stack([c.covariance for c in known]))

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        logs = torch.stack([component(x) for component in self.components], -1)
        return (logs + _normalised(self.log_weights.to(logs.dtype)).log()).logsumexp(-1)

    def sample(self, n: int, *, seed: Seed) -> Tensor:
        n, source = whole(n, "n", 0), random.generator(seed, self.log_weights.device)
        if isinstance(source, Script):
            raise TypeError(
                "Mixture: its draws cannot be enumerated, for how many come of each component is random; a transition "
                "matrix can be read of gb.sample.Mixture([MH(Independent(q)) for q in components], weights)"
            )
        which = random.categorical(self.log_weights.expand(n, -1), source)
        counts = which.bincount(minlength=len(self.components)).tolist()
        parts = [c for c in self.components if isinstance(c, Distribution)]
        draws = torch.cat([c.sample(k, seed=source) for c, k in zip(parts, counts, strict=True) if k or n == 0])
        return draws if n == 0 else torch.empty_like(draws).index_copy(0, which.argsort(stable=True), draws)


@final
class NormalMixture(Distribution, Moments):
    """q(x) = sum_k w_k N(x; m_k, scale_k^2 I) on vectors, all components evaluated together.

    Example:
        >>> import torch
        >>> from gibbsite.distributions import NormalMixture
        >>> NormalMixture([1, 1], torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), 0.5).covariance.tolist()
        [[1.25, 0.0], [0.0, 0.25]]
    """

    log_weights: Tensor
    means: Tensor
    scales: Tensor

    def __init__(self, weights: Tensor | Sequence[float], means: Float[Tensor, "k n"], scale: Tensor | float):
        super().__init__()
        means = floats(means, "means", ("k", "n"))
        scales = floats(scale, "scale", dtype=means.dtype).to(means)
        scales = floats(scales, "scale", means.shape[:1] if scales.ndim else ()).expand(len(means)).clone()
        if not bool((scales > 0).all()):
            raise ValueError("scale: expected positive standard deviations")
        self.space = Real(means.shape[1])
        self.register_buffer("log_weights", _log_weights(weights, len(means)).to(means))
        self.register_buffer("means", means.detach().clone())
        self.register_buffer("scales", scales)

    @property
    def weights(self) -> Float[Tensor, " k"]:
        """The probability of each component."""
        return _normalised(self.log_weights)

    @property
    def mean(self) -> Tensor:
        return self.weights @ self.means

    @property
    def covariance(self) -> Tensor:
        eye = torch.eye(self.means.shape[1], dtype=self.means.dtype, device=self.means.device)
        return mixture_covariance(self.weights, self.means, self.scales.square()[:, None, None] * eye)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        distance = (self.space.embed(x)[..., None, :] - self.means).square().sum(-1)
        peak = _normalised(self.log_weights).log() - self.means.shape[1] * (self.scales.log() + 0.5 * math.log(2 * math.pi))
        return (peak - 0.5 * distance / self.scales.square()).logsumexp(-1)

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n dimension"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.means.device)
        which = random.categorical(self.log_weights.expand(n, -1), source)
        noise = random.normal((n, self.means.shape[1]), source, self.means.dtype)
        return self.means[which] + self.scales[which, None] * noise
