"""The n-gram model of label sequences, of which the denominators of random fields are composed."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from ...distributions import NGram, kneser_ney
from ...space import Tokens
from .alphabet import BLANK


def label_ngram(transcripts: Sequence[Int[Tensor, " labels"]], classes: int, order: int) -> NGram:
    """The n-gram model of transcripts; the blank, which is never a label, is the token that ends them."""
    ended = [torch.cat((labels, labels.new_full((1,), BLANK))) for labels in transcripts]
    padded = torch.nn.utils.rnn.pad_sequence(ended, batch_first=True, padding_value=BLANK)
    return kneser_ney(padded, Tokens(padded.shape[1], classes, BLANK), order=order)
