"""What a linear chain is made of, checked, and brought to canonical form: no holes, left-aligned, one batch dimension."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .chain_masks import Layout
from .structured import check_below_inf, log_potentials, spreads, wide


class Canonical(NamedTuple):
    """The arguments of `log_partition`."""

    node: Float[Tensor, "B T K"]
    edge: Float[Tensor, "K K"] | Float[Tensor, "B T-1 K K"]
    start: Float[Tensor, " K"]
    end: Float[Tensor, " K"]
    lengths: Int[Tensor, " B"]


def check_chain(
    node: Tensor, edge: Tensor, start: Tensor | None, end: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    """The arguments of a chain with its mask, if their types, shapes and values are right."""
    node, edge = log_potentials(node, "node"), log_potentials(edge, "edge")
    if node.ndim < 2 or node.shape[-2] < 1 or node.shape[-1] < 2:
        raise ValueError(
            "node: expected potentials of shape (*batch, T, K) with at least 1 position and 2 labels, got shape "
            f"{tuple(node.shape)}"
        )
    *batch, T, K = node.shape
    full = (*batch, T - 1, K, K)
    if edge.shape != (K, K) and not (edge.ndim > 2 and spreads(edge, full)):
        raise ValueError(f"edge: expected shape {(K, K)} or, an edge a position, {full}, got {tuple(edge.shape)}")
    ends = []
    for name, value in (("start", start), ("end", end)):
        ends.append(None if value is None else log_potentials(value, name))
        if value is not None and (ends[-1].shape[-1:] != (K,) or not spreads(ends[-1], (*batch, K))):
            raise ValueError(f"{name}: expected shape {(K,)} or {(*batch, K)}, got {tuple(ends[-1].shape)}")
    whole = mask is None
    mask = torch.ones(node.shape[:-1], dtype=torch.bool, device=node.device) if mask is None else torch.as_tensor(mask)
    if mask.dtype != torch.bool or mask.shape != node.shape[:-1]:
        raise ValueError(
            f"mask: expected booleans of shape {tuple(node.shape[:-1])}, True where there is a label, got "
            f"{str(mask.dtype).removeprefix('torch.')} {tuple(mask.shape)}"
        )
    check_below_inf(node if whole else node.masked_fill(~mask[..., None], 0), "node")
    for name, value in (("edge", edge), ("start", ends[0]), ("end", ends[1])):
        if value is not None and (name != "edge" or value.ndim == 2):
            check_below_inf(value, name)
    return node, edge, ends[0], ends[1], mask


def canonical(
    node: Tensor, edge: Tensor, start: Tensor | None, end: Tensor | None, mask: Tensor, layout: Layout
) -> Canonical:
    """The same chain without holes, left-aligned, at least in float32; what is beyond the mask is replaced by 0.

    A start or end of its own for each row becomes part of the row's first or last node.
    """
    T, K = node.shape[-2:]
    batch, B = node.shape[:-2], len(layout.lengths)
    dtype, inside = wide(node, edge, start, end), layout.inside
    node = layout.compact_rows(node.to(dtype).reshape(B, T, K))
    node = node if bool(inside.all()) else node.masked_fill(~inside[..., None], 0)
    edge = edge.to(dtype)
    if edge.ndim > 2:
        edge = layout.compact_edges(edge.expand(*batch, T - 1, K, K).reshape(B, T - 1, K, K))
        edge = edge.masked_fill(~inside[:, 1:, None, None], 0)
    none = node.new_zeros(K)
    start, end = (none if x is None else x.to(dtype) for x in (start, end))
    position = torch.arange(T, device=node.device)
    if start.ndim > 1:
        node = torch.where((position == 0)[:, None], node + start.expand(*batch, K).reshape(B, 1, K), node)
        start = none
    if end.ndim > 1:
        last = position == layout.lengths[:, None] - 1
        node = torch.where(last[..., None], node + end.expand(*batch, K).reshape(B, 1, K), node)
        end = none
    return Canonical(node, edge, start, end, layout.lengths)
