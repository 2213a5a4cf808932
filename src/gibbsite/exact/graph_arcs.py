"""Joining arcs: all places of sorted keys that equal a query, and sums over groups."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def matches(keys: Int[Tensor, " n"], queries: Int[Tensor, " m"]) -> tuple[Int[Tensor, " found"], Int[Tensor, " found"]]:
    """For each query all places of the sorted keys that equal it, as pairs (query, place).

    Example:
        >>> import torch
        >>> [x.tolist() for x in matches(torch.tensor([3, 5, 5]), torch.tensor([5, 4, 3]))]
        [[0, 0, 2], [1, 2, 0]]
    """
    begin, end = torch.searchsorted(keys, queries), torch.searchsorted(keys, queries, right=True)
    count = end - begin
    query = torch.repeat_interleave(torch.arange(len(queries), device=keys.device), count)
    before = torch.repeat_interleave(count.cumsum(0) - count, count)
    return query, begin[query] + torch.arange(len(query), device=keys.device) - before


def log_sums(x: Float[Tensor, " n"], group: Int[Tensor, " n"], groups: int) -> Float[Tensor, " groups"]:
    """log sum exp of the entries of each group, differentiable; -inf for one that is empty.

    Example:
        >>> import torch
        >>> log_sums(torch.zeros(3), torch.tensor([1, 0, 1]), 3).exp().tolist()
        [1.0, 2.0, 0.0]
    """
    largest = x.detach().new_full((groups,), -torch.inf).scatter_reduce(0, group, x.detach(), "amax")
    largest = largest.masked_fill(largest == -torch.inf, 0)
    total = torch.zeros_like(largest).index_add(0, group, (x - largest[group]).exp())
    none = total == 0
    return (total.masked_fill(none, 1).log() + largest).masked_fill(none, -torch.inf)
