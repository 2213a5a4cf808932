"""Binary trees over sequences: labelled spans that nest, exactly, by the inside algorithm."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..model import Distribution
from ..space import Categorical
from .semirings import Max, Semiring
from .structured import Structured, check_below_inf, check_lengths, check_rows, fold, hold, log_potentials, wide


@final
class TreeCRF(Structured, Distribution):
    """log p(x) = sum over the spans of a binary tree of span[i, j, k] - log Z, each span i, ..., j with one label k.

    `span` (*batch, T, T, K), used where i <= j; each word, i = j, is a span of the tree too. `lengths` (*batch,) says how
    many words each row has, 0 to T; what reaches beyond is ignored. -inf forbids.
    A state has k + 1 at [i, j] where the tree has that span with label k, 0 elsewhere: 2 n - 1 spans on n words.

    References: Baker (1979), Trainable grammars for speech recognition; Finkel, Kleeman, Manning (2008).

    Example:
        >>> import torch, gibbsite as gb
        >>> span = torch.zeros(3, 3, 1)
        >>> span[0, 1, 0] = 3.0  # the first two words like to be one span
        >>> tree = gb.exact.TreeCRF(span)
        >>> tree.mode().tolist(), round(tree.log_partition().exp().item(), 3)  # e^3 + 1: ((a b) c), (a (b c))
        ([[1, 1, 1], [0, 1, 0], [0, 0, 1]], 21.086)
    """

    span: Tensor
    lengths: Tensor

    def __init__(self, span: Float[Tensor, "*batch T T K"], *, lengths: Int[Tensor, "*batch"] | None = None):
        super().__init__()
        span = log_potentials(span, "span")
        if span.ndim < 3 or span.shape[-3] != span.shape[-2] or 0 in span.shape[-3:]:
            got = tuple(span.shape)
            raise ValueError(f"span: expected potentials of shape (*batch, T, T, K), T and K positive, got shape {got}")
        *batch, T, _, K = span.shape
        self.batch_shape = torch.Size(batch)
        hold(self, span=span, lengths=check_lengths(lengths, self.batch_shape, T, span.device))
        self.space: Categorical = Categorical((T, T), K + 1)
        check_below_inf(self._scores()[0], "span")

    def _inside(self) -> Tensor:
        """Which spans a row has words for, (B, T, T)."""
        place = torch.arange(self.span.shape[-2], device=self.span.device)
        return (place[:, None] <= place) & (place < self.lengths.reshape(-1, 1, 1))

    def _scores(self) -> tuple[Tensor, ...]:
        span = fold(self.span.to(wide(self.span)), self.batch_shape, 3)[0]
        return (span.masked_fill(~self._inside()[..., None], -torch.inf),)

    def _total(self, semiring: Semiring, *scores: Tensor) -> Tensor:
        (span,) = scores
        return tree_total(semiring, span, self._lengths(len(span)))

    def _states(self, parts: Float[Tensor, "n B T T K"]) -> Int[Tensor, "n B T T"]:
        return ((parts > 0) * torch.arange(1, self.space.states, device=parts.device)).sum(-1)

    def score(self, x: Int[Tensor, "*n batch T T"]) -> Float[Tensor, "*n batch"]:
        (span,), words = self._scores(), self.lengths.reshape(-1)
        x, below = check_rows(x, (*self.batch_shape, *self.space.shape)), torch.ones(self.space.shape).tril(-1).bool()
        y = fold(self.space.check(x), self.batch_shape, 2)
        wrong = (y * below.to(y.device)).flatten(2).any(-1)
        y = y.masked_fill(~self._inside(), 0)
        parts = span.expand(len(y), *span.shape).gather(-1, (y - 1).clamp(min=0)[..., None])[..., 0]
        total = torch.where(y > 0, parts, 0).flatten(2).sum(-1)
        # 2 n - 1 spans are a tree if some tree is made of nothing else
        own = torch.where(y > 0, 0.0, -torch.inf).flatten(0, 1)[..., None]
        nest = tree_total(Max(), own, self._lengths(len(own))).view(y.shape[:2]) == 0
        count = (y > 0).flatten(2).sum(-1) == (2 * words - 1).clamp(min=0)
        return total.masked_fill(wrong | ~nest | ~count, -torch.inf).view(x.shape[:-2])


def tree_total(semiring: Semiring, span: Tensor, lengths: Int[Tensor, " B"]) -> Float[Tensor, "*element B"]:
    """The sum over all trees on the first `lengths` words, in the semiring; the unit where there are none.

    inside(i, j) = span(i, j) sum_(i <= m < j) inside(i, m) inside(m + 1, j), span(i, j) = sum_k span(i, j, k); by width. Of
    each span that begins at i, `left` holds the inside of every first part, `right` that of the second beside it.
    """
    any_label = semiring.sum(semiring.lift(span))
    inside = any_label.diagonal(0, -2, -1)
    left = right = inside[..., None][..., :0]
    whole = [inside[..., 0]]
    for width in range(1, span.shape[-2]):
        left = torch.cat((left[..., :-1, :], inside[..., :-1, None]), -1)
        right = torch.cat((inside[..., 1:, None], right[..., 1:, :]), -1)
        inside = semiring.times(semiring.sum(semiring.times(left, right)), any_label.diagonal(width, -2, -1))
        whole.append(inside[..., 0])
    every = torch.stack(whole, -1)
    place = (lengths - 1).clamp(min=0)[:, None].expand(*every.shape[:-1], 1)
    return torch.where(lengths > 0, every.gather(-1, place)[..., 0], semiring.lift(torch.zeros_like(span[..., 0, 0, 0])))
