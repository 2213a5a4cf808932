"""The sum over all paths of weighted automata that read emissions, and its derivatives: in torch, on any device.

Legend: A arcs, S states, R utterances that share the graph (1 where each has its own), T frames.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .graph import GraphBatch


class Posteriors(NamedTuple):
    """Derivatives of log Z: expected counts of labels at each frame, of arcs, of starts and of ends.

    A row an utterance where they share a graph; one row where each has its own.
    """

    emissions: Float[Tensor, "batch frames labels"]
    weight: Float[Tensor, "rows arcs"]
    start: Float[Tensor, "rows states"]
    end: Float[Tensor, "rows states"]


def log_partition(
    graph: GraphBatch, emissions: Float[Tensor, "batch frames labels"], lengths: Int[Tensor, " batch"], *, posteriors: bool
) -> tuple[Float[Tensor, " batch"], Posteriors | None]:
    """log Z of each utterance, in double precision, and its derivatives if `posteriors`.

    alpha_t(s) = log sum over arcs into s of exp(alpha_(t-1)(source) + weight + emission_t(label)), and Z is the sum over
    states of exp(alpha_T + end); beta is the same from the end, and an arc's posterior at t is
    exp(alpha_(t-1)(source) + weight + emission_t(label) + beta_t(target) - log Z).
    """
    e_TVR, column_A = side_by_side(graph, emissions.detach().double())
    frames, _, rows = e_TVR.shape
    weight_A1, start_S1, end_S1 = (x.detach().double()[:, None] for x in (graph.weight, graph.start, graph.end))
    lengths = lengths.to(emissions.device)
    length_SR = lengths[None] if graph.shared else lengths[graph.owner][:, None]
    order, counts = _grouped(graph.target, graph.states)
    source, column, weight = graph.source[order], column_A[order], weight_A1[order]
    alphas = [start_S1.expand(-1, rows)]
    for t in range(frames):
        reached = _log_sums(alphas[t][source] + weight + e_TVR[t][column], counts)
        alphas.append(torch.where(t < length_SR, reached, alphas[t]))
    log_z_GR = _log_sums(alphas[-1] + end_S1, graph.offsets.diff().to(emissions.device))
    if not posteriors:
        return log_z_GR.flatten(), None
    impossible = torch.where(log_z_GR > -torch.inf, log_z_GR, torch.inf)  # exp(-inf) = 0: no path, no counts
    log_z_SR = impossible.expand(graph.states, -1) if graph.shared else impossible[graph.owner]
    order, counts = _grouped(graph.source, graph.states)
    source, target, column, weight = graph.source[order], graph.target[order], column_A[order], weight_A1[order]
    labels_TVR, arcs_AR = torch.zeros_like(e_TVR), torch.zeros_like(weight).repeat(1, rows)
    beta_SR = end_S1.expand(-1, rows)
    for t in reversed(range(frames)):
        here_SR = t < length_SR
        score_AR = weight + e_TVR[t][column] + beta_SR[target]
        share_AR = torch.exp(alphas[t][source] + score_AR - log_z_SR[source])
        share_AR = torch.where(here_SR.expand(graph.states, -1)[source], share_AR, 0.0)
        labels_TVR[t].index_add_(0, column, share_AR)
        arcs_AR[order] += share_AR
        beta_SR = torch.where(here_SR, _log_sums(score_AR, counts), beta_SR)
    starts_SR, ends_SR = torch.exp(start_S1 + beta_SR - log_z_SR), torch.exp(alphas[-1] + end_S1 - log_z_SR)
    labels_BTV = (
        labels_TVR.permute(2, 0, 1) if graph.shared else labels_TVR.view(frames, *emissions.shape[::2]).transpose(0, 1)
    )
    return log_z_GR.flatten(), Posteriors(labels_BTV, arcs_AR.T, starts_SR.T, ends_SR.T)


def side_by_side(graph: GraphBatch, emissions: Tensor) -> tuple[Float[Tensor, "frames columns rows"], Int[Tensor, " arcs"]]:
    """Emissions frame by frame, and the column that each arc reads: utterances are rows, or columns side by side."""
    if graph.shared:
        return emissions.permute(1, 2, 0), graph.label
    together = emissions.transpose(0, 1).flatten(1)[:, :, None]
    return together, graph.label + emissions.shape[2] * graph.owner[graph.source]


def _grouped(key: Int[Tensor, " arcs"], states: int) -> tuple[Int[Tensor, " arcs"], Int[Tensor, " states"]]:
    """An order of the arcs in which those of a state are together, and how many each state has."""
    return key.argsort(stable=True), torch.bincount(key, minlength=states)


def _log_sums(x: Float[Tensor, "n rows"], counts: Int[Tensor, " groups"]) -> Float[Tensor, "groups rows"]:
    """log sum exp over each group of consecutive entries; -inf for one that is empty."""
    largest = torch.segment_reduce(x, "max", lengths=counts, axis=0, initial=-torch.inf)
    largest = largest.masked_fill(largest == -torch.inf, 0)
    total = torch.segment_reduce((x - largest.repeat_interleave(counts, 0)).exp(), "sum", lengths=counts, axis=0)
    return total.log() + largest
