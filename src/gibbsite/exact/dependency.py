"""Projective dependency trees: each word has one head and no arcs cross, exactly, by Eisner's algorithm."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..model import Distribution
from ..space import Categorical
from .semirings import Max, Semiring
from .structured import Structured, check_below_inf, check_lengths, check_rows, fold, hold, log_potentials, wide


@final
class DependencyCRF(Structured, Distribution):
    """log p(x) = sum over words j of arc[head of j, j] - log Z, over the projective trees with one root.

    `arc` (*batch, T, T): arc[i, j] where word i is the head of word j, arc[j, j] where j is the root. `lengths` (*batch,)
    says how many words each row has, 0 to T; what reaches beyond is ignored. -inf forbids.
    A state is the heads as in CoNLL-U: x_j = i + 1 where word i is the head of word j, 0 for the root and beyond the length.

    References: Eisner (1996), Three new probabilistic models for dependency parsing; Paskin (2001).

    Example:
        >>> import torch, gibbsite as gb
        >>> arc = torch.zeros(3, 3)
        >>> arc[1, 0] = arc[1, 2] = 3.0  # the second word likes to be the head of the others
        >>> tree = gb.exact.DependencyCRF(arc)
        >>> tree.mode().tolist(), round(tree.log_partition().exp().item(), 1)  # e^6 + 2 e^3 + 4
        ([2, 0, 2], 447.6)
    """

    arc: Tensor
    lengths: Tensor

    def __init__(self, arc: Float[Tensor, "*batch T T"], *, lengths: Int[Tensor, "*batch"] | None = None):
        super().__init__()
        arc = log_potentials(arc, "arc")
        if arc.ndim < 2 or arc.shape[-2] != arc.shape[-1] or not arc.shape[-1]:
            raise ValueError(f"arc: expected potentials of shape (*batch, T, T), T positive, got shape {tuple(arc.shape)}")
        *batch, T, _ = arc.shape
        self.batch_shape = torch.Size(batch)
        hold(self, arc=arc, lengths=check_lengths(lengths, self.batch_shape, T, arc.device))
        self.space: Categorical = Categorical(T, T + 1)
        check_below_inf(self._scores()[0], "arc")

    def _words(self) -> Tensor:
        """Which words a row has, (B, T)."""
        return torch.arange(self.arc.shape[-1], device=self.arc.device) < self.lengths.reshape(-1, 1)

    def _scores(self) -> tuple[Tensor, ...]:
        arc, words = fold(self.arc.to(wide(self.arc)), self.batch_shape, 2)[0], self._words()
        return (arc.masked_fill(~(words[:, :, None] & words[:, None]), -torch.inf),)

    def _total(self, semiring: Semiring, *scores: Tensor) -> Tensor:
        (arc,) = scores
        return dependency_total(semiring, arc, self._lengths(len(arc)))

    def _states(self, parts: Float[Tensor, "n B T T"]) -> Int[Tensor, "n B T"]:
        place = torch.arange(parts.shape[-1], device=parts.device)
        head = torch.where(place[:, None] == place, 0, place[:, None] + 1)
        return ((parts > 0) * head).sum(-2)

    def score(self, x: Int[Tensor, "*n batch T"]) -> Float[Tensor, "*n batch"]:
        (arc,), words = self._scores(), self._words()
        x = check_rows(x, (*self.batch_shape, *self.space.shape))
        y = fold(self.space.check(x), self.batch_shape, 1).masked_fill(~words, 0)
        place = torch.arange(y.shape[-1], device=y.device)
        head = torch.where(y == 0, place, y - 1)[..., None, :]
        total = torch.where(words, arc.expand(len(y), *arc.shape).gather(-2, head)[..., 0, :], 0).sum(-1)
        # one arc into each word is a tree if some tree is made of nothing else
        own = torch.where((place[:, None] == head) & words[:, None], 0.0, -torch.inf).flatten(0, 1)
        tree = dependency_total(Max(), own, self._lengths(len(own))).view(y.shape[:2]) == 0
        own_head = (y == place + 1).any(-1)
        return total.masked_fill(~tree | own_head, -torch.inf).view(x.shape[:-1])


def dependency_total(semiring: Semiring, arc: Tensor, lengths: Int[Tensor, " B"]) -> Float[Tensor, "*element B"]:
    """The sum over all trees on the first `lengths` words, in the semiring; the unit where there are none.

    Over i, ..., j, by width: `right` is headed by i and `left` by j, with all of their dependents there; `arc_right` and
    `arc_left` have the arc between i and j, and may have more dependents on the outer side of it:
    arc_right(i, j) = arc[i, j] sum_m right(i, m) left(m + 1, j), right(i, j) = sum_m arc_right(i, m) right(m, j); mirrored.
    The tables hold, for each i, what the sums over m need: their columns are shifted from width to width.
    """
    weight = semiring.lift(arc)
    root, right = weight.diagonal(0, -2, -1), semiring.lift(torch.zeros_like(arc[..., 0]))
    left, total = right, semiring.lift(torch.zeros_like(arc[..., 0, 0]))
    rights = rights_to_end = lefts = lefts_to_end = arcs_right = arcs_left = right[..., None][..., :0]
    for width in range(arc.shape[-1]):
        if width:
            rights, lefts = (torch.cat((x[..., :-1, :], y[..., :-1, None]), -1) for x, y in ((rights, right), (lefts, left)))
            lefts_to_end = torch.cat((left[..., 1:, None], lefts_to_end[..., 1:, :]), -1)
            rights_to_end = torch.cat((right[..., 1:, None], rights_to_end[..., 1:, :]), -1)
            between = semiring.sum(semiring.times(rights, lefts_to_end))
            arc_right = semiring.times(between, weight.diagonal(width, -2, -1))
            arc_left = semiring.times(between, weight.diagonal(-width, -2, -1))
            arcs_right = torch.cat((arcs_right[..., :-1, :], arc_right[..., None]), -1)
            arcs_left = torch.cat((arc_left[..., None], arcs_left[..., 1:, :]), -1)
            right = semiring.sum(semiring.times(arcs_right, rights_to_end))
            left = semiring.sum(semiring.times(lefts, arcs_left))
        before = torch.cat((lefts[..., 0, :], left[..., :1]), -1)  # left(0, r) for each root r
        behind = torch.cat((right[..., :1], rights_to_end[..., 0, :]), -1)  # right(r, width)
        whole = semiring.sum(semiring.times(semiring.times(before, behind), root[..., : width + 1]))
        total = torch.where(lengths == width + 1, whole, total)
    return total
