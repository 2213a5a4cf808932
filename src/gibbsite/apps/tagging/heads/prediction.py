"""The prediction network of transducers: an LSTM over the labels so far, a language model of labels."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ....random import Source
from ....space import whole
from ..layers import embedding, linear, lstm

Memory = tuple[Float[Tensor, "1 rows hidden"], Float[Tensor, "1 rows hidden"]]


@final
class Prediction(nn.Module):
    """g_t in R^K from y_0 .. y_(t-1), of which y_0 is a start symbol of its own: label vectors, an LSTM, a linear layer.

    `keep` (rows, 1, hidden) multiplies the LSTM's output: one dropout mask a sequence, so that a search and the loss on what
    it found see the same network.

    References: Graves (2012), Sequence transduction with recurrent neural networks; EBM-SLP, section 4.3.1.
    """

    def __init__(self, labels: int, size: int = 32, hidden: int = 64, *, source: Source):
        super().__init__()
        self.labels, self.hidden = whole(labels, "labels", 2), whole(hidden, "hidden")
        self.embedding = embedding(labels + 1, whole(size, "size"), source)
        self.recurrent = lstm(size, hidden, source)
        self.readout = linear(hidden, labels, source)

    def forward(
        self, labels: Int[Tensor, "rows places"], keep: Float[Tensor, "rows 1 hidden"] | None = None
    ) -> Float[Tensor, "rows places K"]:
        """g_1 .. g_T of whole label sequences y_1 .. y_T, the last of which nothing depends on."""
        start = labels.new_full((len(labels), 1), self.labels)
        return self._read(self.recurrent(self.embedding(torch.cat((start, labels[:, :-1]), 1)))[0], keep)

    def step(
        self, label: Int[Tensor, " rows"], memory: Memory | None, keep: Float[Tensor, "rows 1 hidden"] | None = None
    ) -> tuple[Float[Tensor, "rows K"], Memory]:
        """g_t from y_(t-1) and the memory of what came before (None: y_(t-1) is the start symbol, id K)."""
        hidden, after = self.recurrent(self.embedding(label[:, None]), memory)
        return self._read(hidden, keep)[:, 0], after

    def _read(self, hidden: Tensor, keep: Tensor | None) -> Tensor:
        return self.readout(hidden if keep is None else hidden * keep)
