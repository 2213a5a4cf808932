"""The states of a graph that lie on a path from a start to an end."""

import torch
from jaxtyping import Bool
from torch import Tensor

from ..check import instance
from .graph import Graph


def trim(graph: Graph) -> Graph:
    """The same graph without the states that no path from a start to a final state passes; the others keep their order.

    Example:
        >>> import gibbsite as gb
        >>> gb.exact.trim(gb.exact.Graph.of([(0, 1, 0, 0.0), (0, 2, 0, 0.0)], end=1)).states
        2
    """
    instance(graph, Graph, "graph")
    alive = graph.weight > -torch.inf
    reached = _reached(graph.start > -torch.inf, graph.source[alive], graph.target[alive])
    useful = reached & _reached(graph.end > -torch.inf, graph.target[alive], graph.source[alive])
    if not bool(useful.any()):
        raise ValueError("graph: expected a path from a start to a final state, got none")
    if bool(useful.all()) and bool(alive.all()):
        return graph
    arcs = alive & useful[graph.source] & useful[graph.target]
    number = useful.cumsum(0) - 1
    source, target, label, weight, start, end, output = graph.tensors()
    kept = (label[arcs], weight[arcs], start[useful], end[useful], output[arcs])
    return Graph(number[source[arcs]], number[target[arcs]], *kept)


def _reached(found: Bool[Tensor, " states"], source: Tensor, target: Tensor) -> Bool[Tensor, " states"]:
    """All states that arcs lead to from those found."""
    found, before = found.clone(), -1
    while before != (before := int(found.sum())):
        found[target[found[source]]] = True
    return found
