"""The forward algorithm on linear chains in any semiring, in torch: any device, any number of derivatives.

B rows, T positions, K labels. Chains are canonical: the label of row b at t exists where t < lengths[b].
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .semirings import Log, Semiring


class Messages(NamedTuple):
    """What the forward pass knows at each position: all label prefixes, summed by their last label."""

    log_alpha: list[Tensor]  # T of (B, K), each less the levels up to its position
    level: Tensor  # (B,) the levels taken out up to the row's end


def messages(semiring: Semiring, node: Tensor, edge: Tensor, start: Tensor, lengths: Int[Tensor, " B"]) -> Messages:
    """alpha_1 = start node_1, alpha_t(j) = node_t(j) sum_i alpha_(t-1)(i) edge(i, j); beyond a row's end alpha stays.

    The largest of each alpha is taken out and summed apart, in double precision: differences between labels, which are all
    that gradients depend on, are as exact at the end of a long sequence as at its start.
    """
    steps = [edge] * (node.shape[-2] - 1) if edge.ndim == 2 else edge.unbind(-3)
    first, *rest = node.unbind(-2)
    alpha = semiring.lift(start + first)
    level = semiring.level(alpha)
    alpha, levels = semiring.scale(alpha, -level[..., None]), [level.double()]
    every = [alpha]
    for t, (node_t, edge_t) in enumerate(zip(rest, steps, strict=True), 1):
        new = semiring.scale(semiring.sum(semiring.scale(alpha[..., :, None], edge_t), -2), node_t)
        level, inside = semiring.level(new), t < lengths
        alpha = torch.where(inside[:, None], semiring.scale(new, -level[..., None]), alpha)
        levels.append(torch.where(inside, level, 0).double())
        every.append(alpha)
    return Messages(every, torch.stack(levels).sum(0))


def forward(
    semiring: Semiring, node: Tensor, edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> Float[Tensor, "*element B"]:
    """The sum over all label sequences of each row, in the semiring; the unit where there are no labels."""
    alpha, level = messages(semiring, node, edge, start, lengths)
    # the level, which has no gradient, is added last: the total is rounded once
    total = semiring.sum(semiring.scale(alpha[-1], end), -1)
    total = semiring.scale(total.double(), level).to(total.dtype)
    return torch.where(lengths > 0, total, semiring.lift(torch.zeros_like(node[..., 0, 0])))


def log_partition(
    node: Float[Tensor, "B T K"],
    edge: Float[Tensor, "K K"] | Float[Tensor, "B T-1 K K"],
    start: Float[Tensor, " K"],
    end: Float[Tensor, " K"],
    lengths: Int[Tensor, " B"],
) -> Float[Tensor, " B"]:
    """log sum_y exp(start[y_1] + sum_t node_t[y_t] + sum_t edge_t[y_t, y_(t+1)] + end[y_n]); 0 for n = 0, -inf if all are.

    References: Rabiner (1989), A tutorial on hidden Markov models; Lafferty, McCallum, Pereira (2001).

    Example:
        >>> import torch
        >>> flat = torch.zeros(2, 2)
        >>> log_partition(torch.zeros(1, 3, 2), flat, flat[0], flat[0], torch.tensor([3])).exp().round().tolist()
        [8.0]
    """
    return forward(Log(), node, edge, start, end, lengths)


def slopes(weights: list[Tensor], lengths: Int[Tensor, " B"], slope: Float[Tensor, " B"]) -> list[Tensor | None]:
    """The gradient of sum slope log Z to those of node, edge, start and end that need one, with a graph of its own."""
    needed = [w for w in weights if w.requires_grad]
    node, edge, start, end = weights
    log_z = log_partition(node, edge, start, end, lengths)
    found = iter(torch.autograd.grad(log_z, needed, slope, create_graph=True, allow_unused=True))
    return [next(found) if w.requires_grad else None for w in weights]
