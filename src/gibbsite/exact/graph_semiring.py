"""Totals over all paths of weighted automata in any semiring: the best path, the k best, a draw; differentiable by torch."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .graph import GraphBatch
from .graph_torch import side_by_side
from .semirings import Semiring


def total(
    graph: GraphBatch, emissions: Float[Tensor, "batch frames labels"], lengths: Int[Tensor, " batch"], semiring: Semiring
) -> Float[Tensor, "*element batch"]:
    """The sum over paths of the product of start, weights, emissions and end, for each utterance.

    Legend: R utterances that share the graph, or 1; S states, D the most arcs into one.
    """
    e_TVR, column_A = side_by_side(graph, emissions.double())
    e_TRV = e_TVR.transpose(1, 2)
    length_RS = lengths.to(e_TRV.device)[:, None] if graph.shared else lengths.to(e_TRV.device)[graph.owner][None]
    arc_SD = _padded(graph.target, graph.states)
    source_SD, column_SD = (torch.cat((x, x.new_zeros(1)))[arc_SD] for x in (graph.source, column_A))
    weight_SD = torch.cat((graph.weight.double(), graph.weight.new_full((1,), -torch.inf).double()))[arc_SD]
    alpha = semiring.lift(graph.start.double().expand(e_TRV.shape[1], -1))
    for t, e_RV in enumerate(e_TRV):
        reached = semiring.sum(semiring.scale(alpha[..., source_SD], weight_SD + e_RV[:, column_SD]))
        alpha = torch.where(t < length_RS, reached, alpha)
    alpha = semiring.scale(alpha, graph.end.double())
    if graph.shared:
        return semiring.sum(alpha)
    state_BS = _padded(graph.owner, len(graph.offsets) - 1)
    none = semiring.lift(alpha.new_full((1, 1), -torch.inf))
    return semiring.sum(torch.cat((alpha, none), -1)[..., 0, :][..., state_BS])


def _padded(group: Int[Tensor, " n"], groups: int) -> Int[Tensor, "groups most"]:
    """The members of each group, padded with n."""
    order, count = group.argsort(stable=True), torch.bincount(group, minlength=groups)
    table = order.new_full((groups, max(int(count.max()), 1) if groups else 1), len(group))
    row = group[order]
    table[row, torch.arange(len(order), device=order.device) - (count.cumsum(0) - count)[row]] = order
    return table
