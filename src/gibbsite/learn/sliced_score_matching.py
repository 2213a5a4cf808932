"""Sliced score matching: the trace of the second derivatives along random directions."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..model import Model
from ..random import Seed, Source
from ..space import whole
from .objective import Objective, Report
from .score_matching import directional, real, with_score


def sliced_score_matching(
    model: Model, data: Float[Tensor, "batch *event"], slices: int = 1, *, seed: Seed
) -> Float[Tensor, ""]:
    """E_data |s|^2 / 2 + E_v v.(ds/dx)v, s = dU/dx, with `slices` directions v of random signs for each example.

    E_v v v^T is the identity, so that the mean is that of `score_matching` (the variance-reduced form of the reference).

    References: Song, Garg, Shi and Ermon (2019), Sliced score matching, eq. 8; Hutchinson (1989).

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.Potential(lambda x: -0.5 * x.square().sum(-1), gb.Real(2))
        >>> gb.learn.sliced_score_matching(model, torch.tensor([[1.0, 2.0]]), seed=0).item()
        0.5
    """
    x, s = with_score(model, data)
    source = random.generator(seed, x.device)
    trace = torch.zeros_like(s[:, 0])
    for _ in range(whole(slices, "slices")):
        trace = trace + directional(x, s, 2.0 * random.integers(2, s.shape, source).to(s) - 1)
    return (0.5 * s.square().sum(1) + trace / slices).mean()


@final
class SlicedScoreMatching(Objective):
    """Sliced score matching: `slices` differentiations a step, however many entries a state has."""

    def __init__(self, model: Model, slices: int = 1):
        super().__init__(real(model).space)
        self.model, self.slices = model, whole(slices, "slices")

    def forward(self, data: Float[Tensor, "batch *event"], *, seed: Source) -> Report:
        return Report(sliced_score_matching(self.model, data, self.slices, seed=seed))
