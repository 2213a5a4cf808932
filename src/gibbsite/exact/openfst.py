"""Weighted automata in OpenFst's text format, to and from Kaldi and other tools."""

import math

from ..check import instance
from .graph import EPSILON, Graph


def to_openfst(graph: Graph) -> str:
    """The graph as `fstcompile` reads it, as a transducer in the log (or tropical) semiring.

    A line is "source target input output weight", or "state weight" for a state that can end; weights are -log, and labels
    are one more than here, for 0 is epsilon there. The first line leaves the start. Several starts, or one with a weight,
    become arcs that read nothing from a state of their own.

    References: Allauzen et al. (2007), OpenFst: a general and efficient weighted finite-state transducer library.

    Example:
        >>> import gibbsite as gb
        >>> gb.exact.to_openfst(gb.exact.Graph.of([(0, 1, 2, -0.5, 3)], end={1: -0.25})).splitlines()
        ['0\\t1\\t3\\t4\\t0.5', '1\\t0.25']
    """
    tensors = [tensor.detach().cpu().tolist() for tensor in instance(graph, Graph, "graph").tensors()]
    source, target, label, weight, start, end, output = tensors
    arcs = [list(arc) for arc in zip(source, target, label, output, weight)]
    starts = [state for state, value in enumerate(start) if value > -math.inf]
    first = starts[0]
    if len(starts) > 1 or start[first]:
        first = graph.states
        arcs = [[first, state, EPSILON, EPSILON, start[state]] for state in starts] + arcs
    arcs.sort(key=lambda arc: arc[0] != first)  # stable: those that leave the start come first
    lines = [[s, t, read + 1, wrote + 1, _number(-w)] for s, t, read, wrote, w in arcs if w > -math.inf]
    ends = [[state, _number(-value)] for state, value in enumerate(end) if value > -math.inf]
    if not lines or lines[0][0] != first:
        ends.sort(key=lambda line: line[0] != first)
        lines, ends = ends + lines, []
        if not lines or lines[0][0] != first:
            raise ValueError(f"graph: expected a start that leads to somewhere or can end, got state {first}")
    return "".join("\t".join(map(str, line)) + "\n" for line in lines + ends)


def from_openfst(text: str) -> Graph:
    """The graph of a transducer that `fstprint` wrote, with numbers for states and labels; see `to_openfst`.

    A weight that is not written is 0. Arcs that read nothing stay: `remove_epsilon` takes them away. Print acceptors with
    `fstprint --acceptor=false`.

    Example:
        >>> import gibbsite as gb
        >>> graph = gb.exact.from_openfst("0 1 3 4 0.5\\n1 0.25\\n")
        >>> graph.label.tolist(), graph.output.tolist(), graph.weight.tolist(), graph.end.tolist()
        ([2], [3], [-0.5], [-inf, -0.25])
    """
    arcs, ends, first = [], {}, None
    for number, line in enumerate(instance(text, str, "text").splitlines(), 1):
        columns = line.split()
        if not columns:
            continue
        if len(columns) not in (1, 2, 4, 5):
            hint = "; print acceptors with --acceptor=false" if len(columns) == 3 else ""
            raise ValueError(f"line {number}: expected 4 or 5 columns of an arc or 1 or 2 of an end, got {line!r}{hint}")
        try:
            whole = [int(column) for column in columns[: 4 if len(columns) > 2 else 1]]
            weight = -float(columns[-1]) if len(columns) in (2, 5) else 0.0
        except ValueError:
            raise ValueError(f"line {number}: expected numbers for states, labels and weights, got {line!r}") from None
        first = whole[0] if first is None else first
        if len(whole) == 4:
            arcs.append((whole[0], whole[1], whole[2] - 1, weight, whole[3] - 1))
        else:
            ends[whole[0]] = weight
    if first is None:
        raise ValueError("text: expected the arcs and ends of a transducer, got none")
    return Graph.of(arcs, start=first, end=ends)


def _number(value: float) -> str:
    return repr(value + 0.0)  # never -0.0, and to the last bit
