"""Linear chains by compiled loops on the CPU: log Z with a backward pass of its own, and the best labels.

The same numbers as a sum in torch, by the loops of `_fast/chain.py`; chains that these cannot be sure of, and edges that
change with the position, go in logarithms (`_fast/chain_log.py`). Results do not depend on which is taken, up to rounding.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._fast import chain, chain_log, chain_path
from .._fast.product import product
from . import chain_forward

_WORTH = 1 << 23  # products of a pass, about a third of a millisecond


def covers(*tensors: Tensor) -> bool:
    """Whether there are loops for these: float32 or float64, all on the CPU.

    Example:
        >>> import torch
        >>> covers(torch.zeros(2, 3)), covers(torch.zeros(2, 3).half())
        (True, False)
    """
    return all(t.device.type == "cpu" and t.dtype in (torch.float32, torch.float64) for t in tensors)


def log_partition(
    node: Float[Tensor, "B T K"],
    edge: Float[Tensor, "..."],
    start: Float[Tensor, " K"],
    end: Float[Tensor, " K"],
    lengths: Int[Tensor, " B"],
) -> Float[Tensor, " B"]:
    """log Z of each chain, the sum of exp over all label sequences; differentiable, its gradient by compiled loops too.

    Args: edge (K, K), or (B, T - 1, K, K) with a table for every position; -inf forbids. All of one dtype. A chain of length
    0 has log Z = 0; one that no sequence can have has -inf, and no gradient.

    Example:
        >>> import torch
        >>> zeros = torch.zeros(3)
        >>> log_partition(torch.zeros(2, 4, 3), torch.zeros(3, 3), zeros, zeros, torch.tensor([4, 2])).exp().round()
        tensor([81.,  9.])
    """
    return _LogPartition.apply(node, edge, start, end, lengths)  # pyright: ignore


@torch.no_grad()
def best_path(
    node: Float[Tensor, "B T K"],
    edge: Float[Tensor, "..."],
    start: Float[Tensor, " K"],
    end: Float[Tensor, " K"],
    lengths: Int[Tensor, " B"],
) -> tuple[Float[Tensor, " B"], Int[Tensor, "B T"]]:
    """The highest score of each chain and its labels, zeros beyond the chain; -inf and zeros where all are forbidden.

    Example:
        >>> import torch
        >>> node, edge = torch.tensor([[[0.0, 1.0], [3.0, 0.0]]]), torch.tensor([[0.0, 0.0], [-torch.inf, 0.0]])
        >>> score, labels = best_path(node, edge, torch.zeros(2), torch.zeros(2), torch.tensor([2]))
        >>> score.tolist(), labels.tolist()
        ([3.0], [[0, 0]])
    """
    given = _arrays((node, edge, start, end, lengths))
    K, shared = node.shape[2], edge.ndim == 2
    table = chain_path.padded(given.edge) if shared else given.edge
    scores, paths = np.zeros(len(node)), np.zeros(node.shape[:2], np.int64)
    wide, shift, step = (table.shape[1], 0, 0) if shared else (K, table[0].size if len(node) else 0, K * K)
    chain_path.best(given.node, table.reshape(-1), wide, shift, step, *given[2:], scores, paths)
    return torch.from_numpy(scores).to(node.dtype), torch.from_numpy(paths)


class _Inputs(NamedTuple):
    node: np.ndarray
    edge: np.ndarray
    start: np.ndarray
    end: np.ndarray
    lengths: np.ndarray


def _arrays(tensors: Sequence[Tensor]) -> _Inputs:
    node, edge, start, end, lengths = (t.detach().contiguous().numpy() for t in tensors)
    return _Inputs(node, edge, start, end, lengths)


class _Sums(NamedTuple):
    """What the backward pass reads: a and s of the chains in scaled numbers; a of the others, in logarithms."""

    log_z: np.ndarray
    order: np.ndarray
    lost: np.ndarray
    alpha: np.ndarray
    sums: np.ndarray
    rows: np.ndarray
    log_alpha: np.ndarray


def _forward(given: _Inputs) -> _Sums:
    node, edge, start, end, lengths = given
    order = np.argsort(-lengths, kind="stable")
    log_z, lost = np.zeros(len(node)), lengths > 0
    alpha, sums = chain.kept(node if edge.ndim == 2 else node[:0])
    if len(alpha):
        table = chain.table(edge)
        lost[:] = False

        def forward(part: slice) -> None:
            here = slice(part.start * node.shape[1], part.stop * node.shape[1])
            a, s = alpha[here], sums[here]
            chain.forward(node, start, end, table.forward, table[2:], lengths, order[part], a, s, log_z, lost)

        _on_threads(forward, len(order), node.size * node.shape[2])
    rows = np.flatnonzero(lost)
    log_alpha = np.empty((len(rows), *node.shape[1:]))
    for place, row in enumerate(rows.tolist()):
        log_z[row] = chain_log.forward(node[row], _edges(edge, row), start, end, lengths[row], log_alpha[place])
    return _Sums(log_z, order, lost, alpha, sums, rows, log_alpha)


def _on_threads(work: Callable[[slice], None], chains: int, products: int) -> None:
    """`work` on parts of so many chains, in whole groups, on as many threads as torch uses: the same numbers on any.

    Fewer than `_WORTH` products are not worth threads.
    """
    groups = -(-chains // chain.ROWS)
    threads = min(torch.get_num_threads(), groups) if products >= _WORTH else 1
    ends = [min(groups * n // threads * chain.ROWS, chains) for n in range(threads + 1)]
    parts = [slice(*ends) for ends in itertools.pairwise(ends)]
    if threads == 1:
        work(parts[0])
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, parts))


def _edges(edge: np.ndarray, row: int) -> np.ndarray:
    """The tables of a chain: one for all positions, or one each."""
    return edge[None] if edge.ndim == 2 else edge[row]


def _backward(given: _Inputs, kept: _Sums, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weighted marginals of labels (B, T, K), and the expected edges in the shape of edge."""
    node, edge, _, end, lengths = given
    marginal, slope = np.zeros_like(node), np.zeros_like(edge)
    if len(kept.alpha):
        table = chain.table(edge)

        def backward(part: slice) -> None:
            here = slice(part.start * node.shape[1], part.stop * node.shape[1])
            a, s = kept.alpha[here], kept.sums[here]
            chain.backward(table.backward, lengths, kept.order[part], a, s, weight, kept.lost, marginal)

        _on_threads(backward, len(kept.order), node.size * node.shape[2])
        pairs = product(kept.alpha.T, kept.sums) if edge.dtype == np.float32 else kept.alpha.T @ kept.sums
        allowed = np.exp(edge - edge.dtype.type(table.top))
        np.multiply(allowed, pairs[: len(edge), : len(edge)], out=slope, where=allowed > 0)
    for row, alpha in zip(kept.rows.tolist(), kept.log_alpha):
        if np.isfinite(kept.log_z[row]):
            there = slope[None] if edge.ndim == 2 else slope[row]
            log_z, own = kept.log_z[row], weight[row]
            chain_log.backward(node[row], _edges(edge, row), end, lengths[row], alpha, log_z, own, marginal[row], there)
        elif np.isnan(kept.log_z[row]):
            marginal[row] = np.nan
    return marginal, slope


@final
class _LogPartition(torch.autograd.Function):
    """log Z; backwards, the incoming slope times expected counts of labels and of pairs of labels."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        kept = _forward(_arrays(inputs))
        ctx.save_for_backward(*inputs)
        ctx.kept = kept
        return torch.from_numpy(kept.log_z).to(inputs[0].dtype)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        *weights, lengths = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated: torch takes it
            return (*chain_forward.slopes(weights, lengths, slope), None)
        given = _arrays(ctx.saved_tensors)
        kept, ctx.kept = ctx.kept or _forward(given), None  # the pass writes into what was kept
        node, edge = map(torch.from_numpy, _backward(given, kept, slope.contiguous().numpy()))
        held = (lengths > 0).nonzero()[:, 0]
        return node, edge, node[:, :1].sum((0, 1)), node[held, lengths[held] - 1].sum(0), None
