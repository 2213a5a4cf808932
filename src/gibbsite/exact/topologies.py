"""Which frames may stand for which labels: the topologies of CTC and of LF-MMI, and graphs of label sequences.

A topology reads a label a frame and writes the labels of the sequence, each once. A path of it is an alignment, and every
sequence of frames has exactly one.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from ..space import whole
from .graph import EPSILON, Graph, GraphBatch, check_lengths


def ctc_topology(columns: int, *, blank: int = 0) -> Graph:
    """CTC: repeats of a label are one label, then blanks are removed; `columns` labels in all, the blank among them.

    The state is what was read last: columns states and columns^2 arcs.

    References: Graves et al. (2006), Connectionist temporal classification.

    Example:
        >>> import gibbsite as gb
        >>> gb.exact.ctc_topology(3).arcs
        9
    """
    columns, blank = _alphabet(columns, blank)
    last, now = torch.cartesian_prod(torch.arange(columns), torch.arange(columns)).T
    output = torch.where((now == last) | (now == blank), EPSILON, now)
    start = torch.full((columns,), -torch.inf, dtype=torch.float64)
    start[blank] = 0
    zeros = torch.zeros(columns, dtype=torch.float64)
    return Graph(last, now, now, zeros.repeat(columns), start, zeros, output)


def hmm_topology(labels: int) -> Graph:
    """LF-MMI's: label k reads column 2k for its first frame and 2k + 1 for any more; there is no blank.

    References: Povey et al. (2016), Purely sequence-trained neural networks for ASR based on lattice-free MMI.

    Example:
        >>> import gibbsite as gb
        >>> graph = gb.exact.hmm_topology(3)
        >>> graph.states, graph.labels
        (4, 6)
    """
    labels = whole(labels, "labels")
    source, label = torch.cartesian_prod(torch.arange(labels + 1), torch.arange(labels)).T
    label, every = label.contiguous(), torch.arange(labels)
    source, target = torch.cat((source, every + 1)), torch.cat((label + 1, every + 1))
    output = torch.cat((label, torch.full((labels,), EPSILON)))
    end = torch.zeros(labels + 1, dtype=torch.float64)
    start = torch.full((labels + 1,), -torch.inf, dtype=torch.float64)
    start[0] = 0
    columns, weight = torch.cat((2 * label, 2 * every + 1)), torch.zeros(len(source), dtype=torch.float64)
    return Graph(source, target, columns, weight, start, end, output)


def linear(labels: Sequence[int]) -> Graph:
    """The graph of one label sequence, which may be empty.

    Example:
        >>> import gibbsite as gb
        >>> gb.exact.linear([3, 1, 1]).states
        4
    """
    if any(not isinstance(label, int) or label < 0 for label in labels):
        raise ValueError(f"labels: expected integers of at least 0, got {list(labels)}")
    return Graph.of([(n, n + 1, label, 0.0) for n, label in enumerate(labels)], end=len(labels))


def ctc_graphs(labels: Int[Tensor, "batch most"], counts: Int[Tensor, " batch"], *, blank: int = 0) -> GraphBatch:
    """For each utterance all CTC alignments of labels[b, :counts[b]]: blank, label, blank, ..., label, blank.

    The same paths as `restrict(ctc_topology(columns), labels, counts)`, made without the topology.
    """
    if labels.ndim != 2 or labels.dtype != torch.long:
        got = f"{str(labels.dtype).removeprefix('torch.')} {tuple(labels.shape)}"
        raise ValueError(f"labels: expected int64 of shape (batch, most), got {got}")
    check_lengths(counts, "label lengths", len(labels), labels.shape[1])
    sizes = 2 * counts + 1
    offsets = torch.cat((sizes.new_zeros(1), sizes.cumsum(0)))
    owner = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), sizes)
    place = torch.arange(len(owner), device=owner.device) - offsets[owner]
    padded = torch.cat((labels, labels.new_zeros(len(labels), 1)), 1)
    symbol = torch.where(place % 2 == 1, padded[owner, place // 2], blank)
    state, more = torch.arange(len(owner), device=owner.device), sizes[owner] - place - 1
    step, skip = state[more > 0], state[(more > 1) & (place % 2 == 1)]
    skip = skip[symbol[skip] != symbol[skip + 2]]
    source, target = torch.cat((state, step, skip)), torch.cat((state, step + 1, skip + 2))
    zero = torch.zeros(len(owner), dtype=torch.float64, device=owner.device)
    start, end = torch.where(place == 0, zero, -torch.inf), torch.where(more <= 1, zero, -torch.inf)
    label, moved = symbol[target], target > source
    output = torch.where(moved & (label != blank), label, EPSILON)
    return GraphBatch(source, target, label, zero.new_zeros(len(source)), start, end, output, offsets.cpu())


def _alphabet(columns: int, blank: int) -> tuple[int, int]:
    columns = whole(columns, "columns")
    if whole(blank, "blank", least=0) >= columns:
        raise ValueError(f"blank: expected a column in [0, {columns}), got {blank}")
    return columns, blank
