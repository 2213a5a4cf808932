"""log Z of linear chains by products of matrices, in scaled probabilities: a few kernels a step.

B rows, T positions, K labels; W_t = exp(node_t), start and end included, and E = exp(edge), shared or one a position, each
less its largest: s_t = a_(t-1) E, a_t = s_t W_t / c_t with c_t its sum, log Z = sum_t log c_t and what was taken out.
Backwards, with p the marginals: G_t = p_t / s_t, p_(t-1) = a_(t-1) (E G_t), and p(y_(t-1) = i, y_t = j) is
a_(t-1)(i) E_ij G_t(j).

All in double precision, whose range is what makes it exact. `forward` says so, or not, and then the logarithms of
`chain_forward` are summed instead. With every edge allowed and a range R of them at most 250 all labels follow from the
best one, whose share is 1 / K at least, and what all numbers below e^-700 could have added to Z is K^2 T exp(2 R - 700) of
it. Elsewhere no number may have been lost: where a_t >= e^-300, or 0, and edges and nodes that are allowed range over 100
and 200 at most, no product is below e^-600.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from . import chain_forward
from .semirings import finite


class Pass(NamedTuple):
    """What the forward pass leaves."""

    log_z: Float[Tensor, " B"]
    alpha: Float[Tensor, "B T K"]
    sums: Float[Tensor, "B T K"]  # s_t, and 1 where it is 0 and at the first position
    E: Float[Tensor, "K K"] | Float[Tensor, "B T-1 K K"]
    sure: Tensor  # whether no number was lost that matters


def log_partition(
    node: Float[Tensor, "B T K"], edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """log Z of each chain, differentiable any number of times; the arguments are those of `chain_forward.log_partition`.

    Example:
        >>> import torch
        >>> flat = torch.zeros(2, 2)
        >>> log_partition(torch.zeros(1, 3, 2), flat, flat[0], flat[0], torch.tensor([3])).exp().round().tolist()
        [8.0]
    """
    passed = forward(node.detach(), edge.detach(), start.detach(), end.detach(), lengths)
    if not passed.sure:
        return chain_forward.log_partition(node, edge, start, end, lengths)
    return _Scaled.apply(node, edge, start, end, lengths, passed)  # pyright: ignore


def forward(node: Tensor, edge: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Pass:
    """The forward pass."""
    node, edge, start, end = node.double(), edge.double(), start.double(), end.double()
    place = torch.arange(node.shape[1], device=node.device)
    inside, last = place < lengths[:, None], (place == lengths[:, None] - 1)[..., None]
    node = torch.where(last, node + end, node)
    node = torch.cat((node[:, :1] + start, node[:, 1:]), 1)
    if edge.ndim > 2 and not any(edge.stride()[:2]):  # one table, shown at every position
        edge = edge[0, 0]
    if edge.ndim > 2:  # edges beyond a row's end are nobody's business
        edge = torch.where(inside[:, 1:, None, None], edge, edge.masked_fill(~inside[:, 1:, None, None], -torch.inf).amax())
    top, peak = finite(node.amax(-1, keepdim=True)), finite(edge.amax())
    W, E = (node - top).exp(), (edge - peak).exp()
    total = W[:, 0].sum(-1, keepdim=True)
    a = W[:, 0] / total.clamp(min=_TINY)
    alpha, sums, totals = [a], [torch.ones_like(a)], [total]
    for w, E_t in zip(W.unbind(1)[1:], _steps(E, node.shape[1])):
        s = _times(a, E_t)
        a = s * w
        total = a.sum(-1, keepdim=True)
        a = a / total.clamp(min=_TINY)
        alpha.append(a)
        sums.append(s)
        totals.append(total)
    c, a, s = torch.cat(totals, 1), torch.stack(alpha, 1), torch.stack(sums, 1)
    log_z = torch.where(inside, c.log() + top[..., 0], 0).sum(1) + (lengths - 1).clamp(min=0) * peak
    spread = peak - edge.masked_fill(edge == -torch.inf, torch.inf).amin()
    smallest = a.masked_fill((a == 0) | ~inside[..., None], 1).amin()
    nodes = (top - node).masked_fill((node == -torch.inf) | ~inside[..., None], 0).amax()
    kept = (spread <= 100) & (nodes <= 200) & (smallest >= _LEAST)
    return Pass(log_z, a, s.masked_fill(s == 0, 1), E, ((edge > -torch.inf).all() & (spread <= 250)) | kept)


def _steps(E: Tensor, T: int) -> Sequence[Tensor]:
    """The table of each step."""
    return [E] * (T - 1) if E.ndim == 2 else E.unbind(1)


def _times(a: Float[Tensor, "B K"], E: Tensor) -> Float[Tensor, "B K"]:
    return a @ E if E.ndim == 2 else (a[:, None] @ E)[:, 0]


_TINY = 1e-300
_LEAST = 1e-130  # e^-300


@final
class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: Tensor, edge: Tensor, start: Tensor, end: Tensor, lengths: Tensor, passed: Pass) -> Tensor:
        ctx.save_for_backward(node, edge, start, end, lengths)
        ctx.passed = passed
        return passed.log_z.to(node.dtype)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        *weights, lengths = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated itself
            return (*chain_forward.slopes(weights, lengths, slopes[0]), None, None)
        given = _gradients(ctx.passed, lengths, slopes[0].double(), weights[1])
        return (*(x.to(weight.dtype) for x, weight in zip(given, weights)), None, None)


def _gradients(
    passed: Pass, lengths: Tensor, slope: Float[Tensor, " B"], edge: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of the nodes, edges (in the shape of `edge`), start and end: marginals, weighted by each row's slope."""
    log_z, alpha, sums, E, _ = passed
    last = torch.arange(alpha.shape[1], device=alpha.device) == lengths[:, None] - 1
    weight = torch.where(log_z > -torch.inf, slope, 0)[:, None]  # a row without a label sequence has no gradient
    ends = alpha * (last * weight)[..., None]
    p, rest, steps = ends[:, -1], [], []
    tables = _steps(E.mT, alpha.shape[1])
    every = zip(ends[:, :-1].unbind(1), alpha[:, :-1].unbind(1), sums[:, 1:].unbind(1), tables, strict=True)
    for end_t, a, s, back in reversed(list(every)):
        rest.append(p)
        steps.append(p / s)
        p = torch.addcmul(end_t, a, _times(steps[-1], back))
    node = torch.stack([p, *reversed(rest)], 1)
    if not steps:
        return node, torch.zeros_like(edge), p.sum(0), ends.sum((0, 1))
    G = torch.stack(steps[::-1], 1)
    pairs = torch.einsum("bti,btj->ij" if edge.ndim == 2 else "bti,btj->btij", alpha[:, :-1], G)
    return node, E * pairs, p.sum(0), ends.sum((0, 1))
