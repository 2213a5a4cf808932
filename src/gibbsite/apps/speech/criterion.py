"""What a loss of label sequences is, and connectionist temporal classification."""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ...distributions import NGram
from ...exact import EPSILON, Graph, GraphBatch, Hypothesis, best_paths, ctc_graphs, prefix_beam_search
from .alphabet import BLANK


class Criterion(nn.Module, ABC):
    """-log p(y | x) of each utterance from the scores of its frames; `classes` is how many scores a frame needs."""

    def __init__(self, classes: int):
        super().__init__()
        self.classes = classes

    @abstractmethod
    def needed(self, labels: Int[Tensor, " labels"]) -> int:
        """The fewest frames that can carry these labels."""

    @abstractmethod
    def forward(
        self, scores: Float[Tensor, "batch frames classes"], frames: Int[Tensor, " batch"],
        labels: Int[Tensor, "batch most"], counts: Int[Tensor, " batch"],
    ) -> Float[Tensor, " batch"]:  # fmt: skip
        """-log p(y | x) in nats; +inf where the frames are too few."""

    @abstractmethod
    def best(self, scores: Float[Tensor, "batch frames classes"], frames: Int[Tensor, " batch"]) -> list[list[int]]:
        """The labels of each utterance's most probable path."""

    @abstractmethod
    def listed(self, scores: Float[Tensor, "frames classes"], count: int, beam: int) -> list[tuple[list[int], float]]:
        """The most probable label sequences that a search with so wide a beam finds, each with log p(y | x), best first."""

    @abstractmethod
    def aligned(self, scores: Float[Tensor, "frames classes"], labels: Int[Tensor, " labels"]) -> Int[Tensor, " frames"]:
        """The class of each frame on the most probable path of these labels."""


@final
class CTC(Criterion):
    """p(y | x) = sum over paths pi that map to y of prod_t softmax(scores_t)_(pi_t) (EBM-SLP, eq. 4.17 and 4.18).

    References: Graves et al. (2006), Connectionist temporal classification.
    """

    def needed(self, labels: Tensor) -> int:
        return frames_needed(labels)

    def forward(self, scores: Tensor, frames: Tensor, labels: Tensor, counts: Tensor) -> Float[Tensor, " batch"]:
        log_p = scores.log_softmax(-1).transpose(0, 1)
        return functional.ctc_loss(log_p, labels, frames, counts, blank=BLANK, reduction="none")

    def best(self, scores: Tensor, frames: Tensor) -> list[list[int]]:
        return [collapsed(path[:count]) for path, count in zip(scores.argmax(-1).tolist(), frames.tolist())]

    def listed(self, scores: Tensor, count: int, beam: int) -> list[tuple[list[int], float]]:
        found = searched(scores.log_softmax(-1), count, beam)
        return [(list(each.labels), each.log_ctc) for each in found]

    def aligned(self, scores: Tensor, labels: Tensor) -> Int[Tensor, " frames"]:
        return forced(ctc_graphs(labels[None].cpu(), torch.tensor([len(labels)])), scores)


def searched(
    log_p: Float[Tensor, "frames classes"], count: int, beam: int, language: NGram | None = None
) -> list[Hypothesis]:
    """Prefix beam search of one utterance, with log p_LM added if there is a language model."""
    lengths = torch.tensor([len(log_p)])
    options = {"beam": max(beam, count), "n_best": count, "blank": BLANK, "language_model": language}
    return prefix_beam_search(log_p[None].cpu(), lengths, **options)[0]


def frames_needed(labels: Int[Tensor, " labels"]) -> int:
    """One frame a label, and a blank between equal neighbours."""
    return len(labels) + int((labels[1:] == labels[:-1]).sum())


def collapsed(path: list[int]) -> list[int]:
    """The labels of a path: repetitions count once, blanks are left out.

    Example:
        >>> from gibbsite.apps.speech.criterion import collapsed
        >>> collapsed([0, 3, 3, 0, 1, 1, 0, 1, 0])
        [3, 1, 1]
    """
    return [here for before, here in zip([BLANK, *path], path) if here not in (BLANK, before)]


def written(graph: Graph, scores: Float[Tensor, "batch frames columns"], frames: Int[Tensor, " batch"]) -> list[list[int]]:
    """The labels that the best path of a graph writes, for each utterance; none where there is no path."""
    arcs = best_paths(graph, scores.cpu(), frames.cpu()).arcs[:, 0]
    output = torch.cat((graph.output, torch.tensor([EPSILON])))  # the last stands for no arc
    return [[label for label in row if label != EPSILON] for row in output[arcs].tolist()]


def forced(graph: GraphBatch, scores: Float[Tensor, "frames classes"]) -> Int[Tensor, " frames"]:
    """The classes on the best path of the graph of one utterance's labels."""
    (arcs,) = best_paths(graph, scores[None].cpu(), torch.tensor([len(scores)])).arcs[0]
    return graph.label.cpu()[arcs]
