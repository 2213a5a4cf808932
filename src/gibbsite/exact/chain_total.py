"""log Z of canonical chains: by compiled loops where there are any, else in torch."""

from jaxtyping import Float, Int
from torch import Tensor

from . import chain_forward, chain_loops


def log_partition(
    node: Float[Tensor, "B T K"], edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """log Z of each chain, differentiable any number of times; the arguments are those of `chain_forward.log_partition`."""
    way = chain_loops if chain_loops.covers(node, edge, start, end) else chain_forward
    return way.log_partition(node, edge, start, end, lengths)
