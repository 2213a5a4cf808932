"""What transducers share: two networks, the search for the best sequences, and what a beam says of single labels."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ....check import number
from ....exact.chain_masks import Layout
from ....random import Source
from ....space import whole
from ..layers import kept, linear
from .beam import Found, search
from .head import Best, Head
from .potentials import Potentials
from .prediction import Prediction


class Transducer(Head, ABC):
    """A transcription vector f_t of the features at t, and a prediction vector g_t of the labels before it.

    `marginals` are shares of what the beam holds, weighted by their scores: approximate, and too sure of themselves.
    """

    def __init__(self, size: int, labels: int, hidden: int, dropout: float, width: int, source: Source):
        super().__init__()
        self.labels, self.width = whole(labels, "labels", 2), whole(width, "width")
        self.dropout = number(dropout, "dropout", least=0, below=1)
        self.transcription = linear(size, labels, source)
        self.prediction = Prediction(labels, hidden=hidden, source=source)

    @property
    @abstractmethod
    def potentials(self) -> Potentials:
        """How f and g make scores."""

    @abstractmethod
    def log_share(self, scores: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
        """log p(y | x), or what comes nearest to it, of hypotheses with these scores."""

    def sizes(self) -> dict[str, Any]:
        """What such a head is made with, as JSON values."""
        return {"hidden": self.prediction.hidden, "dropout": self.dropout, "width": self.width}

    def aligned(
        self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> tuple[Float[Tensor, "batch places K"], Int[Tensor, " batch"]]:
        """f with the places of the mask first, and their numbers."""
        layout = Layout.of(mask)
        return self.transcription(layout.compact_rows(features)), layout.lengths

    def gold(self, labels: Int[Tensor, "batch places"], mask: Bool[Tensor, "batch places"]) -> Int[Tensor, "batch places"]:
        """Given labels in the order of `aligned`, 0 beyond the end."""
        return Layout.of(mask).compact(torch.where(mask, labels, 0))

    def keep(self, f: Tensor, source: Source | None) -> Tensor | None:
        """What is dropped of the prediction network, the same for all label sequences of a sentence."""
        return kept((len(f), 1, self.prediction.hidden), self.dropout, source, f)

    def best(self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"], count: int = 1) -> Best:
        """The best that a beam search finds, at least `width` wide."""
        found = self._found(features, mask, max(whole(count, "count"), self.width))
        return Best(_spread(found.labels[:, :count], mask), self.log_share(found.scores)[:, :count])

    def marginals(
        self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> Float[Tensor, "batch places K"]:
        found = self._found(features, mask, self.width)
        labels, share = _spread(found.labels, mask), found.scores.softmax(-1)
        shares = share[:, None, :, None] * torch.nn.functional.one_hot(labels.transpose(1, 2), self.labels)
        return shares.sum(2) * mask[..., None]

    @torch.no_grad()
    def _found(self, features: Tensor, mask: Tensor, width: int) -> Found:
        f, lengths = self.aligned(features, mask)
        return search(f, lengths, self.prediction, self.potentials, width)


def _spread(labels: Int[Tensor, "batch n places"], mask: Bool[Tensor, "batch places"]) -> Int[Tensor, "batch n places"]:
    """Labels in the order of `aligned`, back where they came from."""
    return Layout.of(mask).spread(labels.movedim(1, 0)).movedim(0, 1)
