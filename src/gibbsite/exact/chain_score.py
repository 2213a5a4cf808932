"""U of label sequences on canonical chains: of labels, and of their float view, on which gradients are taken."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .chain_inputs import Canonical


def score_labels(c: Canonical, y: Int[Tensor, "n B T"]) -> Float[Tensor, "n B"]:
    """The sum of the potentials along the labels, 0 beyond the lengths."""
    inside = torch.arange(y.shape[-1], device=y.device) < c.lengths[:, None]
    node = c.node.expand(len(y), *c.node.shape).gather(-1, y[..., None])[..., 0]
    pair = y[..., :-1] * c.node.shape[-1] + y[..., 1:]
    if c.edge.ndim == 2:
        edge = c.edge.flatten()[pair]
    else:
        edge = c.edge.flatten(-2).expand(len(y), *pair.shape[1:], -1).gather(-1, pair[..., None])[..., 0]
    last = y.gather(-1, (c.lengths - 1).clamp(min=0).expand(len(y), -1)[..., None])[..., 0]
    total = torch.where(inside, node, 0).sum(-1) + torch.where(inside[:, 1:], edge, 0).sum(-1)
    return total + torch.where(c.lengths > 0, c.start[y[..., 0]] + c.end[last], 0)


def score_view(c: Canonical, z: Float[Tensor, "n B T K"]) -> Float[Tensor, "n B"]:
    """The same of one-hot rows, 0 beyond the lengths.

    -inf is taken as the lowest number whose sums stay finite, for 0 times -inf is NaN.
    """
    T = z.shape[-2]
    floor = torch.finfo(c.node.dtype).min / (4 * T)
    node, edge, start, end = (x.clamp(min=floor) for x in c[:4])
    last = torch.arange(T, device=z.device) == c.lengths[:, None] - 1
    with torch.autocast(z.device.type, enabled=False):  # which would cut products short
        total = (z * node).sum((-1, -2)) + (z[..., :-1, :] * (edge @ z[..., 1:, :, None])[..., 0]).sum((-1, -2))
        return total + z[..., 0, :] @ start + ((z * last[..., None]).sum(-2) @ end)
