"""log Z and the best labels of canonical chains: by compiled loops on the CPU, elsewhere in torch."""

from jaxtyping import Float, Int
from torch import Tensor

from . import chain_forward, chain_loops, chain_paths, chain_scaled


def log_partition(
    node: Float[Tensor, "B T K"], edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """log Z of each chain, differentiable any number of times; the arguments are those of `chain_forward.log_partition`."""
    in_torch = chain_scaled if node.numel() and edge.numel() else chain_forward
    way = chain_loops if chain_loops.covers(node, edge, start, end) else in_torch
    return way.log_partition(node, edge, start, end, lengths)


def best_path(
    node: Float[Tensor, "B T K"], edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> tuple[Float[Tensor, " B"], Int[Tensor, "B T"]]:
    """The highest score of each chain, -inf where all are forbidden, and its labels, 0 beyond the chain."""
    if chain_loops.covers(node, edge, start, end):
        return chain_loops.best_path(node, edge, start, end, lengths)
    score, labels = chain_paths.best_paths(1, node, edge, start, end, lengths)
    return score[:, 0], labels[:, 0]
