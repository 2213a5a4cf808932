"""Small graphs, and what they sum to by writing out every path."""

import itertools
import math

import torch

from gibbsite.exact import EPSILON, Graph


def random_graph(states, arcs, labels, *, seed, silent=0):
    """Any arcs at all, parallel ones and loops among them; the first `silent` lead forward and read nothing."""
    source = torch.Generator().manual_seed(seed)
    ends = [torch.randint(states, (arcs,), generator=source) for _ in range(2)]
    label, output = (torch.randint(-(name == "out"), labels, (arcs,), generator=source) for name in ("in", "out"))
    low, high = torch.minimum(*ends)[:silent], torch.maximum(*ends)[:silent]
    ends[0][:silent], ends[1][:silent] = low.clamp(max=states - 2), torch.maximum(high, low.clamp(max=states - 2) + 1)
    label[:silent] = output[:silent] = EPSILON
    weights = [torch.randn(n, dtype=torch.float64, generator=source) for n in (arcs, states, states)]
    return Graph(*ends, label, *weights, output)


def paths(graph, frames):
    """Every path that reads `frames` labels, as (log-weight with start and end, labels read, labels written)."""

    def go(state, weight, read, written):
        if len(read) == frames:
            yield weight + graph.end[state], read, written
        for arc in range(graph.arcs):
            reads = int(graph.label[arc])
            if graph.source[arc] == state and (reads == EPSILON or len(read) < frames):
                more = () if reads == EPSILON else (reads,)
                out = int(graph.output[arc])
                wrote = written if out == EPSILON else (*written, out)
                yield from go(int(graph.target[arc]), weight + graph.weight[arc], (*read, *more), wrote)

    for state in range(graph.states):
        if graph.start[state] > -math.inf:
            yield from go(state, graph.start[state], (), ())


def total(graph, emissions, frames, written=None):
    """log of the sum over those paths (that write `written`), a tensor with a graph."""
    scores = [
        weight + sum(emissions[t, label] for t, label in enumerate(read))
        for weight, read, out in paths(graph, frames)
        if written is None or out == written
    ]
    return torch.stack([torch.as_tensor(score) for score in scores]).logsumexp(0) if scores else torch.tensor(-torch.inf)


def sequences(labels, most):
    """All sequences of 0 to `most` of the labels."""
    return [s for length in range(most + 1) for s in itertools.product(labels, repeat=length)]


def collapse(alignment, blank=0):
    """B of CTC: repeats are one, blanks are none."""
    return tuple(k for n, k in enumerate(alignment) if k != blank and (n == 0 or alignment[n - 1] != k))


def bigram(labels, *, seed, columns=None):
    """A random bigram of the labels with an end: p(next | last) sums to 1; states are the last label, and a start."""
    size = len(labels)
    table = torch.randn(size + 1, size + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).log_softmax(
        1
    )
    arcs = [(h, k + 1, labels[k], float(table[h, k])) for h in range(size + 1) for k in range(size)]
    return Graph.of(arcs, end={h: float(table[h, size]) for h in range(size + 1)}), table


def log_prior(table, labels, y):
    """log p_LM(y), end included."""
    places = [0, *(labels.index(k) + 1 for k in y)]
    return sum(table[a, b - 1] for a, b in itertools.pairwise(places)) + table[places[-1], -1]
