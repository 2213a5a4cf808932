"""A penalty on the size of U at data and negatives, which keeps its free constant and its slope from running away."""

from typing import final

from jaxtyping import Float, Shaped
from torch import Tensor

from ..check import instance, number
from ..model import Model
from ..random import Source
from .contrastive import Drawn, Negatives


def energy_magnitude(model: Model, *states: Shaped[Tensor, "batch *event"]) -> Float[Tensor, ""]:
    """The sum over batches of the mean of U^2.

    References: Du and Mordatch (2019), Implicit generation and generalization in energy-based models.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.Potential(lambda x: x.sum(-1), gb.Real(2))
        >>> gb.learn.energy_magnitude(model, torch.ones(3, 2), torch.zeros(5, 2)).item()
        4.0
    """
    if not states:
        raise ValueError("states: expected at least one batch, got none")
    total = model(states[0]).square().mean()
    for x in states[1:]:
        total = total + model(x).square().mean()
    return total


@final
class Bounded(Negatives):
    """Negatives of a source, with weight (E_data U^2 + E_negatives U^2) added to the loss of `Contrastive`."""

    def __init__(self, negatives: Negatives, weight: float):
        super().__init__()
        self.negatives, self.weight = instance(negatives, Negatives, "negatives"), number(weight, "weight", least=0)

    def draw(self, model: Model, data: Shaped[Tensor, "batch *event"], *, seed: Source) -> Drawn:
        drawn = self.negatives.draw(model, data, seed=seed)
        penalty = self.weight * energy_magnitude(model, data, drawn.x)
        return drawn._replace(loss=penalty if drawn.loss is None else drawn.loss + penalty)
