"""log Z of weighted automata that read emissions, differentiable: compiled loops on the CPU, torch on other devices."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..check import instance
from . import graph_loops, graph_matrix
from .graph import Graph, GraphBatch, check_lengths
from .graph_semiring import total
from .semirings import Log, Semiring

LOG = Log()


def forward(
    graph: Graph | GraphBatch | Sequence[Graph],
    emissions: Float[Tensor, "batch frames labels"],
    lengths: Int[Tensor, " batch"],
    semiring: Semiring = LOG,
) -> Float[Tensor, "*element batch"]:
    """log Z of each utterance: the log of the sum over paths of length lengths[b] of exp(their weights + emissions read).

    log Z_b = log sum over paths (a_1, ..., a_T) of exp(start + sum_t (weight(a_t) + emissions[b, t, label(a_t)]) + end)

    One graph serves all utterances, or each has its own. The result is in double precision, for differences of large numbers
    are taken of it; its gradients are posteriors: of labels at each frame for emissions, of arcs for weights that ask for
    them; with `create_graph` torch takes them, in logarithms, to be differentiated again. -inf where no path has that
    length, with gradients 0. Emissions may be -inf, which forbids a label. In another `semiring` the total is the score of
    the best path, of the k best, ...; `best_paths` has the paths.

    References: Rabiner (1989), A tutorial on hidden Markov models.

    Example:
        >>> import torch, gibbsite as gb
        >>> anything = gb.exact.Graph.of([(0, 0, k, 0.0) for k in range(3)], end=0)
        >>> gb.exact.forward(anything, torch.zeros(1, 4, 3), torch.tensor([4])).exp().item()  # 3^4 paths
        81.0...
    """
    batch = as_batch(graph, emissions)
    check_emissions(emissions, lengths, batch)
    if not isinstance(instance(semiring, Semiring, "semiring"), Log):
        return total(batch, emissions, lengths, semiring)
    return _LogPartition.apply(emissions, batch.weight, batch.start, batch.end, batch, lengths)  # pyright: ignore


def check_emissions(emissions: Tensor, lengths: Tensor, batch: GraphBatch) -> None:
    """Errors for emissions or lengths of a wrong kind or shape, or that the graphs cannot read."""
    if emissions.ndim != 3 or not emissions.is_floating_point() or not emissions.shape[2]:
        got = f"{str(emissions.dtype).removeprefix('torch.')} {tuple(emissions.shape)}"
        raise ValueError(f"emissions: expected floats of shape (batch, frames, labels), got {got}")
    check_lengths(lengths, "lengths", len(emissions), emissions.shape[1])
    _check_finite(emissions.detach(), lengths)
    if not batch.shared and len(batch.offsets) != len(emissions) + 1:
        raise ValueError(f"graphs: expected one an utterance, {len(emissions)}, got {len(batch.offsets) - 1}")
    least, most = batch.labels_read
    if least < 0:
        raise ValueError("graph: expected arcs that read a label each, some read nothing; call remove_epsilon first")
    if most >= emissions.shape[2]:
        raise ValueError(f"emissions: expected a column for each label of the graph, 0 to {most}, got {emissions.shape[2]}")


def _check_finite(emissions: Tensor, lengths: Tensor) -> None:
    """An error for NaN or +inf within the lengths."""
    plain = emissions.device.type == "cpu" and emissions.dtype in (torch.float32, torch.float64)
    if not emissions.numel() or (emissions.numpy() if plain else emissions).max() < torch.inf:  # NaN is not
        return
    largest = emissions.amax(-1)  # NaN where there is one
    here = torch.arange(largest.shape[1], device=largest.device) < lengths.to(largest.device)[:, None]
    bad = here & ~(largest < torch.inf)
    if bool(bad.any()):
        b, t = bad.nonzero()[0].tolist()
        k = int((~(emissions[b, t] < torch.inf)).to(torch.uint8).argmax())
        raise ValueError(f"emissions: expected finite numbers or -inf, got {emissions[b, t, k].item()} at {[b, t, k]}")


def as_batch(graph: Graph | GraphBatch | Sequence[Graph], emissions: Tensor) -> GraphBatch:
    """One graph for all, or one each, where the emissions are."""
    if isinstance(graph, Graph):
        return graph.to(emissions.device).batch
    if isinstance(graph, GraphBatch):
        return graph
    parts = [instance(part, Graph, f"graph[{n}]") for n, part in enumerate(graph)]
    return GraphBatch.of([part.to(emissions.device) for part in parts])


@final
class _LogPartition(torch.autograd.Function):
    """log Z, with the posteriors taken at once where a gradient will be wanted."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, weight: Tensor, start: Tensor, end: Tensor, graph: GraphBatch, lengths: Tensor
    ) -> Tensor:
        wanted, weights = any(ctx.needs_input_grad), any(ctx.needs_input_grad[1:])
        if emissions.device.type == "cpu":
            read = emissions if emissions.dtype in (torch.float32, torch.float64) else emissions.float()
            log_z, counts = graph_loops.log_partition(graph, read, lengths, posteriors=wanted, weights=weights)
        else:
            log_z, counts = graph_matrix.log_partition(graph, emissions, lengths, posteriors=wanted, weights=weights)
        if counts is not None:
            ctx.graph, ctx.lengths = graph, lengths
            needed = zip(counts, ctx.needs_input_grad)
            ctx.save_for_backward(emissions, weight, start, end, log_z, *(x if need else None for x, need in needed))
        return log_z

    @staticmethod
    def backward(ctx: Any, slope: Float[Tensor, " batch"]) -> tuple[Tensor | None, ...]:
        inputs, (log_z, labels, *rest) = ctx.saved_tensors[:4], ctx.saved_tensors[4:]
        graph, slope = ctx.graph, slope.masked_fill(log_z == -torch.inf, 0)
        if torch.is_grad_enabled():  # the gradient is to be differentiated: torch takes it
            return *_slopes(graph, inputs, ctx.lengths, slope), None, None
        owners = [graph.owner[graph.source], graph.owner, graph.owner] if not graph.shared else []
        grads = [None if labels is None else slope.to(labels.dtype)[:, None, None] * labels]
        for n, counts in enumerate(rest):
            grads.append(None if counts is None else slope @ counts if graph.shared else slope[owners[n]] * counts[0])
        return *(None if g is None else g.to(x.dtype) for g, x in zip(grads, inputs)), None, None


def _slopes(graph: GraphBatch, inputs: Sequence[Tensor], lengths: Tensor, slope: Tensor) -> list[Tensor | None]:
    """The gradient of sum slope log Z to those of the four inputs that need one, with a graph of its own."""
    emissions, weight, start, end = inputs
    beyond = torch.arange(emissions.shape[1], device=emissions.device) >= lengths.to(emissions.device)[:, None]
    same = replace(graph, weight=weight, start=start, end=end)
    log_z = total(same, emissions.masked_fill(beyond[..., None], 0), lengths, LOG)
    needed = [x for x in inputs if x.requires_grad]
    found = iter(torch.autograd.grad(log_z, needed, slope, create_graph=True, allow_unused=True))
    return [next(found) if x.requires_grad else None for x in inputs]
