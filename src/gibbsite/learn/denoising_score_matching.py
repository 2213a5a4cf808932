"""Denoising score matching: the score of data with noise points back to the data."""

from typing import final

from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import number
from ..local import score
from ..model import Model
from ..random import Seed, Source
from .objective import Objective, Report
from .score_matching import real


def denoising_score_matching(
    model: Model, data: Float[Tensor, "batch *event"], scale: float, *, seed: Seed
) -> Float[Tensor, ""]:
    """E |s(y) - (x - y) / scale^2|^2 / 2, y = x + scale e, e ~ N(0, I): up to a constant E |s - s_y|^2 / 2.

    What is learned is the density of y: that of the data blurred by N(0, scale^2).

    References: Vincent (2011), A connection between score matching and denoising autoencoders.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.Potential(lambda x: -0.5 * x.square().sum(-1), gb.Real(2))
        >>> gb.learn.denoising_score_matching(model, torch.zeros(5, 2), 1.0, seed=0).item()    # s is then -e exactly
        0.0
    """
    scale, x = number(scale, "scale", above=0), real(model).space.check(data, "data")
    noise = random.normal(x.shape, random.generator(seed, x.device), x.dtype)
    _, s = score(model, x + scale * noise, graph=True)
    return 0.5 * (s + noise / scale).flatten(1).square().sum(1).mean()


@final
class DenoisingScoreMatching(Objective):
    """Denoising score matching at one scale of noise, drawn anew at each step."""

    def __init__(self, model: Model, scale: float):
        super().__init__(real(model).space)
        self.model, self.scale = model, number(scale, "scale", above=0)

    def forward(self, data: Float[Tensor, "batch *event"], *, seed: Source) -> Report:
        return Report(denoising_score_matching(self.model, data, self.scale, seed=seed))
