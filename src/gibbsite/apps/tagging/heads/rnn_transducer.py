"""The RNN transducer with one label a place: normalised at every place, with the whole label history behind it."""

from collections.abc import Mapping
from typing import Any, Self, final

from jaxtyping import Bool, Float, Int
from torch import Tensor

from ....random import Source
from .beam import sequence_scores
from .head import Losses, any_source
from .potentials import Local, Potentials
from .transducer import Transducer


@final
class RNNTransducer(Transducer):
    """p(y | x) = prod_t softmax(f_t + g_t(y_0 .. y_(t-1)))[y_t].

    log p of a given sequence is exact; the search for the best sequences is a beam's.

    References: Graves (2012), Sequence transduction with recurrent neural networks; EBM-SLP, eq. 4.28 and 4.29.

    Example:
        >>> import torch
        >>> from gibbsite.apps.tagging.heads import RNNTransducer
        >>> head = RNNTransducer(size=6, labels=3, source=torch.Generator().manual_seed(0))
        >>> features, mask = torch.zeros(2, 4, 6), torch.ones(2, 4, dtype=torch.bool)
        >>> head.best(features, mask, count=5).labels.shape
        torch.Size([2, 5, 4])
    """

    def __init__(self, size: int, labels: int, *, hidden: int = 64, dropout: float = 0.0, width: int = 8, source: Source):
        super().__init__(size, labels, hidden, dropout, width, source)

    @property
    def potentials(self) -> Potentials:
        return Local()

    def log_share(self, scores: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
        return scores

    def loss(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
        *,
        source: Source | None,
    ) -> Losses:
        f, lengths = self.aligned(features, mask)
        gold, keep = self.gold(labels, mask)[:, None], self.keep(f, source)
        return Losses(-sequence_scores(f, gold, lengths, self.prediction, Local(), keep=keep)[:, 0])

    def log_p(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
    ) -> Float[Tensor, " batch"]:
        return -self.loss(features, mask, labels, source=None).values

    def settings(self) -> dict[str, Any]:
        return self.sizes()

    @classmethod
    def restored(cls, settings: Mapping[str, Any], size: int, labels: int) -> Self:
        return cls(size, labels, **settings, source=any_source())
