"""The maximum-likelihood gradient: data against negatives, wherever the negatives come from."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, final

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from ..check import instance
from ..model import Model, as_model
from ..random import Source
from ..space import Space
from .compiled import potentials
from .objective import Objective, Report


class Drawn(NamedTuple):
    """Negatives with their log-weights (None: all alike), what their source has to learn itself, and how they were got."""

    x: Shaped[Tensor, "negatives *event"]
    log_weight: Float[Tensor, " negatives"] | None = None
    loss: Float[Tensor, ""] | None = None
    acceptance: Float[Tensor, ""] | None = None


class Negatives(nn.Module, ABC):
    """Where negatives come from; chains and counts are buffers, so that they are saved with the model."""

    @abstractmethod
    def draw(self, model: Model, data: Shaped[Tensor, "batch *event"], *, seed: Source) -> Drawn:
        """Negatives for one update, without a graph to the model."""


def contrastive(
    model: Model,
    data: Shaped[Tensor, "batch *event"],
    negatives: Shaped[Tensor, "negatives *event"],
    log_weight: Float[Tensor, " negatives"] | None = None,
) -> Float[Tensor, ""]:
    """E_negatives U - E_data U: its gradient is that of -log p(data) when the negatives are draws of p.

    With log-weights the first mean is self-normalised, sum_j w_j U(x_j) / sum_j w_j.

    References: Hinton (2002), Training products of experts; EBM-SLP, eq. 2.19 and 2.30.
    """
    u, at_data = potentials(model, negatives, data)
    expected = u.mean() if log_weight is None else (log_weight.softmax(0) * u).sum()
    return expected - at_data.mean()


@final
class Contrastive(Objective):
    """Maximum likelihood with negatives from a source: CD, PCD, inclusive-NRF, importance sampling.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.RBM(16, 4, seed=0)
        >>> kernel = gb.sample.BlockGibbs()
        >>> start = model.space.uniform()
        >>> chains = gb.learn.Persistent(kernel, start.sample(32, seed=0), steps=5)
        >>> objective = gb.learn.Contrastive(model, chains)
    """

    def __init__(self, model: Callable[[Tensor], Tensor], negatives: Negatives, *, space: Space | None = None):
        whole = as_model(model, space)
        super().__init__(whole.space)
        self.model, self.negatives = whole, instance(negatives, Negatives, "negatives")

    def forward(self, data: Any, *, seed: Source) -> Report:
        drawn = self.negatives.draw(self.model, data, seed=seed)
        loss = contrastive(self.model, data, drawn.x, drawn.log_weight)
        metrics = {"gap": loss.detach()}
        if drawn.log_weight is not None:
            metrics["ess"] = 1 / drawn.log_weight.detach().softmax(0).square().sum()
        if drawn.acceptance is not None:
            metrics["acceptance"] = drawn.acceptance
        if drawn.loss is not None:
            metrics["source_loss"] = drawn.loss.detach()
            loss = loss + drawn.loss
        return Report(loss, metrics)
