"""Decoding on graphs: the best paths, and the best label sequences with their exact probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._fast import graph_best as loops
from ..check import instance
from ..space import whole
from .graph import Graph, GraphBatch
from .graph_forward import as_batch, check_emissions, forward
from .graph_loops import in_shares
from .graph_plan import grouped
from .graph_restrict import restrict


class Paths(NamedTuple):
    """Scores of paths, best first (-inf where there are fewer), and the arc at each frame (-1 beyond the length)."""

    score: Float[Tensor, "batch n"]
    arcs: Int[Tensor, "batch n frames"]


@final
@dataclass(frozen=True)
class Decoded:
    """A label sequence, log p(y | x) over all its paths, and the score of its best path."""

    labels: tuple[int, ...]
    log_p: float
    score: float


def best_paths(
    graph: Graph | GraphBatch | Sequence[Graph],
    emissions: Float[Tensor, "batch frames labels"],
    lengths: Int[Tensor, " batch"],
    n: int = 1,
) -> Paths:
    """The n paths of greatest start + sum_t (weight(a_t) + emissions[b, t, label(a_t)]) + end, of each utterance.

    Work is on the CPU, in a compiled loop, an utterance at a time. Of paths that are equally good those of earlier arcs are
    found first. `graph.output[arcs]` are the labels that a path writes.

    References: Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.

    Example:
        >>> import torch, gibbsite as gb
        >>> ctc, frames = gb.exact.ctc_topology(3), torch.tensor([[[0.0, 5, 0], [9, 0, 0], [0, 0, 7]]])
        >>> best = gb.exact.best_paths(ctc, frames, torch.tensor([3]))
        >>> best.score.item(), ctc.label[best.arcs[0, 0]].tolist()
        (21.0, [1, 0, 2])
    """
    return _best(graph, emissions, lengths, whole(n, "n"), distinct=False)


def decode(
    graph: Graph, emissions: Float[Tensor, "batch frames labels"], lengths: Int[Tensor, " batch"], n: int = 1
) -> list[list[Decoded]]:
    """For each utterance the n label sequences with the best paths, in the order of their exact log p(y | x).

    The n sequences are those whose best paths score highest, exactly; p(y | x) is that of the random field, summed over all
    paths that write y and divided by the sum over all. A list is shorter where fewer sequences have a path, and empty where
    no path has that length. A sequence of many middling paths may be more probable than all of these: the larger n, the less
    likely.

    References: Soong, Huang (1991), A tree-trellis based fast search for finding the N best sentence hypotheses.

    Example:
        >>> import math, torch, gibbsite as gb
        >>> frames = torch.tensor([[[0.4, 0.6], [0.6, 0.4]]]).log()
        >>> (best,) = gb.exact.decode(gb.exact.ctc_topology(2), frames, torch.tensor([2]), n=2)
        >>> [(y.labels, round(math.exp(y.log_p), 4)) for y in best]
        [((1,), 0.76), ((), 0.24)]
    """
    instance(graph, Graph, "graph")
    with torch.no_grad():
        score, arcs = _best(graph, emissions, lengths, whole(n, "n"), distinct=True)
        output = torch.cat((graph.output.cpu(), torch.tensor([-1])))  # the last stands for no arc
        written = [[row[row >= 0] for row in rows] for rows in output[arcs]]
        owner, rank = (score > -torch.inf).nonzero().T
        found = [written[b][r] for b, r in zip(owner.tolist(), rank.tolist())]
        counts = torch.tensor([len(y) for y in found], dtype=torch.long)
        labels = torch.nn.utils.rnn.pad_sequence(found, batch_first=True) if found else counts[:, None]
        many, frames = emissions[owner.to(emissions.device)], lengths[owner.to(lengths.device)]
        given = forward(restrict(graph.to(emissions.device), labels, counts), many, frames).cpu()
        log_p = given - forward(graph, emissions, lengths).cpu()[owner]
    lists = [list[Decoded]() for _ in emissions]
    for b, r, y, p in zip(owner.tolist(), rank.tolist(), found, log_p.tolist()):
        lists[b].append(Decoded(tuple(y.tolist()), p, float(score[b, r])))
    return [sorted(each, key=lambda y: -y.log_p) for each in lists]


def _best(
    graph: Graph | GraphBatch | Sequence[Graph], emissions: Tensor, lengths: Tensor, n: int, *, distinct: bool
) -> Paths:
    batch = as_batch(graph, emissions)
    check_emissions(emissions, lengths, batch)
    read, count = emissions.detach().cpu().double().contiguous().numpy(), lengths.cpu().numpy()
    weight, start, end = (x.detach().cpu().double().numpy() for x in (batch.weight, batch.start, batch.end))
    source, target, label, output = (x.cpu().numpy() for x in (batch.source, batch.target, batch.label, batch.output))
    order, first = grouped(target, batch.states)
    into, written, offsets = (
        (first, source[order], label[order], weight[order], order),
        output[order],
        batch.offsets.tolist(),
    )
    score, arcs = np.full((len(read), n), -np.inf), np.full((len(read), n, read.shape[1]), -1)

    def find(b: int) -> None:
        low, high = offsets[:2] if batch.shared else offsets[b : b + 2]
        loops.utterance(into, written, read[b], count[b], low, high, start, end, distinct, score[b], arcs[b])

    in_shares(range(len(read)), find)
    return Paths(torch.from_numpy(score), torch.from_numpy(arcs))
