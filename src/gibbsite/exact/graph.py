"""Weighted automata: arcs between states, each with an input label, a weight and an output label; and batches of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..check import instance
from ..space import whole

EPSILON = -1
"""The label of an arc that reads (or writes) nothing."""

_INF = float("inf")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A weighted automaton: a path from a start to a final state weighs the sum of its weights, in logarithms.

    Arc a leads from source[a] to target[a], reads label[a] and writes output[a] (`EPSILON`: nothing) with the log-weight
    weight[a]; start and end are the log-weights of beginning and ending in a state, -inf where that cannot be. Cycles are
    allowed. Weights may require a gradient.

    References: Mohri, Pereira, Riley (2002), Weighted finite-state transducers in speech recognition.

    Example:
        >>> import gibbsite as gb
        >>> graph = gb.exact.Graph.of([(0, 1, 2, -0.5), (1, 1, 2, 0.0)], end={1: 0.0})
        >>> graph.states, graph.arcs
        (2, 2)
    """

    source: Int[Tensor, " arcs"]
    target: Int[Tensor, " arcs"]
    label: Int[Tensor, " arcs"]
    weight: Float[Tensor, " arcs"]
    start: Float[Tensor, " states"]
    end: Float[Tensor, " states"]
    output: Int[Tensor, " arcs"]

    def __post_init__(self) -> None:
        for name in ("weight", "start", "end"):
            _check_weights(getattr(self, name), name)
        if self.start.shape != self.end.shape:
            raise ValueError(f"end: expected a weight a state, {len(self.start)} as start, got {len(self.end)}")
        for name in ("source", "target", "label", "output"):
            least, below = (0, self.states) if name in ("source", "target") else (EPSILON, None)
            _check_integers(getattr(self, name), name, self.arcs, least, below)
        for name, does in (("start", "begin"), ("end", "end")):
            if not bool((getattr(self, name) > -_INF).any()):
                raise ValueError(f"{name}: expected a state of a weight above -inf, got none: no path could {does}")

    @classmethod
    def of(
        cls,
        arcs: Sequence[tuple],
        *,
        start: int | Mapping[int, float] = 0,
        end: int | Mapping[int, float],
        states: int | None = None,
    ) -> "Graph":
        """From arcs (source, target, label, weight) or (source, target, label, weight, output), output = label if not said.

        start and end map states to log-weights, or are one state of weight 0; states is 1 + the largest if not said.
        """
        rows = [(*arc, arc[2]) if len(arc) == 4 else tuple(arc) for arc in arcs]
        if any(len(row) != 5 for row in rows):
            raise ValueError(
                "arcs: expected (source, target, label, weight) or (source, target, label, weight, output) each"
            )
        ends = [{where: 0.0} if isinstance(where, int) else dict(where) for where in (start, end)]
        named = [state for row in rows for state in row[:2]] + [state for end in ends for state in end]
        count = max(named, default=-1) + 1 if states is None else whole(states, "states")
        if min(named, default=0) < 0 or max(named, default=0) >= count:
            raise ValueError(f"states: expected states in [0, {count}), got {min(named)} to {max(named)}")
        weights = [torch.full((count,), -_INF, dtype=torch.float64) for _ in ends]
        for weight, end in zip(weights, ends):
            for state, value in end.items():
                weight[state] = value
        source, target, label, output = (torch.tensor([row[i] for row in rows], dtype=torch.long) for i in (0, 1, 2, 4))
        return cls(
            source,
            target,
            label,
            torch.tensor([row[3] for row in rows], dtype=torch.float64),
            weights[0],
            weights[1],
            output,
        )

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.start)

    @property
    def arcs(self) -> int:
        """How many arcs there are."""
        return len(self.weight)

    @cached_property
    def labels(self) -> int:
        """1 + the largest input label: how many columns emissions must have at least."""
        return int(self.label.max()) + 1 if self.arcs else 0

    @cached_property
    def outputs(self) -> int:
        """1 + the largest output label."""
        return int(self.output.max()) + 1 if self.arcs else 0

    @cached_property
    def reads_nothing(self) -> bool:
        """Whether some arc reads no label."""
        return bool((self.label == EPSILON).any())

    def to(self, device: torch.device | str) -> "Graph":
        """The same graph on another device; made once, if its weights ask for no gradients and are not changed in place."""
        device = torch.device(device)
        if self.weight.device == device:
            return self
        known, now = self._elsewhere.get(device), changes(self)
        if known is None or known[0] != now or any(tensor.requires_grad for tensor in self.tensors()):
            known = self._elsewhere[device] = now, Graph(*(tensor.to(device) for tensor in self.tensors()))
        return known[1]

    @cached_property
    def _elsewhere(self) -> dict[torch.device, tuple[tuple[int, ...], "Graph"]]:
        return {}

    def tensors(self) -> tuple[Tensor, ...]:
        """All its fields, in order."""
        return self.source, self.target, self.label, self.weight, self.start, self.end, self.output

    @cached_property
    def batch(self) -> "GraphBatch":
        """This graph for every utterance."""
        return GraphBatch(*self.tensors(), offsets=torch.tensor([0, self.states]), shared=True)

    def __repr__(self) -> str:
        content = b"".join(t.detach().cpu().numpy().tobytes() for t in self.tensors())
        return f"Graph({self.states} states, {self.arcs} arcs, {hashlib.blake2b(content, digest_size=8).hexdigest()})"


@final
@dataclass(frozen=True, eq=False)
class GraphBatch:
    """One graph for each utterance, side by side: utterance b has the states from offsets[b] to offsets[b + 1].

    If `shared`, there is one graph, and every utterance has it.
    """

    source: Int[Tensor, " arcs"]
    target: Int[Tensor, " arcs"]
    label: Int[Tensor, " arcs"]
    weight: Float[Tensor, " arcs"]
    start: Float[Tensor, " states"]
    end: Float[Tensor, " states"]
    output: Int[Tensor, " arcs"]
    offsets: Int[Tensor, " graphs_and_one"]
    shared: bool = False

    @staticmethod
    def of(graphs: Sequence[Graph]) -> "GraphBatch":
        """Graphs side by side.

        Example:
            >>> import gibbsite as gb
            >>> a = gb.exact.Graph.of([(0, 1, 2, -0.5)], end=1)
            >>> gb.exact.GraphBatch.of([a, a]).offsets.tolist()
            [0, 2, 4]
        """
        graphs = [instance(graph, Graph, f"graphs[{n}]") for n, graph in enumerate(graphs)]
        if not graphs:
            raise ValueError("graphs: expected at least one, got none")
        offsets = torch.tensor([0, *(graph.states for graph in graphs)]).cumsum(0)
        shift = torch.repeat_interleave(offsets[:-1], torch.tensor([graph.arcs for graph in graphs])).to(
            graphs[0].source.device
        )
        source, target, *rest = (torch.cat(parts) for parts in zip(*(graph.tensors() for graph in graphs)))
        return GraphBatch(source + shift, target + shift, *rest, offsets=offsets)

    @property
    def states(self) -> int:
        """How many states there are in all."""
        return len(self.start)

    @cached_property
    def labels_read(self) -> tuple[int, int]:
        """The smallest and the largest label that is read."""
        return (int(self.label.min()), int(self.label.max())) if len(self.label) else (0, -1)

    @cached_property
    def owner(self) -> Int[Tensor, " states"]:
        """The utterance of each state."""
        count = self.offsets.diff()
        return torch.repeat_interleave(torch.arange(len(count)), count).to(self.start.device)


def changes(graph: Graph | GraphBatch) -> tuple[int, ...]:
    """How often weights, starts and ends were changed in place; tensors of inference do not say."""
    return tuple(0 if x.is_inference() else x._version for x in (graph.weight, graph.start, graph.end))


def _check_weights(value: object, name: str) -> None:
    tensor = instance(value, Tensor, name)
    got = f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
    if tensor.ndim != 1 or not tensor.is_floating_point():
        raise ValueError(f"{name}: expected log-weights, a float tensor of one dimension, got {got}")
    if bool((tensor.isnan() | (tensor == _INF)).any()):
        raise ValueError(f"{name}: expected log-weights that are finite or -inf, got {tensor.max().item()}")


def _check_integers(value: object, name: str, size: int, least: int, below: int | None) -> None:
    tensor = instance(value, Tensor, name)
    got = f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
    if tensor.dtype != torch.long or tensor.shape != (size,):
        raise ValueError(f"{name}: expected int64 of shape ({size},), one an arc, got {got}")
    if size and (int(tensor.min()) < least or (below is not None and int(tensor.max()) >= below)):
        range_ = f"at least {least}" if below is None else f"in [{least}, {below})"
        raise ValueError(f"{name}: expected values {range_}, got {int(tensor.min())} to {int(tensor.max())}")


def check_lengths(lengths: object, name: str, batch: int, most: int) -> None:
    """An error unless these are `batch` integers in [0, most]."""
    if not isinstance(lengths, Tensor) or lengths.dtype != torch.long or lengths.shape != (batch,):
        got = f"{lengths.dtype} {tuple(lengths.shape)}" if isinstance(lengths, Tensor) else repr(lengths)
        raise ValueError(f"{name}: expected int64 of shape ({batch},), one an utterance, got {got.removeprefix('torch.')}")
    if batch and (int(lengths.min()) < 0 or int(lengths.max()) > most):
        raise ValueError(f"{name}: expected values in [0, {most}], got {int(lengths.min())} to {int(lengths.max())}")
