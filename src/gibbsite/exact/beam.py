"""Decoding of CTC: prefix beam search, with any language model, and lists of the best label sequences."""

import math
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


@dataclass(frozen=True)
class _Beam:
    """Prefixes: nodes of the tree, log masses by the last symbol, lengths, and what the language model says of them."""

    node: np.ndarray
    by_blank: np.ndarray
    by_label: np.ndarray
    length: np.ndarray
    log_language: np.ndarray
    state: np.ndarray


class _Tree:
    """All prefixes that were ever in the beam."""

    def __init__(self, most: int):
        self.nodes = 1
        self.parent, self.label, self.first_child, self.sibling, self.slot = np.full((5, most), -1)
        self.slot[0] = 0

    def labels(self, node: int) -> tuple[int, ...]:
        """The labels of a prefix."""
        found = []
        while node:
            found.append(int(self.label[node]))
            node = self.parent[node]
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
        tree, zero = _Tree(1 + len(frames) * self.beam), np.zeros(1)
        none = np.zeros(1, np.int64)
        beam = _Beam(none, zero, np.full(1, -np.inf), none, zero, self.language.initial())
        for frame in frames:
            beam = self._after(frame, beam, tree)
            if not len(beam.node):
                return []
        log_ctc = np.logaddexp(beam.by_blank, beam.by_label)
        log_language = beam.log_language + self.language.costs(beam.state, np.array([self.blank]))[:, 0]
        scores = log_ctc + self._fused(log_language, beam.length)
        best = [place for place in np.argsort(-scores, kind="stable") if scores[place] > -np.inf]
        numbers = [(float(scores[i]), float(log_ctc[i]), float(log_language[i])) for i in best]
        return [Hypothesis(tree.labels(int(beam.node[i])), *row) for i, row in zip(best, numbers)]

    def _fused(self, log_language: np.ndarray, length: np.ndarray) -> np.ndarray:
        return (self.weight * log_language if self.weight else 0.0) + self.bonus * length

    def _after(self, frame: np.ndarray, beam: _Beam, tree: _Tree) -> _Beam:
        """The beam after one frame."""
        tokens, held = self._tokens(frame), len(beam.node)
        by_blank, by_label, grown = np.empty(held), np.empty(held), np.empty((held, len(tokens)))
        masses = (beam.node, beam.by_blank, beam.by_label, tree.parent, tree.label, tree.slot, by_blank, by_label, grown)
        loops.extend(frame, self.blank, tokens, *masses)
        language = beam.log_language[:, None] + self.language.costs(beam.state, tokens)
        stay = np.logaddexp(by_blank, by_label) + self._fused(beam.log_language, beam.length)
        scores = np.concatenate((stay, (grown + self._fused(language, beam.length[:, None] + 1)).ravel()))
        chosen = loops.choose(scores, self.beam, scores.max() - self.margin)
        links = (tree.parent, tree.label, tree.first_child, tree.sibling, tree.slot)
        node, tree.nodes = loops.renew(chosen, tokens, beam.node, tree.nodes, *links)
        stays, new = chosen[chosen < held], chosen[chosen >= held] - held  # in this order
        origin, token = np.divmod(new, len(tokens))
        state = self.language.after(beam.state[origin], tokens[token])
        return _Beam(
            node,
            np.concatenate((by_blank[stays], np.full(len(new), -np.inf))),
            np.concatenate((by_label[stays], grown.ravel()[new])),
            np.concatenate((beam.length[stays], beam.length[origin] + 1)),
            np.concatenate((beam.log_language[stays], language.ravel()[new])),
            np.concatenate((beam.state[stays], state)),
        )

    def _tokens(self, frame: np.ndarray) -> np.ndarray:
        """The labels to look at: the most probable ones, in their order."""
        labels = np.delete(np.arange(len(frame)), self.blank)
        if self.most == len(labels):
            return labels
        return np.sort(labels[np.argpartition(-frame[labels], self.most - 1)[: self.most]])
