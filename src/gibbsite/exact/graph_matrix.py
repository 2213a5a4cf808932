"""The sum over all paths of one graph for many utterances, in scaled probabilities: a sparse product a frame.

For devices that do one large operation as fast as a small one. A group is what the arcs of one target and one label have in
common. Legend: G groups, S states, R utterances, T frames, V labels.
"""

import math
import warnings
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from . import graph_torch
from .graph import GraphBatch
from .graph_kept import kept
from .graph_torch import Posteriors

_TINY = torch.finfo(torch.float64).tiny
_LOST = 1e-13  # of Z: what may be lost to underflow before logarithms are taken instead


@final
class _Plan(NamedTuple):
    """exp(weight) by group and source, its transpose, groups by target and by label, and where paths begin and end."""

    weight_GS: Tensor
    weight_SG: Tensor
    target_SG: Tensor
    label_VG: Tensor
    target_G: Int[Tensor, " G"]
    label_G: Int[Tensor, " G"]
    start_S: Float[Tensor, " S"]
    end_S: Float[Tensor, " S"]
    largest: Float[Tensor, " 3"]
    arcs: int
    gain: float


def log_partition(
    graph: GraphBatch, emissions: Float[Tensor, "R T V"], lengths: Int[Tensor, " R"], *, posteriors: bool, weights: bool
) -> tuple[Float[Tensor, " R"], Posteriors | None]:
    """log Z of each utterance, and its derivatives if `posteriors`; those by arcs, starts and ends only if `weights`.

    Where `weights` are asked for, utterances have graphs of their own, or underflow could show, logarithms are taken.
    """
    scaled = graph.shared and not weights and len(graph.weight) and emissions.numel()
    found = _scaled(graph, emissions, lengths) if scaled else None
    if found is None:
        return graph_torch.log_partition(graph, emissions, lengths, posteriors=posteriors)
    log_z, labels = found
    nothing = log_z.new_zeros(0)
    return log_z, Posteriors(labels, nothing, nothing, nothing) if posteriors else None


def _scaled(graph: GraphBatch, emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor] | None:
    """log Z and its derivatives by the emissions, or None where underflow could show.

    With x_t = exp(emissions_t - their largest), r_t(g) = x_t(label of g) sum over arcs a of g of exp(weight) alpha(source),
    alpha_t(s) = sum over groups g into s of r_t(g) / c_t where c_t makes the sum 1, and beta alike from the end with its
    largest value 1. What is below the smallest number at a frame is lost: less than `loss` = (arcs and states times that
    number) in the unit of the frame. From alpha it is lost; to beta it is added, so that no beta is too small and what was
    lost would have come to at most the unit of beta. The sum of it all is compared with Z.
    """
    plan = _plan(graph)
    here_TR = torch.arange(emissions.shape[1], device=emissions.device)[:, None] < lengths.to(emissions.device)
    e_TVR = torch.where(here_TR[:, None], emissions.detach().double().permute(1, 2, 0), 0)
    largest_TR = e_TVR.amax(1)
    largest_TR = torch.where(largest_TR > -torch.inf, largest_TR, 0)
    x_TVR = (e_TVR - largest_TR[:, None]).exp()
    alpha_SR, r_TGR, c_TR = _forward(plan, x_TVR, here_TR)
    loss = 4 * _TINY * (plan.arcs + graph.states)
    labels_TVR, most_TR = _backward(plan, x_TVR, here_TR, r_TGR, loss)
    read_TR = torch.where(here_TR, largest_TR + plan.largest[0], 0)
    before_TR = (c_TR.log() + read_TR).cumsum(0)  # the unit of alpha after each frame, and of beta before it
    behind_TR = (most_TR.log() + read_TR).flip(0).cumsum(0).flip(0)
    log_z_R = (alpha_SR * plan.end_S[:, None]).sum(0).log() + before_TR[-1]
    units_TR = torch.where(here_TR, (before_TR - c_TR.log()) + (behind_TR - most_TR.log() - read_TR), -torch.inf)
    worst_R = torch.maximum(units_TR.amax(0), behind_TR[0]) + plan.gain
    lost_R = worst_R + math.log(4 * graph.states * loss * (len(x_TVR) + 1)) - log_z_R
    if not bool((lost_R < math.log(_LOST)).all()):
        return None
    return log_z_R + plan.largest[1] + plan.largest[2], labels_TVR.permute(2, 0, 1)


def _forward(plan: _Plan, x_TVR: Tensor, here_TR: Tensor) -> tuple[Tensor, list[Tensor], Float[Tensor, "T R"]]:
    alpha_SR = plan.start_S[:, None].expand(-1, x_TVR.shape[2]).contiguous()
    r_TGR, c_TR = [], torch.ones_like(here_TR, dtype=torch.float64)
    for t, x_VR in enumerate(x_TVR):
        r_GR = torch.sparse.mm(plan.weight_GS, alpha_SR) * x_VR[plan.label_G]
        c_R = torch.where(here_TR[t], r_GR.sum(0), 1)
        r_GR = r_GR / torch.where(c_R > 0, c_R, 1)
        alpha_SR = torch.where(here_TR[t], torch.sparse.mm(plan.target_SG, r_GR), alpha_SR)
        r_TGR.append(r_GR)
        c_TR[t] = c_R
    return alpha_SR, r_TGR, c_TR


def _backward(
    plan: _Plan, x_TVR: Tensor, here_TR: Tensor, r_TGR: list[Tensor], loss: float
) -> tuple[Tensor, Float[Tensor, "T R"]]:
    """Shares of the labels at each frame, and what beta was divided by."""
    labels_TVR, most_TR = torch.zeros_like(x_TVR), torch.ones_like(here_TR, dtype=torch.float64)
    beta_SR = (plan.end_S[:, None] + loss).expand(-1, x_TVR.shape[2])
    for t in reversed(range(len(x_TVR))):
        beta_GR = beta_SR[plan.target_G]
        share_GR = r_TGR[t] * beta_GR
        shared_R = share_GR.sum(0)
        share_VR = torch.sparse.mm(plan.label_VG, share_GR / torch.where(shared_R > 0, shared_R, 1))
        labels_TVR[t, : len(share_VR)] = share_VR * here_TR[t]
        earlier_SR = torch.sparse.mm(plan.weight_SG, beta_GR * x_TVR[t][plan.label_G]) + loss
        most_TR[t] = torch.where(here_TR[t], earlier_SR.amax(0), 1)
        beta_SR = torch.where(here_TR[t], earlier_SR / most_TR[t] + loss, beta_SR)
    return labels_TVR, most_TR


@kept
@torch.no_grad()
def _plan(graph: GraphBatch) -> _Plan:
    """The matrices of a graph."""
    most = [x.detach().double() for x in (graph.weight, graph.start, graph.end)]
    largest = torch.stack([x.max() if len(x) else x.new_zeros(()) for x in most])
    largest = torch.where(largest > -torch.inf, largest, 0)
    weight_A, start_S, end_S = (x.sub(top).exp() for x, top in zip(most, largest))
    labels = int(graph.label.max()) + 1
    group, group_A = (graph.target * labels + graph.label).unique(return_inverse=True)
    target_G, label_G = group // labels, group % labels
    number_G, ones_G = torch.arange(len(group), device=group.device), torch.ones_like(group, dtype=torch.float64)
    gain = math.log(max(float(torch.zeros_like(start_S).index_add(0, graph.source, weight_A).max()), 1.0))
    sizes = {"G": len(group), "S": graph.states, "V": labels}
    return _Plan(
        _matrix(group_A, graph.source, weight_A, sizes["G"], sizes["S"]),
        _matrix(graph.source, group_A, weight_A, sizes["S"], sizes["G"]),
        _matrix(target_G, number_G, ones_G, sizes["S"], sizes["G"]),
        _matrix(label_G, number_G, ones_G, sizes["V"], sizes["G"]),
        target_G, label_G, start_S, end_S, largest, len(graph.weight), gain,
    )  # fmt: skip


def _matrix(row: Tensor, column: Tensor, value: Tensor, rows: int, columns: int) -> Tensor:
    """A sparse matrix of sums of values by row and column, its rows compressed."""
    with warnings.catch_warnings(), torch.sparse.check_sparse_tensor_invariants(True):
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return torch.sparse_coo_tensor(torch.stack((row, column)), value, (rows, columns)).coalesce().to_sparse_csr()
