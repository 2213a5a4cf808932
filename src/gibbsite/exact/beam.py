"""Decoding of CTC: prefix beam search, with any language model, and lists of the best label sequences."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._fast import prefix_beam as loops
from ..check import number
from ..distributions import Autoregressive, Stepwise
from ..space import whole
from .beam_language import Language, Scorer, fused
from .graph import check_lengths


@final
@dataclass(frozen=True)
class Hypothesis:
    """A label sequence and its score, log_ctc + weight log_language + bonus len(labels)."""

    labels: tuple[int, ...]
    score: float
    log_ctc: float
    log_language: float


@torch.no_grad()
def prefix_beam_search(
    log_probs: Float[Tensor, "batch frames vocabulary"],
    lengths: Int[Tensor, " batch"],
    *,
    beam: int,
    blank: int = 0,
    language_model: Stepwise | Autoregressive | Scorer | None = None,
    weight: float = 1.0,
    bonus: float = 0.0,
    n_best: int = 1,
    labels: int | None = None,
    margin: float = math.inf,
) -> list[list[Hypothesis]]:
    """The label sequences y of each utterance with the largest scores found, best first.

        score(y) = log sum over alignments a of y of prod_t p_t(a_t) + weight log p_LM(y) + bonus |y|

    The sum is over all alignments whose prefixes stay in the beam, time step by time step: with a beam that no sequence
    leaves it is over all of them, and the answer exact. Otherwise what is found is no less probable than said. A prefix is
    ranked by its score without the end of the sequence; p_LM(y) includes the end, when the utterance has.

    `language_model` is an `NGram`, or any distribution over tokens with steps, whose ids are the columns of log_probs and
    whose eos is the blank; an `Autoregressive` of the same kind, which reads each prefix once, as a whole; or a function
    from a list of prefixes to log p(next label | prefix), (prefixes, vocabulary), with that of the end in the blank's
    column. `labels` is how many labels besides the blank are looked at in a frame, the most
    probable ones (None: all); prefixes whose score is more than `margin` below the best are left out. A list is
    shorter than `n_best`, or empty, where no more sequences have a score above -inf.

    Columns need not be normalised. Work is on the CPU, an utterance at a time, in a compiled loop over the beam.

    References: Graves and Jaitly (2014), Towards end-to-end speech recognition with recurrent neural networks; Hannun et al.
        (2014), First-pass large vocabulary continuous speech recognition using bi-directional recurrent DNNs.

    Example:
        >>> import math, torch, gibbsite as gb
        >>> log_probs = torch.tensor([[[0.4, 0.6], [0.6, 0.4]]]).log()
        >>> best, = gb.exact.prefix_beam_search(log_probs, torch.tensor([2]), beam=4, n_best=2)
        >>> [(h.labels, round(math.exp(h.log_ctc), 4)) for h in best]  # 10, 01, 11; 00
        [((1,), 0.76), ((), 0.24)]
    """
    if log_probs.ndim != 3 or not log_probs.is_floating_point():
        got = f"{str(log_probs.dtype).removeprefix('torch.')} {tuple(log_probs.shape)}"
        raise ValueError(f"log_probs: expected floats of shape (batch, frames, vocabulary), got {got}")
    vocabulary = log_probs.shape[2]
    check_lengths(lengths, "lengths", len(log_probs), log_probs.shape[1])
    if whole(blank, "blank", 0) >= vocabulary:
        raise ValueError(f"blank: expected a column in [0, {vocabulary}), got {blank}")
    most = vocabulary - 1 if labels is None else min(whole(labels, "labels"), vocabulary - 1)
    language = fused(language_model, vocabulary, blank)
    margin = margin if margin == math.inf else number(margin, "margin", least=0)
    weight, bonus, n_best = number(weight, "weight"), number(bonus, "bonus"), whole(n_best, "n_best")
    search = _Search(language, whole(beam, "beam"), blank, most, margin, weight, bonus)
    found = []
    for b, (frames, length) in enumerate(zip(log_probs.double().cpu().numpy(), lengths.tolist())):
        if np.isnan(frames[:length]).any() or (frames[:length] == np.inf).any():
            raise ValueError(f"log_probs: expected numbers below +inf, got NaN or +inf in utterance {b}")
        found.append(search.run(np.ascontiguousarray(frames[:length]))[:n_best])
    return found


class _Tree:
    """All prefixes that were ever in the beam: parents, last labels, lists of children, places in the beam."""

    def __init__(self, most: int):
        self.nodes, self.links = 1, tuple(np.full((5, most), loops.NONE))
        self.links[-1][0] = 0

    def labels(self, node: int) -> tuple[int, ...]:
        """The labels of a prefix."""
        parent, label, found = *self.links[:2], []
        while node:
            found.append(int(label[node]))
            node = parent[node]
        return tuple(found[::-1])


@dataclass(frozen=True)
class _Search:
    language: Language
    beam: int
    blank: int
    most: int
    margin: float
    weight: float
    bonus: float

    def run(self, frames: np.ndarray) -> list[Hypothesis]:
        """All hypotheses of the last beam, best first."""
        tree, state = _Tree(1 + len(frames) * self.beam), self.language.initial()
        none = np.zeros(1, np.int64)
        held = (none, np.zeros(1), np.full(1, -np.inf), none, np.zeros(1))  # only the empty sequence, which a blank ends
        for frame, tokens in zip(frames, self._tokens(frames)):
            costs = self.language.costs(state, tokens)
            options = (self.weight, self.bonus, self.beam, self.margin)
            held, origin, added, tree.nodes = loops.advance(
                frame, self.blank, tokens, costs, *options, held, tree.links, tree.nodes
            )
            if not len(origin):
                return []
            state, grown = state[origin], added != loops.NONE
            state[grown] = self.language.after(state[grown], added[grown])
        node, by_blank, by_label, length, log_language = held
        log_ctc = np.logaddexp(by_blank, by_label)
        log_language = log_language + self.language.costs(state, np.array([self.blank]))[:, 0]
        scores = log_ctc + self.bonus * length + (self.weight * log_language if self.weight else 0.0)
        best = [place for place in np.argsort(-scores, kind="stable") if scores[place] > -np.inf]
        numbers = [(float(scores[i]), float(log_ctc[i]), float(log_language[i])) for i in best]
        return [Hypothesis(tree.labels(int(node[i])), *row) for i, row in zip(best, numbers)]

    def _tokens(self, frames: np.ndarray) -> Iterable[np.ndarray]:
        """The labels to look at in each frame: the most probable ones, in their order."""
        labels = np.delete(np.arange(frames.shape[1]), self.blank)
        if self.most == len(labels):
            return [labels] * len(frames)
        likely = np.argpartition(-frames[:, labels], self.most - 1, axis=1)[:, : self.most]
        return np.sort(labels[likely], axis=1)
