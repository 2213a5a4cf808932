"""Negatives sampled in the space of the noise behind them: what a VAEBM learns from, and every flow or decoder can."""

from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn

from ..algebra import Pullback
from ..check import function, instance
from ..model import Distribution, Model
from ..random import Source
from .contrastive import Drawn, Negatives


@final
class Pushed(Negatives):
    """x = T(e), e from any source of negatives of `Pullback(noise, T, V)`, V the potential that is learned.

    The model is then q(x) exp V(x) / Z with q = T # noise, which is held fixed, and `Contrastive(V, Pushed(...))` maximises
    its likelihood. The source's chains stand in the space of e, where the noise has one scale, and so does its step size.
    With `Weighted(noise, n)` the draws are those of q and need no chain.

    References: Xiao et al. (2021), VAEBM, eq. 7 to 9.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import FixedScale, LatentNormal
        >>> generator = LatentNormal(FixedScale(gb.models.perceptron(2, 3), 0.1), 2, 3)
        >>> noise = generator.noise()
        >>> chains = gb.learn.Persistent(gb.sample.MALA(0.2), noise.sample(16, seed=0), steps=5)
        >>> objective = gb.learn.Contrastive(gb.models.MLP(gb.Real(3), (8,)), gb.learn.Pushed(chains, noise, generator.push))
        >>> sorted(objective(torch.zeros(4, 3), seed=torch.Generator().manual_seed(0)).metrics)
        ['acceptance', 'gap']
    """

    def __init__(self, source: Negatives, noise: Distribution, transform: Callable[[Tensor], Tensor]):
        super().__init__()
        self.source, self.noise = instance(source, Negatives, "source"), instance(noise, Distribution, "noise")
        self.transform = function(transform, "transform", "lambda e: decoder(e)")
        if isinstance(transform, nn.Module):
            transform.requires_grad_(False)

    def draw(self, model: Model, data: Any, *, seed: Source) -> Drawn:
        drawn = self.source.draw(Pullback(self.noise, self.transform, model), data, seed=seed)
        with torch.no_grad():
            return drawn._replace(x=self.transform(drawn.x))
