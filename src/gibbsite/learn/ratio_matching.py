"""Ratio matching: score matching's counterpart on discrete sites."""

from typing import final

from jaxtyping import Float, Int
from torch import Tensor

from ..model import Model
from ..random import Source
from .objective import Objective, Report
from .pseudo_likelihood import conditionals, current, discrete


def ratio_matching(model: Model, data: Int[Tensor, "batch *event"]) -> Float[Tensor, ""]:
    """E_data sum_i sum_k (p(x_i = k | the rest) - [x_i = k])^2 / 2.

    On bits that is Hyvarinen's sum_i g(p(x) / p(x with bit i flipped))^2, g(u) = 1 / (1 + u). On more states it is the
    quadratic score of the conditionals, which is least where they are those of the data.

    References: Hyvarinen (2007), Some extensions of score matching, eq. 17; Brier (1950).

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(3, coupling=0.0)
        >>> gb.learn.ratio_matching(model, model.space.uniform().sample(4, seed=0)).item()   # 9 (1 / 2)^2
        2.25
    """
    p = conditionals(model, data).exp()
    own = p.gather(-1, current(discrete(model), data, None)[..., None])[..., 0]
    return 0.5 * (p.square().sum(-1) - 2 * own + 1).sum(1).mean()


@final
class RatioMatching(Objective):
    """Ratio matching over all sites: bounded for each site, so that a few odd examples weigh little."""

    def __init__(self, model: Model):
        super().__init__(discrete(model))
        self.model = model

    def forward(self, data: Int[Tensor, "batch *event"], *, seed: Source) -> Report:
        return Report(ratio_matching(self.model, data))
