"""Every label by itself: a softmax at each place."""

from collections.abc import Mapping
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ....exact.linear_chain import LinearChain
from ....random import Source
from ....space import whole
from ..layers import linear
from .head import Best, Head, Losses, any_source


@final
class Softmax(Head):
    """p(y | x) = prod_t softmax(f_t)[y_t], f_t = W h_t + b: labels are independent given the sentence."""

    def __init__(self, size: int, labels: int, *, source: Source):
        super().__init__()
        self.labels = whole(labels, "labels", 2)
        self.readout = linear(size, labels, source)

    def loss(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
        *,
        source: Source | None,
    ) -> Losses:
        return Losses(-self.log_p(features, mask, labels))

    def log_p(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
    ) -> Float[Tensor, " batch"]:
        index = torch.where(mask, labels, 0)[..., None]
        return torch.where(mask, self.readout(features).log_softmax(-1).gather(-1, index)[..., 0], 0.0).sum(-1)

    @torch.no_grad()
    def best(self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"], count: int = 1) -> Best:
        """The `count` most probable sequences, exactly: those of a linear chain whose edges are all 0."""
        edge = features.new_zeros(self.labels, self.labels)
        best = LinearChain(self.readout(features), edge, mask=mask).n_best(count)
        return Best(best.labels.transpose(0, 1), best.log_prob.T)

    def marginals(
        self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> Float[Tensor, "batch places K"]:
        return self.readout(features).softmax(-1) * mask[..., None]

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restored(cls, settings: Mapping[str, Any], size: int, labels: int) -> Self:
        return cls(size, labels, source=any_source())
