"""Sums over all paths on the CPU, by compiled loops: the same numbers as `graph_torch`, sooner.

Utterances that share a graph are taken 8 at a time in scaled probabilities, the others one at a time, each with a proof that
underflow lost nothing that counts; where there is none, logarithms are taken. Threads share the utterances.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._fast import graph as logarithms
from .._fast import graph_alone as alone
from .._fast import graph_scaled as scaled
from .graph import GraphBatch
from .graph_kept import kept
from .graph_plan import Layout, grouped, layout, linear
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
    log_z, labels = np.empty(len(read)), np.zeros(read.shape if posteriors else (0, 0, 0), read.dtype)
    left = range(len(read))
    if graph.shared and not weights:
        certain, plan = np.zeros(len(read), bool), _layout(graph)
        in_shares(range(0, len(read), scaled.LANES), lambda b: _lanes(plan, read, count, b, log_z, certain, labels))
        left = np.flatnonzero(~certain).tolist()
        if posteriors:
            labels[left] = 0
    rows = len(read) if graph.shared else 1
    arcs = np.zeros((rows, len(graph.weight) if weights else 0))
    ends = [np.zeros((rows, graph.states if posteriors else 0)) for _ in range(2)]
    if left:
        _alone(graph, left, (read, count), (log_z, labels, arcs, *ends))
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


def _lanes(
    plan: Layout,
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
    fits = _HELD // (8 * scaled.LANES * max(len(plan.arcs[6]), 1))
    segment = frames if fits >= frames else max(isqrt(frames), fits, 1)
    numbers = (plan.shift, plan.gain, plan.count, segment)
    scaled.lanes(plan.arcs, emissions, lengths, begin, plan.start, plan.end, *numbers, log_z, certain, labels)
    log_z[here] += plan.ends


def _alone(graph: GraphBatch, left: Sequence[int], given: tuple, found: tuple) -> None:
    """One utterance a time: in scaled numbers, and where these are not certain in logarithms."""
    emissions, lengths = given
    log_z, labels, arcs, starts, ends = found
    logs = [x.detach().double().numpy() for x in (graph.weight, graph.start, graph.end)]
    small = linear(graph)
    source, target, label = (x.numpy() for x in (graph.source, graph.target, graph.label))
    orders = grouped(target, graph.states), grouped(source, graph.states)
    sides = [(first, other[order], label[order], order) for (order, first), other in zip(orders, (source, target))]
    exact, quick = ([(*side[:3], weight[side[3]], side[3]) for side in sides] for weight in (logs[0], small.weight))
    offsets, none = graph.offsets.numpy(), (np.empty((0, 0), emissions.dtype), np.empty(0))

    def run(b: int) -> None:
        low, high = offsets[:2] if graph.shared else offsets[b : b + 2]
        row = b if graph.shared else 0
        counts = labels[b] if labels.size else none[0], arcs[row] if arcs.size else none[1], starts[row], ends[row]
        here = (emissions[b], lengths[b], low, high)
        arguments: tuple[Any, ...] = (*quick, *here, small.start, small.end, small.shift, *counts)
        log_z[b], certain = alone.utterance(*arguments)
        log_z[b] += small.ends
        if not certain:
            arguments = (*exact, *here, *logs[1:], *counts)
            log_z[b] = logarithms.utterance(*arguments)

    in_shares(left, run)


_layout = kept(layout)
