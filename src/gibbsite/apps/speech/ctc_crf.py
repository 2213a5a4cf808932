"""The random field with CTC's topology: label bigrams, trigrams, ... enter the sum over paths."""

from collections.abc import Sequence
from typing import final

from jaxtyping import Float, Int
from torch import Tensor

from ...exact import CTCCRF, compose, ctc_topology, label_model
from .best_path import best_path
from .criterion import Criterion, forced, frames_needed
from .label_ngram import label_ngram


@final
class CTCRandomField(Criterion):
    """p(y | x) = sum_(pi -> y) exp(phi(pi, x)) / sum_pi exp(phi(pi, x)), phi = log p_LM(B(pi)) + sum_t log p(pi_t | x).

    EBM-SLP, eq. 4.21 and 4.22; p_LM is an n-gram of the training transcripts. With `ctc_weight` c the loss is
    -log p(y | x) - c log p_CTC(y | x).

    References: Xiang and Ou (2019), CRF-based single-stage acoustic modeling with CTC topology.
    """

    def __init__(self, classes: int, transcripts: Sequence[Int[Tensor, " labels"]], order: int = 4, ctc_weight: float = 0.0):
        super().__init__(classes)
        self.order, self.ngram = order, label_ngram(transcripts, classes, order)
        self.field = CTCCRF(compose(ctc_topology(classes), label_model(self.ngram)), ctc_weight=ctc_weight)

    def needed(self, labels: Tensor) -> int:
        return frames_needed(labels)

    def forward(self, scores: Tensor, frames: Tensor, labels: Tensor, counts: Tensor) -> Float[Tensor, " batch"]:
        return self.field(scores.log_softmax(-1), labels, frames, counts)

    def best(self, scores: Tensor) -> list[int]:
        graph = self.field.denominator
        written = graph.output.to(scores.device)[best_path(graph, scores)]
        return written[written >= 0].tolist()

    def aligned(self, scores: Tensor, labels: Tensor) -> Int[Tensor, " frames"]:
        return forced(scores, labels)
