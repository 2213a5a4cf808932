"""How the arcs of a shared graph are laid out for the compiled loops: linear weights, groups, bundles."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from .graph import GraphBatch

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Linear(NamedTuple):
    """exp(log-weights) of a graph, at most 1 each, and the logarithms that were taken off: of each arc, and of both ends."""

    weight: Float[np.ndarray, " arcs"]
    start: Float[np.ndarray, " states"]
    end: Float[np.ndarray, " states"]
    shift: float
    ends: float


class Layout(NamedTuple):
    """What `_fast.graph_scaled.lanes` asks for; see there."""

    arcs: tuple
    start: Float[np.ndarray, " rows"]
    end: Float[np.ndarray, " rows"]
    shift: float
    ends: float
    gain: float
    count: int


def linear(graph: GraphBatch) -> Linear:
    """The weights of a graph as the scaled loops read them."""
    logs = [x.detach().double().numpy() for x in (graph.weight, graph.start, graph.end)]
    most = [float(x.max()) if len(x) and x.max() > -np.inf else 0.0 for x in logs]
    weight, start, end = (np.exp(x - m) for x, m in zip(logs, most))
    return Linear(weight, start, end, most[0], most[1] + most[2])


def grouped(key: Int[np.ndarray, " n"], groups: int) -> tuple[np.ndarray, np.ndarray]:
    """An order in which equal keys are together, and where each begins, the end of the last included."""
    first = np.concatenate(([0], np.bincount(key, minlength=groups).cumsum()))
    return np.argsort(key, kind="stable"), first


def layout(graph: GraphBatch) -> Layout:
    """Arcs of one target and label are a group. States with many arcs of the same ends and weights share a bundle of them:
    the arcs leave from the bundle, which takes the sum over its states; for a bigram on CTC this halves the work."""
    weight, start, end, shift, ends = linear(graph)
    source, target, label = (x.numpy() for x in (graph.source, graph.target, graph.label))
    gain = float(np.log(max(np.bincount(source, weight, graph.states).max(initial=1.0), 1.0)))
    _, example, group = np.unique(target * (label.max(initial=0) + 1) + label, return_index=True, return_inverse=True)
    leaves, to, weights, member, bundle = _bundled(source, group, weight, graph.states)
    rows = int(max(graph.states, bundle.max(initial=-1) + 1))
    by_row, row_first = grouped(leaves, rows)
    by_group, group_first = grouped(to, len(example))
    arcs = (row_first, to[by_row], weights[by_row], group_first, leaves[by_group], weights[by_group])
    start, end = (np.pad(x, (0, rows - graph.states)) for x in (start, end))
    ordered = (*arcs, label[example], target[example], member, bundle, graph.states)
    return Layout(ordered, start, end, shift, ends, gain, len(source))


def _bundled(
    source: Int[np.ndarray, " arcs"], group: Int[np.ndarray, " arcs"], weight: Float[np.ndarray, " arcs"], states: int
) -> Arcs:
    """Arcs (row they leave, group, weight), and (member, bundle) pairs; bundles are rows beyond the states.

    A head is a (group, weight) that arcs lead to. Heads to which the same states lead become a bundle, if that is less work.
    """
    kind = np.unique(weight, return_inverse=True)[1]
    code = group * (kind.max(initial=0) + 1) + kind
    head_code, example, head = np.unique(code, return_index=True, return_inverse=True)
    order, first = np.lexsort((source, head)), np.concatenate(([0], np.bincount(head, minlength=len(head_code)).cumsum()))
    size = first[1:] - first[:-1]
    prints = np.add.reduceat(_mixed(states)[source[order]], first[:-1]) if len(source) else np.empty(0, np.uint64)
    _, leader, owner = np.unique(prints, return_index=True, return_inverse=True)
    heads = np.bincount(owner, minlength=len(leader))
    worth = heads * size[leader] > heads + size[leader]
    place = np.repeat(first[:-1], size)
    twin = first[leader[owner]].repeat(size) + np.arange(len(source)) - place  # the same arc of the head that leads
    same = np.ones(len(leader), bool)
    np.logical_and.at(same, owner, size == size[leader[owner]])
    np.logical_and.at(same, owner.repeat(size), source[order] == source[order][np.minimum(twin, len(source) - 1)])
    worth &= same
    number = np.where(worth, states + worth.cumsum() - 1, -1)
    alone = order[number[owner].repeat(size) < 0]
    shared = np.flatnonzero(number[owner] >= 0)
    chosen = np.flatnonzero(worth)
    members = [source[order[first[h] : first[h + 1]]] for h in leader[chosen]]
    leaves = np.concatenate((source[alone], number[owner[shared]]))
    to, weights = (np.concatenate((x[alone], x[example[shared]])) for x in (group, weight))
    member = np.concatenate([np.empty(0, np.int64), *members])
    return leaves, to, weights, member, np.repeat(number[chosen], size[leader[chosen]])


def _mixed(count: int) -> Shaped[np.ndarray, " count"]:
    """Numbers whose sums tell sets of places apart, but for chance; what they find alike is compared before it is used."""
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(27))
