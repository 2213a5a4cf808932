"""The normal distribution on real states of any shape, with a full or a diagonal covariance."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .. import random
from ..check import floats
from ..model import ClosedScore, Distribution
from ..random import Seed
from ..space import Real, whole


class Moments(ABC):
    """Mixed into a distribution on real states whose mean and covariance are known exactly."""

    @property
    @abstractmethod
    def mean(self) -> Float[Tensor, "*event"]:
        """E[x]."""

    @property
    @abstractmethod
    def covariance(self) -> Float[Tensor, "size size"]:
        """The covariance matrix of the flattened x."""


class _Scale(nn.Module, ABC):
    """A square root S of a covariance S S^T, acting on states (batch, *event)."""

    @abstractmethod
    def stretch(self, noise: Tensor) -> Tensor:
        """S noise."""

    @abstractmethod
    def whiten(self, x: Tensor) -> Tensor:
        """S^-1 x."""

    @abstractmethod
    def pull(self, away: Tensor) -> Tensor:
        """(S S^T)^-1 away: the precision matrix times it."""

    @abstractmethod
    def log_det(self) -> Tensor:
        """log |det S|."""

    @abstractmethod
    def covariance(self) -> Tensor:
        """S S^T."""


@final
class _Diagonal(_Scale):
    scale: Tensor
    precision: Tensor

    def __init__(self, scale: Tensor):
        super().__init__()
        self.register_buffer("scale", scale)
        self.register_buffer("precision", scale.square().reciprocal())

    def stretch(self, noise: Tensor) -> Tensor:
        return noise * self.scale

    def whiten(self, x: Tensor) -> Tensor:
        return x / self.scale

    def pull(self, away: Tensor) -> Tensor:
        return away * self.precision

    def log_det(self) -> Tensor:
        return self.scale.log().sum()

    def covariance(self) -> Tensor:
        return self.scale.square().flatten().diag_embed()


@final
class _Triangular(_Scale):
    lower: Tensor
    precision: Tensor

    def __init__(self, lower: Tensor):
        super().__init__()
        self.register_buffer("lower", lower)
        self.register_buffer("precision", torch.cholesky_inverse(lower))

    def stretch(self, noise: Tensor) -> Tensor:
        return noise @ self.lower.T

    def whiten(self, x: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(self.lower.T, x, upper=True, left=False)

    def pull(self, away: Tensor) -> Tensor:
        return away @ self.precision

    def log_det(self) -> Tensor:
        return self.lower.diagonal().log().sum()

    def covariance(self) -> Tensor:
        return self.lower @ self.lower.T


@final
class Normal(Distribution, Moments, ClosedScore):
    """log q(x) = -(x - m)^T C^-1 (x - m) / 2 - log det(2 pi C) / 2, m a vector and C its covariance matrix.

    `Normal.standard` and `Normal.diagonal` make normal laws with independent entries on states of any shape. The moments
    are buffers: they move with the module and are saved with it, and are not learned.

    Example:
        >>> import torch, gibbsite as gb
        >>> q = gb.distributions.Normal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
        >>> q.sample(5, seed=0).shape
        torch.Size([5, 2])
        >>> gb.distributions.Normal.standard((3, 8, 8)).sample(5, seed=0).shape
        torch.Size([5, 3, 8, 8])
    """

    location: Tensor
    log_peak: Tensor

    def __init__(self, mean: Float[Tensor, " n"], covariance: Float[Tensor, "n n"]):
        mean, covariance = floats(mean, "mean"), floats(covariance, "covariance")
        dtype = torch.promote_types(mean.dtype, covariance.dtype)
        mean, covariance, n = mean.to(dtype), covariance.to(dtype), mean.numel()
        if mean.ndim != 1 or tuple(covariance.shape) != (n, n):
            raise ValueError(
                f"mean, covariance: expected shapes (n,) and (n, n), got {tuple(mean.shape)} and {tuple(covariance.shape)}; "
                "for states of another shape use Normal.diagonal(mean, scale)"
            )
        if not torch.allclose(covariance, covariance.T):
            raise ValueError("covariance: expected a symmetric matrix")
        lower, failed = torch.linalg.cholesky_ex(covariance)
        if int(failed):
            raise ValueError("covariance: expected a positive definite matrix; its Cholesky factorisation failed")
        self._build(mean, _Triangular(lower))

    def _build(self, mean: Tensor, scale: _Scale) -> None:
        super().__init__()
        self.space = Real(tuple(mean.shape))
        self.scale = scale
        self.register_buffer("location", mean.detach().clone())
        self.register_buffer("log_peak", -0.5 * mean.numel() * math.log(2 * math.pi) - scale.log_det())

    @classmethod
    def diagonal(cls, mean: Float[Tensor, "*event"], scale: Float[Tensor, "*event"] | float) -> "Normal":
        """Independent entries with these means and standard deviations, on states of the shape of `mean`."""
        mean = floats(mean, "mean")
        spread = floats(scale, "scale").to(mean)
        spread = floats(spread, "scale", mean.shape if spread.ndim else ()).expand(mean.shape).clone()
        if not bool((spread > 0).all()):
            raise ValueError("scale: expected positive standard deviations")
        normal = cls.__new__(cls)
        normal._build(mean, _Diagonal(spread))
        return normal

    @classmethod
    def standard(cls, shape: int | Sequence[int], *, dtype: torch.dtype | None = None) -> "Normal":
        """Mean 0, standard deviation 1, independent entries."""
        sizes = Real(tuple(shape) if isinstance(shape, Sequence) else shape).shape
        return cls.diagonal(torch.zeros(sizes, dtype=dtype), 1.0)

    @property
    def mean(self) -> Tensor:
        return self.location

    @property
    def covariance(self) -> Tensor:
        return self.scale.covariance()

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        away = self.space.embed(x) - self.location
        return torch.add(self.log_peak, self._dot(away, self.scale.pull(away)), alpha=-0.5)

    def closed_score(self, x: Tensor) -> tuple[Float[Tensor, "*batch"], Tensor]:
        back = self.location - self.space.embed(x)
        pull = self.scale.pull(back)
        return torch.add(self.log_peak, self._dot(back, pull), alpha=-0.5), pull

    def _dot(self, a: Tensor, b: Tensor) -> Tensor:
        dims = len(self.space.shape)
        if dims > 1:
            a, b = a.flatten(-dims), b.flatten(-dims)
        return torch.linalg.vecdot(a, b) if dims else a * b

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n *event"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.location.device)
        return self.location + self.scale.stretch(random.normal((n, *self.space.shape), source, self.location.dtype))
