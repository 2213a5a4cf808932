"""Semi-Markov chains: sequences cut into labelled segments of limited length, exactly."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..model import Distribution
from ..space import Categorical
from .semirings import Semiring
from .structured import Structured, check_below_inf, check_lengths, check_rows, fold, hold, log_potentials, wide


@final
class SemiMarkov(Structured, Distribution):
    """log p(x) = sum over segments of segment[t, l-1, k] + edge[k, k'] over neighbours + start[k_1] + end[k_m] - log Z.

    `segment` (*batch, T, L, K): a segment that begins at t, is l <= L long and has label k; `edge` (K, K); `start`, `end`
    (K,). `lengths` (*batch,) says how many positions each row has, 0 to T; what reaches beyond is ignored. -inf forbids.
    A state is one number a position: k + 1 where a segment of label k begins, 0 where one goes on and beyond the length.

    References: Sarawagi, Cohen (2004), Semi-Markov conditional random fields.

    Example:
        >>> import torch, gibbsite as gb
        >>> segment = torch.zeros(3, 2, 1)
        >>> segment[0, 1, 0] = 3.0  # the first two positions like to be one segment
        >>> chain = gb.exact.SemiMarkov(segment, torch.zeros(1, 1))
        >>> chain.mode().tolist(), round(chain.log_partition().exp().item(), 3)  # e^3 + 2: {2, 1}, {1, 2}, {1, 1, 1}
        ([1, 0, 1], 22.086)
    """

    segment: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor

    def __init__(
        self,
        segment: Float[Tensor, "*batch T L K"],
        edge: Float[Tensor, "K K"],
        *,
        start: Float[Tensor, " K"] | None = None,
        end: Float[Tensor, " K"] | None = None,
        lengths: Int[Tensor, "*batch"] | None = None,
    ):
        super().__init__()
        segment = log_potentials(segment, "segment")
        if segment.ndim < 3 or 0 in segment.shape[-3:]:
            got = tuple(segment.shape)
            raise ValueError(f"segment: expected potentials of shape (*batch, T, L, K), none of these 0, got shape {got}")
        *batch, T, _, K = segment.shape
        none = torch.zeros(K, dtype=segment.dtype, device=segment.device)
        start, end = (none if x is None else log_potentials(x, name) for x, name in ((start, "start"), (end, "end")))
        edge = log_potentials(edge, "edge")
        for x, name, shape in ((edge, "edge", (K, K)), (start, "start", (K,)), (end, "end", (K,))):
            if x.shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {tuple(x.shape)}")
            check_below_inf(x, name)
        self.batch_shape = torch.Size(batch)
        lengths = check_lengths(lengths, self.batch_shape, T, segment.device)
        hold(self, segment=segment, edge=edge, start=start, end=end, lengths=lengths)
        self.space: Categorical = Categorical(T, K + 1)
        check_below_inf(self._scores()[0], "segment")

    def _scores(self) -> tuple[Tensor, ...]:
        dtype, (T, L) = wide(self.segment, self.edge, self.start, self.end), self.segment.shape[-3:-1]
        begin, length = (torch.arange(n, device=self.segment.device) for n in (T, L))
        beyond = (begin[:, None] + length + 1) > self.lengths.reshape(-1, 1, 1)
        segment = fold(self.segment.to(dtype), self.batch_shape, 3)[0].masked_fill(beyond[..., None], -torch.inf)
        return segment, *(x.to(dtype).expand(len(segment), *x.shape) for x in (self.edge, self.start, self.end))

    def _total(self, semiring: Semiring, *scores: Tensor) -> Tensor:
        segment, edge, start, end = scores
        return segment_total(semiring, segment, edge, start, end, self._lengths(len(segment)))

    def _states(self, parts: Float[Tensor, "n B T L K"]) -> Int[Tensor, "n B T"]:
        label = torch.arange(1, self.space.states, device=parts.device)
        return ((parts > 0).sum(-2) * label).sum(-1)

    def score(self, x: Int[Tensor, "*n batch T"]) -> Float[Tensor, "*n batch"]:
        segment, edge, start, end = self._scores()
        T, L = segment.shape[1:3]
        x, n = check_rows(x, (*self.batch_shape, T)), self.lengths.reshape(-1, 1)
        rows = torch.arange(len(segment), device=segment.device)[:, None]
        place = torch.arange(T, device=segment.device)
        y = fold(self.space.check(x.masked_fill(place >= self.lengths[..., None], 0)), self.batch_shape, 1)
        begins, label = y > 0, (y - 1).clamp(min=0)
        next_one = torch.where(begins, place, n).flip(-1).cummin(-1).values.flip(-1)[..., 1:]
        length = torch.cat((next_one, n.expand(len(y), -1, 1)), -1) - place
        latest = torch.where(begins, place, -1).cummax(-1).values.clamp(min=0)
        left = label.gather(-1, latest[..., :-1])
        entry = torch.cat((start[rows, label[..., :1]], edge[rows, left, label[..., 1:]]), -1)
        parts = segment[rows, place, (length - 1).clamp(0, L - 1), label] + entry
        last = end[rows, label.gather(-1, latest[..., -1:])][..., 0]
        total = torch.where(begins, parts, 0).sum(-1) + torch.where(begins.any(-1), last, 0)
        bad = (begins & (length > L)).any(-1) | ((n[:, 0] > 0) & ~begins[..., 0])
        return total.masked_fill(bad, -torch.inf).view(x.shape[:-1])


def segment_total(
    semiring: Semiring, segment: Tensor, edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> Float[Tensor, "*element B"]:
    """The sum over all segmentations in the semiring; the unit where there are no positions.

    entry_t(k) sums what comes before a segment of label k at t; alpha_t(k) = sum_l entry_(t-l)(k) segment_(t-l, l)(k).
    The entries are kept relative to the level of the latest alpha.
    """
    T, L = segment.shape[-3:-1]
    reach = torch.arange(min(L, T), device=segment.device)
    begin = (torch.arange(T, device=segment.device)[:, None] - reach).clamp(min=0)
    behind = segment[..., begin, reach, :].unbind(-3)  # of each last position: the segments that end there, by length
    entries = semiring.lift(start)[..., None, :]
    none = torch.zeros_like(segment[..., 0, 0, 0])
    total, level = semiring.lift(none), none.double()
    for t, ending in enumerate(behind):
        held = min(t + 1, L)
        alpha = semiring.sum(semiring.scale(entries[..., :held, :], ending[..., :held, :]), -2)
        step = semiring.level(alpha)
        alpha, level = semiring.scale(alpha, -step[..., None]), level + step.double()
        row = semiring.scale(semiring.sum(semiring.scale(alpha, end)).double(), level).to(total.dtype)
        total = torch.where(lengths == t + 1, row, total)
        entry = semiring.sum(semiring.scale(alpha[..., :, None], edge), -2)
        older = semiring.scale(entries[..., : L - 1, :], -step[..., None, None])
        entries = torch.cat((entry[..., None, :], older), -2)
    return total
