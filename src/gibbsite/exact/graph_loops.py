"""Sums over all paths on the CPU, by compiled loops: the same numbers as `graph_torch`, sooner.

Utterances that share a graph are taken 8 at a time in scaled probabilities, each with a proof that underflow lost nothing
that counts; where there is none, and for graphs of their own, logarithms are taken. Threads share the utterances.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._fast import graph as logarithms
from .._fast import graph_scaled as scaled
from .graph import GraphBatch
from .graph_torch import Posteriors

_HELD = 1 << 25  # bytes that 8 utterances hold for their backward pass; with longer ones frames are computed again


def log_partition(
    graph: GraphBatch,
    emissions: Float[Tensor, "batch frames labels"],
    lengths: Int[Tensor, " batch"],
    *,
    posteriors: bool,
    weights: bool,
) -> tuple[Float[Tensor, " batch"], Posteriors | None]:
    """log Z of each utterance, and its derivatives if `posteriors`; those by arcs, starts and ends only if `weights`."""
    read, count = emissions.detach().contiguous().numpy(), lengths.numpy()
    log_z, labels = np.empty(len(read)), np.zeros(read.shape if posteriors else (0, 0, 0))
    left = range(len(read))
    if graph.shared and not weights:
        certain, plan = np.zeros(len(read), bool), _plan(graph)
        in_shares(range(0, len(read), scaled.LANES), lambda b: plan.run(read, count, b, log_z, certain, labels))
        left = np.flatnonzero(~certain).tolist()
        if posteriors:
            labels[left] = 0
    rows = len(read) if graph.shared else 1
    arcs = np.zeros((rows, len(graph.weight) if weights else 0))
    ends = [np.zeros((rows, graph.states)) for _ in range(2)]
    if left:
        _take_logarithms(graph, left, (read, count), (log_z, labels, arcs, *ends))
    counts = (torch.from_numpy(x) for x in (labels, arcs, *ends))
    return torch.from_numpy(log_z), Posteriors(*counts) if posteriors else None


def in_shares(work: Iterable[int], do: Callable[[int], object]) -> None:
    """do(b) for each b, by as many threads as torch uses."""
    threads = torch.get_num_threads()
    if threads == 1:
        for b in work:
            do(b)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(do, work))


def _take_logarithms(graph: GraphBatch, left: Sequence[int], given: tuple, found: tuple) -> None:
    weight, start, end = (x.detach().double().numpy() for x in (graph.weight, graph.start, graph.end))
    source, target, label = (x.numpy() for x in (graph.source, graph.target, graph.label))
    order, first = grouped(target, graph.states)
    into = first, source[order], label[order], weight[order]
    order, first = grouped(source, graph.states)
    out = first, target[order], label[order], weight[order], order
    arguments = (into, out, *given, graph.offsets.numpy(), graph.shared, start, end, *found)
    in_shares(left, lambda b: logarithms.utterances(np.array([b]), *arguments))


class _Plan(NamedTuple):
    """A shared graph with linear weights, the largest of each kind taken off, and its arcs in two orders."""

    arcs: tuple[np.ndarray, ...]
    start: np.ndarray
    end: np.ndarray
    shift: float
    ends: float
    gain: float
    version: int

    def run(
        self,
        emissions: np.ndarray,
        lengths: np.ndarray,
        begin: int,
        log_z: np.ndarray,
        certain: np.ndarray,
        labels: np.ndarray,
    ) -> None:
        """The utterances from `begin`, as many as there are lanes."""
        here = slice(begin, begin + scaled.LANES)
        frames = max(int(lengths[here].max()), 1)
        fits = _HELD // (8 * scaled.LANES * max(len(self.arcs[-1]), 1))
        segment = frames if fits >= frames else max(isqrt(frames), fits, 1)
        numbers = (self.shift, self.gain, segment)
        scaled.lanes(self.arcs, emissions, lengths, begin, self.start, self.end, *numbers, log_z, certain, labels)
        log_z[here] += self.ends


_plans: weakref.WeakKeyDictionary[GraphBatch, _Plan] = weakref.WeakKeyDictionary()


def _plan(graph: GraphBatch) -> _Plan:
    known = _plans.get(graph)
    if known is None or known.version != graph.weight._version:
        known = _plans[graph] = _make_plan(graph)
    return known


def _make_plan(graph: GraphBatch) -> _Plan:
    weight, start, end = (x.detach().double().numpy() for x in (graph.weight, graph.start, graph.end))
    source, target, label = (x.numpy() for x in (graph.source, graph.target, graph.label))
    most = [x.max() if len(x) and x.max() > -np.inf else 0.0 for x in (weight, start, end)]
    linear, start, end = (np.exp(x - m) for x, m in zip((weight, start, end), most))
    code = target * (label.max(initial=0) + 1) + label
    _, example, group = np.unique(code, return_index=True, return_inverse=True)
    by_source, source_first = grouped(source, graph.states)
    by_group, group_first = grouped(group, len(example))
    arcs = (source_first, group[by_source], linear[by_source], group_first, source[by_group], linear[by_group])
    gain = max(float(np.log(np.bincount(source, linear, graph.states).max(initial=1.0))), 0.0)
    return _Plan(
        (*arcs, label[example], target[example]), start, end, most[0], most[1] + most[2], gain, graph.weight._version
    )


def grouped(key: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """An order in which equal keys are together, and where each begins, the end of the last included."""
    first = np.concatenate(([0], np.bincount(key, minlength=groups).cumsum()))
    return np.argsort(key, kind="stable"), first
