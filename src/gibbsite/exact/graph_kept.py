"""What is made of a graph once and kept beside it, for as long as its weights are what they were."""

import weakref
from collections.abc import Callable
from typing import TypeVar

from .graph import Graph, GraphBatch, changes

G = TypeVar("G", Graph, GraphBatch)
Made = TypeVar("Made")


def kept(make: Callable[[G], Made]) -> Callable[[G], Made]:
    """`make(graph)`, made once for each graph, and again when its weights, starts or ends were changed in place.

    Tensors of inference do not say that they were changed: make a new graph of these.

    Example:
        >>> import gibbsite as gb
        >>> total = kept(lambda graph: graph.weight.sum().item())
        >>> graph = gb.exact.Graph.of([(0, 0, 0, -1.0)], end=0)
        >>> before = total(graph)
        >>> _ = graph.weight.add_(3.0)
        >>> before, total(graph)
        (-1.0, 2.0)
    """
    known: weakref.WeakKeyDictionary[G, tuple[tuple[int, ...], Made]] = weakref.WeakKeyDictionary()

    def get(graph: G) -> Made:
        found, now = known.get(graph), changes(graph)
        if found is None or found[0] != now:
            found = known[graph] = now, make(graph)
        return found[1]

    return get
