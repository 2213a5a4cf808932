"""Well-known two-dimensional shapes, and Neal's funnel: normalised, sampled exactly, moments known where they are simple."""

import math
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import number
from ..model import Distribution
from ..random import Seed
from ..space import Real, whole
from .mixture import NormalMixture
from .normal import Moments


def twenty_five_gaussians(*, spacing: float = 1.0, scale: float = 0.084, dtype: torch.dtype | None = None) -> NormalMixture:
    """25 equal normal laws on a 5 x 5 grid; with the defaults the mean log-likelihood of its own samples is -1.10 nats.

    References: Che et al. (2020), Your GAN is secretly an energy-based model; Xiao et al. (2021), VAEBM.

    Example:
        >>> from gibbsite.distributions import twenty_five_gaussians
        >>> q = twenty_five_gaussians()
        >>> round(q(q.sample(100_000, seed=0)).mean().item(), 1)
        -1.1
    """
    line = number(spacing, "spacing") * torch.arange(-2.0, 3.0, dtype=dtype)
    return NormalMixture(torch.ones(25), torch.cartesian_prod(line, line), scale)


def two_moons(*, scale: float = 0.1, points: int = 64, dtype: torch.dtype | None = None) -> NormalMixture:
    """Two interlocked half circles of radius 1, each as `points` equal normal laws along its arc.

    Example:
        >>> from gibbsite.distributions import two_moons
        >>> two_moons().sample(3, seed=0).shape
        torch.Size([3, 2])
    """
    points = whole(points, "points")
    angle = math.pi * (torch.arange(points, dtype=dtype or torch.get_default_dtype()) + 0.5) / points
    upper = torch.stack((angle.cos() - 0.5, angle.sin() - 0.25), -1)
    return NormalMixture(torch.ones(2 * points), torch.cat((upper, -upper)), scale)


@final
class Rings(Distribution, Moments):
    """q(x) = sum_k w_k exp(-(|x| - R_k)^2 / (2 width^2)) / Z_k in the plane: concentric rings, equally likely by default.

    Z_k = 2 pi (width^2 exp(-R^2 / (2 width^2)) + R width sqrt(pi / 2) (1 + erf(R / (width sqrt 2)))).
    Radii are drawn by inverting their distribution function, which has the same closed form.

    Example:
        >>> from gibbsite.distributions import Rings
        >>> Rings().sample(3, seed=0).shape
        torch.Size([3, 2])
    """

    radii: Tensor

    def __init__(self, radii: Sequence[float] = (1.0, 2.0, 3.0), *, width: float = 0.15, dtype: torch.dtype | None = None):
        super().__init__()
        self.width, self.space = number(width, "width", above=0), Real(2)
        values = [number(radius, f"radii[{place}]", least=0) for place, radius in enumerate(radii)]
        if not values:
            raise ValueError("radii: expected at least one, got none")
        self.register_buffer("radii", torch.tensor(values, dtype=dtype))

    def _powers(self, r: Tensor) -> list[Tensor]:
        """The integrals of t^n exp(-(t - R)^2 / (2 width^2)) over t > 0, n = 0, 1, 2, 3."""
        w = self.width
        first = [w * math.sqrt(math.pi / 2) * (1 + torch.erf(r / (w * math.sqrt(2))))]
        first.append(r * first[0] + w**2 * torch.exp(-(r**2) / (2 * w**2)))
        first.append(r * first[1] + w**2 * first[0])
        return [*first, r * first[2] + 2 * w**2 * first[1]]

    @property
    def mean(self) -> Tensor:
        return torch.zeros(2, dtype=self.radii.dtype, device=self.radii.device)

    @property
    def covariance(self) -> Tensor:
        powers = self._powers(self.radii.double())
        variance = 0.5 * (powers[3] / powers[1]).mean()
        return (variance * torch.eye(2, dtype=torch.float64, device=self.radii.device)).to(self.radii.dtype)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        away = (torch.linalg.vector_norm(self.space.embed(x), dim=-1, keepdim=True) - self.radii) / self.width
        log_constants = (2 * math.pi * len(self.radii) * self._powers(self.radii)[1]).log()
        return (-0.5 * away.square() - log_constants).logsumexp(-1)

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n 2"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.radii.device)
        ring = self.radii.double()[random.integers(len(self.radii), (n,), source)]
        low, high = torch.zeros_like(ring), ring + 12 * self.width
        wanted = random.uniform((n,), source) * self._below(high, ring)
        for _ in range(60):
            middle = (low + high) / 2
            under = self._below(middle, ring) < wanted
            low, high = torch.where(under, middle, low), torch.where(under, high, middle)
        angle = 2 * math.pi * random.uniform((n,), source)
        return (low[:, None] * torch.stack((angle.cos(), angle.sin()), -1)).to(self.radii.dtype)

    def _below(self, t: Tensor, r: Tensor) -> Tensor:
        """The integral of s exp(-(s - R)^2 / (2 width^2)) over 0 < s < t."""
        w, root = self.width, self.width * math.sqrt(2)
        bumps = torch.exp(-(r**2) / (2 * w**2)) - torch.exp(-((t - r) ** 2) / (2 * w**2))
        return w**2 * bumps + r * w * math.sqrt(math.pi / 2) * (torch.erf((t - r) / root) + torch.erf(r / root))


@final
class Pinwheel(Distribution):
    """`arms` bent normal laws: x = R(2 pi k / arms + bend |y|) y, y ~ N((1, 0), diag(radial^2, tangential^2)).

    A rotation by an angle that depends on |y| keeps |y| and areas, so that the density is the normal one at the unbent x.
    """

    angles: Tensor

    def __init__(
        self,
        arms: int = 5,
        *,
        radial: float = 0.3,
        tangential: float = 0.05,
        bend: float = 1.5,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        arms, self.bend, self.space = whole(arms, "arms"), number(bend, "bend"), Real(2)
        self.radial, self.tangential = number(radial, "radial", above=0), number(tangential, "tangential", above=0)
        self.register_buffer("angles", 2 * math.pi * torch.arange(arms, dtype=dtype or torch.get_default_dtype()) / arms)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        x = self.space.embed(x)
        turn = self.angles + self.bend * torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        along = x[..., :1] * turn.cos() + x[..., 1:] * turn.sin()
        across = x[..., 1:] * turn.cos() - x[..., :1] * turn.sin()
        logs = -0.5 * (((along - 1) / self.radial) ** 2 + (across / self.tangential) ** 2)
        return logs.logsumexp(-1) - math.log(2 * math.pi * self.radial * self.tangential * len(self.angles))

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n 2"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.angles.device)
        arm = self.angles[random.integers(len(self.angles), (n,), source)]
        noise = random.normal((n, 2), source, self.angles.dtype)
        along, across = 1 + self.radial * noise[:, 0], self.tangential * noise[:, 1]
        turn = arm + self.bend * torch.sqrt(along**2 + across**2)
        return torch.stack((along * turn.cos() - across * turn.sin(), along * turn.sin() + across * turn.cos()), -1)


@final
class Banana(Distribution, Moments):
    """x_1 ~ N(0, scale^2), x_2 = N(0, 1) + bend (x_1^2 - scale^2): a normal law bent along a parabola.

    References: Haario et al. (1999), Adaptive proposal distribution for random walk Metropolis algorithm.
    """

    moments: Tensor

    def __init__(self, *, scale: float = 1.0, bend: float = 0.5, dtype: torch.dtype | None = None):
        super().__init__()
        self.scale, self.bend, self.space = number(scale, "scale", above=0), number(bend, "bend"), Real(2)
        variances = [self.scale**2, 1 + 2 * self.bend**2 * self.scale**4]
        self.register_buffer("moments", torch.tensor(variances, dtype=dtype or torch.get_default_dtype()))

    @property
    def mean(self) -> Tensor:
        return torch.zeros_like(self.moments)

    @property
    def covariance(self) -> Tensor:
        return self.moments.diag_embed()

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        first, second = self.space.embed(x).unbind(-1)
        height = second - self.bend * (first**2 - self.scale**2)
        return -0.5 * ((first / self.scale) ** 2 + height**2) - math.log(2 * math.pi * self.scale)

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n 2"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.moments.device)
        noise = random.normal((n, 2), source, self.moments.dtype)
        first = self.scale * noise[:, 0]
        return torch.stack((first, noise[:, 1] + self.bend * (first**2 - self.scale**2)), -1)


@final
class Funnel(Distribution, Moments):
    """x_1 ~ N(0, scale^2) and the other entries ~ N(0, exp(x_1)): the width of the others varies over many orders.

    References: Neal (2003), Slice sampling, section 8.
    """

    moments: Tensor

    def __init__(self, dimension: int = 10, *, scale: float = 3.0, dtype: torch.dtype | None = None):
        super().__init__()
        dimension, self.scale = whole(dimension, "dimension", 2), number(scale, "scale", above=0)
        self.space = Real(dimension)
        variances = torch.full((dimension,), math.exp(scale**2 / 2), dtype=dtype or torch.get_default_dtype())
        variances[0] = scale**2
        self.register_buffer("moments", variances)

    @property
    def mean(self) -> Tensor:
        return torch.zeros_like(self.moments)

    @property
    def covariance(self) -> Tensor:
        return self.moments.diag_embed()

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        x = self.space.embed(x)
        neck, rest = x[..., 0], x[..., 1:]
        quadratic = (neck / self.scale) ** 2 + rest.square().sum(-1) * torch.exp(-neck) + rest.shape[-1] * neck
        return -0.5 * quadratic - math.log(self.scale) - 0.5 * x.shape[-1] * math.log(2 * math.pi)

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n dimension"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.moments.device)
        noise = random.normal((n, len(self.moments)), source, self.moments.dtype)
        neck = self.scale * noise[:, :1]
        return torch.cat((neck, torch.exp(neck / 2) * noise[:, 1:]), -1)
