"""The n-gram model of label sequences, of which the denominators of random fields are composed."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...distributions import NGram, kneser_ney
from ...exact import Graph
from ...space import Tokens
from .alphabet import BLANK


def label_ngram(transcripts: Sequence[Int[Tensor, " labels"]], classes: int, order: int) -> NGram:
    """The n-gram model of transcripts; the blank, which is never a label, is the token that ends them."""
    ended = [torch.cat((labels, labels.new_full((1,), BLANK))) for labels in transcripts]
    padded = torch.nn.utils.rnn.pad_sequence(ended, batch_first=True, padding_value=BLANK)
    return kneser_ney(padded, Tokens(padded.shape[1], classes, BLANK), order=order)


def log_probability(
    ngram: NGram, labels: Int[Tensor, "batch most"], counts: Int[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """log p_LM of labels[b, :counts[b]] and of their end; counted on the CPU, where it is a compiled loop."""
    ended = torch.nn.functional.pad(labels.cpu(), (0, 1), value=BLANK)
    ended = ended.masked_fill(torch.arange(ended.shape[1]) >= counts.cpu()[:, None], BLANK)
    return ngram.of_length(ended.shape[1])(ended).to(labels.device)


@final
class Fixed:
    """A graph that is not learned: no part of a module's weights, it stays on the CPU and is copied once to a device."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._copies: dict[torch.device, Graph] = {}

    def on(self, device: torch.device) -> Graph:
        """The same on a device."""
        if device not in self._copies:
            self._copies[device] = self.graph.to(device)
        return self._copies[device]
