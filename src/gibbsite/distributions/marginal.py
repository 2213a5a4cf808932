"""The law of x alone of a generator with latent variables: its integral over h by the nodes of a scrambled net."""

import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import instance
from ..model import Distribution, device_of, dtype_of
from ..random import Seed
from ..space import whole
from .latent import LatentNormal

_MEMORY = 1 << 18  # pairs of a state and a node held at once: they stay in the cache


@final
class Marginal(Distribution):
    """q(x) = (1/n) sum_i N(x; m(h_i), diag s(h_i)^2) in double precision, h_i the n nodes: it has a log q(x), its own.

    The h_i are the normal quantiles of a scrambled Sobol net. Each has the law N(0, I), so that the mean of q(x) over
    scramblings is the generator's own, whatever the size of h; two of different seeds are independent, and how far they
    are apart is the error. The mean of log q(x) is below the logarithm of the mean, by half of their variance.
    The generator is read once: what it learns later does not change this.

    References: Owen (1997), Monte Carlo variance of scrambled net quadrature.

    Example:
        >>> import gibbsite as gb
        >>> from gibbsite.distributions import FixedScale, LatentNormal, Marginal
        >>> q = Marginal(LatentNormal(FixedScale(gb.models.perceptron(2, 2, (16,)), 0.1), 2, 2), nodes=256, seed=0)
        >>> z = gb.estimate.integrate(q, -3, 3)
        >>> abs(z.value) < 1e-6, z.trusted
        (True, True)
    """

    means: Tensor
    scales: Tensor

    def __init__(self, generator: LatentNormal, nodes: int, *, seed: Seed):
        super().__init__()
        self.space = instance(generator, LatentNormal, "generator").observed
        h = normal_net(whole(nodes, "nodes"), generator.latent.shape[0], seed)
        with torch.no_grad():
            mean, scale = generator.decoder(h.to(device_of(generator), dtype_of(generator)))
        self.register_buffer("means", mean.double().flatten(1))
        self.register_buffer("scales", scale.double().expand(mean.shape).flatten(1).clone())

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        x = self.space.embed(x, self.means.dtype)
        shape = x.shape[: x.ndim - len(self.space.shape)]
        rows = x.reshape(-1, self.means.shape[1])
        parts = [self._log_density(part) for part in rows.split(max(1, _MEMORY // len(self.means)))]
        return torch.cat(parts).view(shape)

    def _log_density(self, x: Float[Tensor, "batch n"]) -> Float[Tensor, " batch"]:
        """The quadratic forms -(x - m)^2 / 2 s^2 multiplied out, so that two products give those of all pairs."""
        precision = self.scales.square().reciprocal()
        constant = -0.5 * self.means.square() * precision - self.scales.log() - 0.5 * math.log(2 * math.pi)
        pairs = constant.sum(1) - 0.5 * x.square() @ precision.T + x @ (self.means * precision).T
        return pairs.logsumexp(1) - math.log(len(self.means))

    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n *event"]:
        n, source = whole(n, "n", 0), random.generator(seed, self.means.device)
        which = random.integers(len(self.means), (n,), source)
        noise = random.normal((n, self.means.shape[1]), source, self.means.dtype)
        return (self.means[which] + self.scales[which] * noise).unflatten(1, self.space.shape)


def normal_net(nodes: int, dims: int, seed: Seed) -> Float[Tensor, "nodes dims"]:
    """Normal quantiles of the first points of a Sobol net, scrambled at random."""
    scrambling = int(random.integers(2**31 - 1, (1,), random.generator(seed)))
    points = torch.quasirandom.SobolEngine(dims, scramble=True, seed=scrambling).draw(nodes, dtype=torch.float64)
    return torch.special.ndtri(points.clamp(2.0**-32, 1 - 2.0**-32))
