"""A generator with latent variables: h ~ N(0, I), x = m(h) + s(h) e, as a distribution of the pair (h, x)."""

import math
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import instance
from ..model import Distribution, Model, device_of, dtype_of
from ..random import Seed
from ..space import Real, whole
from .conditional import ConditionalNormal
from .normal import Normal


def log_normal(x: Tensor, mean: Tensor | float, scale: Tensor | float, dims: int = 1) -> Float[Tensor, "*batch"]:
    """log N(x; mean, diag scale^2), summed over the last `dims` dimensions."""
    scale = torch.as_tensor(scale, dtype=x.dtype, device=x.device)
    away = (x - mean) / scale
    terms = -0.5 * away.square() - scale.log() - 0.5 * math.log(2 * math.pi)
    return terms.flatten(x.ndim - dims).sum(-1) if dims else terms


@final
class LatentNormal(Distribution):
    """log q(h, x) = log N(h; 0, I) + log N(x; m(h), diag s(h)^2) on the joint states z = (h, x), laid side by side.

    q(x) itself is not known in closed form; q(h, x) is, and so is q(h | x) up to log q(x), which is `posterior(x)`.
    `push(e)` maps noise e of the shape of z to x = m(e_h) + s(e_h) e_x: it is the T of a `Pullback` and carries gradients
    to the decoder.

    References: Kingma and Welling (2014), Auto-encoding variational Bayes; EBM-SLP, eq. 2.35.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import FixedScale, LatentNormal
        >>> q = LatentNormal(FixedScale(gb.models.perceptron(2, 3), 0.1), 2, 3)
        >>> h, x = q.split(q.sample(5, seed=0))
        >>> h.shape, x.shape
        (torch.Size([5, 2]), torch.Size([5, 3]))
    """

    def __init__(self, decoder: ConditionalNormal, latent: int, shape: int | Sequence[int]):
        super().__init__()
        self.decoder = instance(decoder, ConditionalNormal, "decoder", "; such as FixedScale(network, 0.1)")
        self.latent = Real(whole(latent, "latent"))
        self.observed = Real(tuple(shape) if isinstance(shape, Sequence) else shape)
        self.space = Real(latent + math.prod(self.observed.shape))

    def split(self, z: Float[Tensor, "*batch joint"]) -> tuple[Float[Tensor, "*batch latent"], Float[Tensor, "..."]]:
        """z as h and x."""
        h, x = z.split((self.latent.shape[0], z.shape[-1] - self.latent.shape[0]), -1)
        return h, x.unflatten(-1, self.observed.shape) if self.observed.shape else x[..., 0]

    def join(self, h: Tensor, x: Tensor) -> Float[Tensor, "*batch joint"]:
        """h and x as z."""
        return torch.cat((h, x.reshape(*h.shape[:-1], -1)), -1)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        h, x = self.split(x)
        return log_normal(h, 0.0, 1.0) + self.log_observed(h, x)

    def log_observed(self, h: Tensor, x: Tensor) -> Float[Tensor, "*batch"]:
        """log q(x | h)."""
        mean, scale = self.decoder(h)
        return log_normal(x, self._of_event(mean, h), scale, len(self.observed.shape))

    def _of_event(self, mean: Tensor, h: Tensor) -> Tensor:
        if mean.shape != (*h.shape[:-1], *self.observed.shape):
            raise ValueError(
                f"decoder: expected means of shape {(*h.shape[:-1], *self.observed.shape)}, got {tuple(mean.shape)}"
            )
        return mean

    def noise(self) -> Normal:
        """The law of the e that `push` takes."""
        return Normal.standard(self.space.shape, dtype=dtype_of(self)).to(device_of(self))

    def push(self, e: Float[Tensor, "*batch joint"]) -> Float[Tensor, "..."]:
        """x = m(e_h) + s(e_h) e_x."""
        h, e = self.split(e)
        mean, scale = self.decoder(h)
        return self._of_event(mean, h) + scale * e

    @torch.no_grad()
    def sample(self, n: int, *, seed: Seed) -> Float[Tensor, "n joint"]:
        source = random.generator(seed, device_of(self))
        e = random.normal((whole(n, "n", 0), *self.space.shape), source, dtype_of(self))
        return self.join(self.split(e)[0], self.push(e))

    def posterior(self, x: Float[Tensor, "chains *event"]) -> Model:
        """The model h -> log q(h, x) of q(h | x), one x a chain: its states are (chains, latent), in the order of x."""
        return _Posterior(self, x)


@final
class _Posterior(Model):
    """U(h) = log q(h, x) at given x."""

    def __init__(self, generator: LatentNormal, x: Tensor):
        super().__init__()
        self.generator, self.x, self.space = generator, x, generator.latent

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        return self.generator(self.generator.join(x, self.x.expand(*x.shape[:-1], *self.generator.observed.shape)))
