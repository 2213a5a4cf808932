"""The evidence lower bound of a generator with latent variables: the first stage of a VAEBM."""

from typing import final

from jaxtyping import Float, Shaped
from torch import Tensor

from .. import random
from ..check import instance
from ..distributions.conditional import ConditionalNormal
from ..distributions.latent import LatentNormal
from ..model import dtype_of
from ..random import Seed, Source
from .objective import Objective, Report


def elbo(
    generator: LatentNormal, encoder: ConditionalNormal, x: Shaped[Tensor, "batch *event"], *, seed: Seed
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """log q(x | h) at one h ~ r(h | x), and KL(r(h | x) || N(0, I)), whose difference has a mean of at most log q(x).

    r(h | x) = N(m(x), diag s(x)^2) is the encoder; h = m + s e carries gradients to it. The divergence is exact.

    References: Kingma and Welling (2014), Auto-encoding variational Bayes, eq. 10.
    """
    x = generator.observed.check(x, "x").to(dtype_of(generator))
    mean, scale = encoder(x)
    if mean.shape != (len(x), *generator.latent.shape):
        raise ValueError(f"encoder: expected means of shape {(len(x), *generator.latent.shape)}, got {tuple(mean.shape)}")
    h = mean + scale * random.normal(mean.shape, random.generator(seed, x.device), x.dtype)
    scale = scale.expand(mean.shape)
    divergence = 0.5 * (mean.square() + scale.square() - 1 - 2 * scale.log()).sum(-1)
    return generator.log_observed(h, x), divergence


@final
class ELBO(Objective):
    """-mean [log q(x | h) - KL(r(h | x) || N(0, I))], h ~ r(h | x): the generator and its encoder r are learned together.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import LatentNormal, OwnScale, SharedScale
        >>> generator = LatentNormal(SharedScale(gb.models.perceptron(2, 3, (16,))), 2, 3)
        >>> objective = gb.learn.ELBO(generator, OwnScale(gb.models.perceptron(3, 4, (16,))))
        >>> sorted(objective(torch.zeros(4, 3), seed=torch.Generator().manual_seed(0)).metrics)
        ['divergence', 'reconstruction']
    """

    def __init__(self, generator: LatentNormal, encoder: ConditionalNormal):
        super().__init__(instance(generator, LatentNormal, "generator").observed)
        self.generator = generator
        self.encoder = instance(encoder, ConditionalNormal, "encoder", "; such as OwnScale(network)")

    def forward(self, data: Tensor, *, seed: Source) -> Report:
        reconstruction, divergence = elbo(self.generator, self.encoder, data, seed=seed)
        metrics = {"reconstruction": reconstruction.detach().mean(), "divergence": divergence.detach().mean()}
        return Report((divergence - reconstruction).mean(), metrics)
