"""The normal distribution on real states of any shape, with a full or a diagonal covariance."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self, final

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
    def pull(self, away: Tensor) -> tuple[Tensor, Tensor]:
        """|S^-1 away|^2, one number a state, and (S S^T)^-1 away."""

    @abstractmethod
    def log_det(self) -> Tensor:
        """log |det S|."""

    @abstractmethod
    def covariance(self) -> Tensor:
        """S S^T."""

    @abstractmethod
    def derive(self) -> None:
        """Computes anew what is kept besides S for speed: S was made, loaded, or brought to another type."""


@final
class _Diagonal(_Scale):
    scale: Tensor
    precision: Tensor

    def __init__(self, scale: Tensor):
        super().__init__()
        self.dims = scale.ndim
        self.register_buffer("scale", scale)
        self.register_buffer("precision", None, persistent=False)

    def derive(self) -> None:
        self.precision = self.scale.square().reciprocal()

    def stretch(self, noise: Tensor) -> Tensor:
        return noise * self.scale

    def whiten(self, x: Tensor) -> Tensor:
        return x / self.scale

    def pull(self, away: Tensor) -> tuple[Tensor, Tensor]:
        pull, dims = away * self.precision, self.dims
        if dims > 1:
            return torch.linalg.vecdot(away.flatten(-dims), pull.flatten(-dims)), pull
        return torch.linalg.vecdot(away, pull) if dims else away * pull, pull

    def log_det(self) -> Tensor:
        return self.scale.log().sum()

    def covariance(self) -> Tensor:
        return self.scale.square().flatten().diag_embed()


@final
class _Triangular(_Scale):
    """S = L. Of two ways to L^-T L^-1 away the one product with the precision matrix is thrice as fast as two triangular
    solves, and is taken where it is as good: its distance has a relative error of eps k^2 at worst, k the condition number
    of the correlations, and k <= eps^(-1/4) leaves half of the digits, and all but one of a typical state's.
    """

    lower: Tensor
    precision: Tensor | None

    def __init__(self, lower: Tensor):
        super().__init__()
        self.register_buffer("lower", lower)
        self.register_buffer("precision", None, persistent=False)

    def derive(self) -> None:
        lower = _wide(self.lower)
        spread = torch.linalg.svdvals(lower / torch.linalg.vector_norm(lower, dim=1, keepdim=True)).square()
        good = bool(spread[0] <= spread[-1] * torch.finfo(lower.dtype).eps ** -0.25)
        self.precision = torch.cholesky_inverse(lower).to(self.lower.dtype) if good else None

    def stretch(self, noise: Tensor) -> Tensor:
        return noise @ self.lower.T

    def whiten(self, x: Tensor) -> Tensor:
        return _solved(x, self.lower.T, upper=True)

    def pull(self, away: Tensor) -> tuple[Tensor, Tensor]:
        if (precision := self.precision) is not None:
            pull = away @ precision.to(away.dtype)
            return torch.linalg.vecdot(away, pull), pull
        white = self.whiten(away)
        return torch.linalg.vecdot(white, white), _solved(white, self.lower, upper=False)

    def log_det(self) -> Tensor:
        return self.lower.diagonal().log().sum()

    def covariance(self) -> Tensor:
        return self.lower @ self.lower.T


def _solved(x: Tensor, factor: Tensor, *, upper: bool) -> Tensor:
    """x factor^-1 for each row x."""
    rows = _wide(x).reshape(-1, len(factor))
    return torch.linalg.solve_triangular(factor.to(rows.dtype), rows, upper=upper, left=False).reshape(x.shape).to(x.dtype)


def _wide(x: Tensor) -> Tensor:
    """x in a type that LAPACK knows."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


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
        if mean.is_floating_point():  # of two types the wider
            mean, covariance = (t.to(torch.promote_types(mean.dtype, covariance.dtype)) for t in (mean, covariance))
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
        self.register_buffer("log_peak", None, persistent=False)
        self.register_load_state_dict_post_hook(_derive_again)
        self._derive()

    def _derive(self) -> None:
        self.scale.derive()
        self.log_peak = -0.5 * self.location.numel() * math.log(2 * math.pi) - self.scale.log_det()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        module = super()._apply(fn, recurse)
        self._derive()  # from the moments in their new type: those of float32 in double would not integrate to 1
        return module

    @classmethod
    def diagonal(cls, mean: Float[Tensor, "*event"], scale: Float[Tensor, "*event"] | float) -> "Normal":
        """Independent entries with these means and standard deviations, on states of the shape of `mean`."""
        mean = floats(mean, "mean")
        spread = floats(scale, "scale", dtype=mean.dtype).to(mean)
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
        return torch.add(self.log_peak, self.scale.pull(self.space.embed(x) - self.location)[0], alpha=-0.5)

    def closed_score(self, x: Tensor) -> tuple[Float[Tensor, "*batch"], Tensor]:
        distance, pull = self.scale.pull(self.location - self.space.embed(x))
        return torch.add(self.log_peak, distance, alpha=-0.5), pull

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n *event"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.location.device)
        return self.location + self.scale.stretch(random.normal((n, *self.space.shape), source, self.location.dtype))


def _derive_again(normal: Normal, _: object) -> None:
    normal._derive()
