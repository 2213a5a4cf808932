"""The part of a graph that writes given label sequences: one graph an utterance, with the same weights."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .._fast import graph_restrict as loops
from ..check import instance
from .graph import Graph, GraphBatch, check_lengths
from .graph_kept import kept


def restrict(graph: Graph, labels: Int[Tensor, "batch most"], counts: Int[Tensor, " batch"]) -> GraphBatch:
    """For each utterance the paths of `graph` that write labels[b, :counts[b]].

    With `forward` it gives the sum over these paths; sums over all sequences add up to that of the whole graph. A sequence
    that no path writes gets a graph without a path: log Z = -inf. Gradients reach the weights of `graph`.

    Example:
        >>> import torch, gibbsite as gb
        >>> ctc = gb.exact.ctc_topology(3)
        >>> one = gb.exact.restrict(ctc, torch.tensor([[1, 2]]), torch.tensor([2]))
        >>> gb.exact.forward(one, torch.zeros(1, 3, 3), torch.tensor([3])).exp().round().item()  # 012 102 120 112 122
        5.0
    """
    index = _index(instance(graph, Graph, "graph"))
    _check_labels(index.written, labels, counts)
    utterances = (x.cpu().contiguous().numpy() for x in (labels, counts))
    found = loops.restrict(*index.arcs, *utterances)
    state, position, offsets, source, target, origin = (torch.from_numpy(x).to(graph.weight.device) for x in found)
    arc, owner = index.order[origin], torch.repeat_interleave(torch.arange(len(counts)), offsets.diff().cpu())
    last = counts.cpu()[owner].to(state.device)
    start = torch.where(position == 0, graph.start[state], -torch.inf)
    end = torch.where(position == last, graph.end[state], -torch.inf)
    return GraphBatch(source, target, graph.label[arc], graph.weight[arc], start, end, graph.output[arc], offsets.cpu())


class _Index(NamedTuple):
    """Arcs by source and output: their order, what the loop asks for, and which labels the graph writes."""

    order: Int[Tensor, " arcs"]
    arcs: tuple[np.ndarray, ...]
    written: Bool[Tensor, " outputs"]


@kept
def _index(graph: Graph) -> _Index:
    source, target, output = (x.cpu() for x in (graph.source, graph.target, graph.output))
    order = (source * (graph.outputs + 1) + output).argsort(stable=True)
    first = torch.cat((order.new_zeros(1), torch.bincount(source, minlength=graph.states).cumsum(0)))
    starts = (graph.start > -torch.inf).nonzero()[:, 0].cpu()
    written = torch.zeros(graph.outputs + 1, dtype=torch.bool)
    written[output] = True  # an output of -1 marks the last place
    written[-1] = False
    arcs = tuple(x.numpy() for x in (first, target[order], output[order], starts))
    return _Index(order.to(graph.source.device), arcs, written)


def _check_labels(written: Bool[Tensor, " outputs"], labels: object, counts: Tensor) -> None:
    """Errors for labels of a wrong shape, or that the graph never writes."""
    if not isinstance(labels, Tensor) or labels.dtype != torch.long or labels.ndim != 2:
        got = f"{labels.dtype} {tuple(labels.shape)}" if isinstance(labels, Tensor) else repr(labels)
        raise ValueError(f"labels: expected int64 of shape (batch, most), got {got.removeprefix('torch.')}")
    check_lengths(counts, "label lengths", len(labels), labels.shape[1])
    inside = torch.arange(labels.shape[1]) < counts.cpu()[:, None]
    strange = inside & ((labels.cpu() < 0) | ~written[labels.cpu().clamp(-1, len(written) - 1)])
    if bool(strange.any()):
        b, i = strange.nonzero()[0].tolist()
        known = written.nonzero()[:, 0].tolist()
        shown = ", ".join(map(str, known[:8])) + (f", ... ({len(known)} in all)" if len(known) > 8 else "")
        raise ValueError(f"labels: expected labels that the graph writes, {shown}, got {int(labels[b, i])} at {[b, i]}")
