"""Bidirectional LSTM layers over stacked frames."""

from typing import final

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ...random import Source
from .encoder import Encoder, dropped, stacked


@final
class BiLSTM(Encoder):
    """`layers` bidirectional LSTMs of `cells` cells in either direction, over each `subsample` frames as one.

    References: Graves, Fernandez, Gomez and Schmidhuber (2006), Connectionist temporal classification.
    """

    def __init__(self, size: int, cells: int = 128, layers: int = 2, subsample: int = 3, dropout: float = 0.2):
        super().__init__(2 * cells, subsample)
        widths = [size * subsample, *[2 * cells] * (layers - 1)]
        self.layers = nn.ModuleList([nn.LSTM(width, cells, batch_first=True, bidirectional=True) for width in widths])
        self.dropout = dropout

    def forward(
        self, features: Float[Tensor, "batch frames size"], lengths: Int[Tensor, " batch"], source: Source | None = None
    ) -> Float[Tensor, "batch fewer width"]:
        hidden = stacked(features, self.subsample)
        count, frames = hidden.shape[1], self.frames(lengths).cpu()
        for layer in self.layers:
            packed = pack_padded_sequence(hidden, frames, batch_first=True, enforce_sorted=False)
            hidden, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=count)
            hidden = dropped(hidden, self.dropout, source)
        return hidden
