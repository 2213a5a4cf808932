"""Graphs without arcs that read nothing: each arc stands for all the ways to come to it."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..check import instance
from .graph import EPSILON, Graph
from .graph_arcs import log_sums, matches
from .graph_trim import trim


def remove_epsilon(graph: Graph) -> Graph:
    """A graph with the same weight of every pair of label sequences, in which each arc reads a label.

    With C(s, q) the sum over all paths from s to q of arcs that read nothing, arc (q, t, label) becomes (s, t, label) with
    C(s, q) added, and end(s) the sum of C(s, q) end(q). Such arcs must write nothing and make no cycle. Gradients reach
    the weights.

    References: Mohri (2002), Generic epsilon-removal algorithm for weighted automata.

    Example:
        >>> import gibbsite as gb
        >>> backoff = gb.exact.Graph.of([(0, 1, gb.exact.EPSILON, -1.0), (1, 0, 3, -0.5)], end=0)
        >>> gb.exact.remove_epsilon(backoff).weight.tolist()
        [-1.5]
    """
    if not instance(graph, Graph, "graph").reads_nothing:
        return graph
    silent = graph.label == EPSILON
    if bool((graph.output[silent] != EPSILON).any()):
        raise ValueError(
            "graph: expected arcs that read nothing to write nothing, got one that writes; make it read a label"
        )
    begin, end, total = _closure(graph, silent)
    source, target, label, weight, output = (
        x[~silent] for x in (graph.source, graph.target, graph.label, graph.weight, graph.output)
    )
    order = source.argsort(stable=True)
    path, place = matches(source[order], end)
    arc = order[place]
    ends = log_sums(total + graph.end[end], begin, graph.states)
    return trim(Graph(begin[path], target[arc], label[arc], total[path] + weight[arc], graph.start, ends, output[arc]))


def _closure(graph: Graph, silent: Tensor) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"], Float[Tensor, " n"]]:
    """C as (from, to, log-weight), sorted: the sum of the powers of the silent arcs, which must end."""
    every = torch.arange(graph.states, device=graph.source.device)
    order = graph.source[silent].argsort(stable=True)
    source, target, weight = (x[silent][order] for x in (graph.source, graph.target, graph.weight))
    parts = [(every, every, torch.zeros_like(graph.start))]
    while len(parts[-1][0]):
        if len(parts) > graph.states:
            raise ValueError("graph: expected no cycle of arcs that read nothing, got one: its paths have no end")
        begin, end, total = parts[-1]
        path, arc = matches(source, end)
        parts.append(_merged(begin[path], target[arc], total[path] + weight[arc], graph.states))
    begin, end, total = (torch.cat(columns) for columns in zip(*parts))
    return _merged(begin, end, total, graph.states)


def _merged(begin: Tensor, end: Tensor, total: Tensor, states: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over what has the same ends."""
    code, group = (begin * states + end).unique(return_inverse=True)
    return code // states, code % states, log_sums(total, group, len(code))
