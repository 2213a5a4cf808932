"""Lattice-free MMI: the random field whose paths are those of hidden Markov models, with silence at both ends."""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...distributions import NGram
from ...exact import compose, decode, forward, hmm_topology, label_model, restrict
from .alphabet import BLANK
from .criterion import Criterion, forced, written
from .label_ngram import Fixed, label_ngram


@final
class HMMRandomField(Criterion):
    """p(y | x) with two columns of scores a label, for its first frame and for any more, and no blank.

    Silence is a label of its own, the last; transcripts begin and end with it, and it is left out of what is recognised.
    p_LM is an n-gram of the training transcripts.

    References: Povey et al. (2016), Purely sequence-trained neural networks for ASR based on lattice-free MMI; Hadian et al.
        (2018), End-to-end speech recognition using lattice-free MMI.
    """

    def __init__(self, classes: int, transcripts: Sequence[Int[Tensor, " labels"]], order: int = 4):
        super().__init__(2 * (classes + 1))
        self.order, self.silence = order, classes
        framed = [self._framed(labels) for labels in transcripts]
        self._language = (label_ngram(framed, classes + 1, order),)  # in a tuple: no part of the weights
        self.denominator = Fixed(compose(hmm_topology(classes + 1), label_model(self.ngram)))

    def _framed(self, labels: Int[Tensor, " labels"]) -> Int[Tensor, " more"]:
        end = labels.new_full((1,), self.silence)
        return torch.cat((end, labels, end))

    @property
    def ngram(self) -> NGram:
        """The n-gram of labels."""
        return self._language[0]

    def needed(self, labels: Tensor) -> int:
        return len(labels) + 2

    def forward(self, scores: Tensor, frames: Tensor, labels: Tensor, counts: Tensor) -> Float[Tensor, " batch"]:
        framed = torch.nn.functional.pad(labels, (1, 1), value=BLANK)
        framed[:, 0] = self.silence
        framed = framed.scatter(1, counts[:, None] + 1, self.silence)
        given = restrict(
            self.denominator.graph, framed.cpu(), counts.cpu() + 2
        )  # few arcs: summed on the CPU by compiled loops
        paths = forward(given, scores.cpu(), frames.cpu()).to(scores.device)
        loss = forward(self.denominator.on(scores.device), scores, frames) - paths
        return torch.where(paths > -torch.inf, loss, torch.inf).to(scores.dtype)

    def best(self, scores: Tensor, frames: Tensor) -> list[list[int]]:
        found = written(self.denominator.graph, scores, frames)
        return [[label for label in labels if label != self.silence] for labels in found]

    def listed(self, scores: Tensor, count: int, beam: int) -> list[tuple[list[int], float]]:
        found = dict[tuple[int, ...], float]()
        for each in decode(self.denominator.graph, scores[None].cpu(), torch.tensor([len(scores)]), max(beam, count))[0]:
            labels = tuple(label for label in each.labels if label != self.silence)
            found[labels] = float(np.logaddexp(found.get(labels, -np.inf), each.log_p))
        return [(list(labels), found[labels]) for labels in sorted(found, key=lambda y: -found[y])[:count]]

    def aligned(self, scores: Tensor, labels: Tensor) -> Int[Tensor, " frames"]:
        graph = restrict(self.denominator.graph, self._framed(labels)[None].cpu(), torch.tensor([len(labels) + 2]))
        said = forced(graph, scores) // 2
        return torch.where(said == self.silence, BLANK, said)
