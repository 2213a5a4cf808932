"""The random field with CTC's topology: label bigrams, trigrams, ... enter the sum over paths."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ...distributions import NGram
from ...exact import compose, ctc_graphs, ctc_topology, forward, label_model
from .alphabet import BLANK
from .criterion import Criterion, forced, frames_needed, searched, written
from .label_ngram import Fixed, label_ngram, log_probability


@final
class CTCRandomField(Criterion):
    """p(y | x) = sum_(pi -> y) exp(phi(pi, x)) / sum_pi exp(phi(pi, x)), phi = log p_LM(B(pi)) + sum_t log p(pi_t | x).

    EBM-SLP, eq. 4.21 and 4.22; p_LM is an n-gram of the training transcripts. With `ctc_weight` c the loss is
    -log p(y | x) - c log p_CTC(y | x). The denominator is a sum over the paths of a graph; the numerator needs none, for
    p_LM is the same on all paths of y: it is log p_LM(y) less the loss of CTC.

    References: Xiang and Ou (2019), CRF-based single-stage acoustic modeling with CTC topology.
    """

    def __init__(self, classes: int, transcripts: Sequence[Int[Tensor, " labels"]], order: int = 4, ctc_weight: float = 0.0):
        super().__init__(classes)
        self.order, self.ctc_weight = order, ctc_weight
        self._language = (label_ngram(transcripts, classes, order),)  # in a tuple: no part of the weights
        self.denominator = Fixed(compose(ctc_topology(classes), label_model(self.ngram)))

    @property
    def ngram(self) -> NGram:
        """The n-gram of labels."""
        return self._language[0]

    def needed(self, labels: Tensor) -> int:
        return frames_needed(labels)

    def forward(self, scores: Tensor, frames: Tensor, labels: Tensor, counts: Tensor) -> Float[Tensor, " batch"]:
        log_p = scores.log_softmax(-1)
        paths = functional.ctc_loss(log_p.double().transpose(0, 1), labels, frames, counts, blank=BLANK, reduction="none")
        said = log_probability(self.ngram, labels, counts)
        loss = forward(self.denominator.on(scores.device), log_p, frames) - said + (1 + self.ctc_weight) * paths
        return loss.to(scores.dtype)

    def best(self, scores: Tensor, frames: Tensor) -> list[list[int]]:
        return written(self.denominator.graph, scores.log_softmax(-1), frames)

    def listed(self, scores: Tensor, count: int, beam: int) -> list[tuple[list[int], float]]:
        log_p, length = scores.log_softmax(-1), torch.tensor([len(scores)])
        log_z = float(forward(self.denominator.on(scores.device), log_p[None], length))
        found = searched(log_p, count, beam, self.ngram)
        return [(list(each.labels), each.score - log_z) for each in found]

    def aligned(self, scores: Tensor, labels: Tensor) -> Int[Tensor, " frames"]:
        return forced(ctc_graphs(labels[None].cpu(), torch.tensor([len(labels)])), scores)
