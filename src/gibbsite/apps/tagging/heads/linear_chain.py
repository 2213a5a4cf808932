"""The linear-chain CRF: labels that depend on their neighbours, all sums exact."""

from collections.abc import Mapping
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ....exact.linear_chain import LinearChain
from ....random import Source
from ....space import whole
from ..layers import linear
from .head import Best, Head, Losses, any_source


@final
class LinearChainCRF(Head):
    """p(y | x) = exp(sum_t f_t[y_t] + A[y_(t-1), y_t]) / Z(x), with f_t = W h_t + b, and scores of the first and last label.

    `chain(features, mask)` is that law, a `gibbsite.exact.LinearChain`: whatever that can be asked, this head can.

    References: Lafferty, McCallum and Pereira (2001); Lample et al. (2016); EBM-SLP, section 4.1.1.
    """

    def __init__(self, size: int, labels: int, *, source: Source):
        super().__init__()
        self.labels = whole(labels, "labels", 2)
        self.readout = linear(size, labels, source)
        self.edge = nn.Parameter(torch.zeros(labels, labels))
        self.start, self.end = nn.Parameter(torch.zeros(labels)), nn.Parameter(torch.zeros(labels))

    def chain(self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]) -> LinearChain:
        """The law of the label sequences of these sentences."""
        return LinearChain(self.readout(features), self.edge, start=self.start, end=self.end, mask=mask)

    def loss(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
        *,
        source: Source | None,
    ) -> Losses:
        return Losses(-self.chain(features, mask)(labels))

    def log_p(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
    ) -> Float[Tensor, " batch"]:
        return self.chain(features, mask)(labels)

    @torch.no_grad()
    def best(self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"], count: int = 1) -> Best:
        """The `count` most probable sequences, exactly, by Viterbi's algorithm."""
        best = self.chain(features, mask).n_best(count)
        return Best(best.labels.transpose(0, 1), best.log_prob.T)

    def marginals(
        self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> Float[Tensor, "batch places K"]:
        return self.chain(features, mask).marginals()

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restored(cls, settings: Mapping[str, Any], size: int, labels: int) -> Self:
        return cls(size, labels, source=any_source())
