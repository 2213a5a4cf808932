"""Composition of weighted automata: what the first writes, the second reads."""

import torch
from jaxtyping import Int
from torch import Tensor

from ..check import instance
from .graph import EPSILON, Graph
from .graph_arcs import matches
from .graph_trim import trim


def compose(first: Graph, second: Graph) -> Graph:
    """The graph of all pairs of paths of which the second reads what the first writes; their weights add.

    (first o second)(x, z) = log sum_y exp(first(x, y) + second(y, z)). Arcs of `first` that write nothing and arcs of
    `second` that read nothing are taken alone; between two labels those of `first` come before those of `second`, so that
    no pair of paths counts twice. States that lie on no path from a start to an end are left out. Gradients reach the
    weights of both.

    References: Mohri, Pereira, Riley (2002), Weighted finite-state transducers in speech recognition.

    Example:
        >>> import gibbsite as gb
        >>> bigram = gb.exact.Graph.of([(0, 1, 1, -1.0), (1, 0, 2, -2.0)], end=0)
        >>> gb.exact.compose(gb.exact.ctc_topology(3), bigram).states
        4
    """
    for graph, name in ((first, "first"), (second, "second")):
        instance(graph, Graph, name)
    pairs = _Pairs(first, second)
    starts = [(g.start > -torch.inf).nonzero()[:, 0].cpu() for g in (first, second)]
    a, b = torch.cartesian_prod(*starts).T
    new = pairs.code(a, b, torch.zeros_like(a))
    seen, arcs = new, []
    while len(new):
        found = pairs.leaving(new)
        arcs.append(found)
        new = found[1].unique()
        new = new[~torch.isin(new, seen, assume_unique=True)]
        seen = torch.cat((seen, new))
    seen = seen.sort().values
    source, target, one, two = (torch.cat(parts) for parts in zip(*arcs))
    state_one, state_two, taken = pairs.states(seen)
    moved, read = one >= 0, two >= 0
    nothing = torch.full_like(one, EPSILON)
    # the place after the last stands for an arc that was not taken
    label = torch.cat((first.label.cpu(), nothing[:1]))[one]
    output = torch.cat((second.output.cpu(), nothing[:1]))[two]
    weight = torch.where(moved, _padded(first.weight)[one], 0.0) + torch.where(read, _padded(second.weight)[two], 0.0)
    begin = torch.where(taken == 0, first.start.cpu()[state_one] + second.start.cpu()[state_two], -torch.inf)
    end = first.end.cpu()[state_one] + second.end.cpu()[state_two]
    if not bool((end > -torch.inf).any()):
        raise ValueError(
            "compose: expected a path in which `second` reads what `first` writes, got none; compare their labels"
        )
    source, target = torch.searchsorted(seen, source), torch.searchsorted(seen, target)
    return trim(Graph(source, target, label, weight, begin, end, output)).to(first.weight.device)


class _Pairs:
    """Arcs of pairs of states: (state of first, state of second, whether an arc that reads nothing was the last)."""

    def __init__(self, first: Graph, second: Graph) -> None:
        self.first, self.second = first.to("cpu"), second.to("cpu")
        self.labels = max(second.labels, first.outputs) + 1
        self.order_one = self.first.source.argsort(stable=True)
        self.sources = self.first.source[self.order_one]
        self.order_two = (self.second.source * self.labels + self.second.label + 1).argsort(stable=True)
        self.keys = (self.second.source * self.labels + self.second.label + 1)[self.order_two]

    def code(self, one: Tensor, two: Tensor, taken: Tensor) -> Int[Tensor, " pairs"]:
        return (one * self.second.states + two) * 2 + taken

    def states(self, code: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return code // 2 // self.second.states, code // 2 % self.second.states, code % 2

    def leaving(self, code: Int[Tensor, " pairs"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All arcs out of these pairs: source code, target code, arc of first, arc of second (-1: none)."""
        one, two, taken = self.states(code)
        pair, place = matches(self.sources, one)
        arc = self.order_one[place]
        writes = self.first.output[arc] != EPSILON
        alone = ~writes & (taken[pair] == 0)
        parts = [self._moves(code, pair[alone], arc[alone], None)]
        pair, arc = pair[writes], arc[writes]
        which, place = matches(self.keys, two[pair] * self.labels + self.first.output[arc] + 1)
        parts.append(self._moves(code, pair[which], arc[which], self.order_two[place]))
        pair, place = matches(self.keys, two * self.labels)
        parts.append(self._moves(code, pair, None, self.order_two[place]))
        source, target, arc_one, arc_two = (torch.cat(columns) for columns in zip(*parts))
        return source, target, arc_one, arc_two

    def _moves(self, code: Tensor, pair: Tensor, one: Tensor | None, two: Tensor | None) -> tuple[Tensor, ...]:
        state_one, state_two, _ = self.states(code[pair])
        none = torch.full_like(pair, -1)
        to_one = state_one if one is None else self.first.target[one]
        to_two = state_two if two is None else self.second.target[two]
        alone = torch.full_like(pair, int(one is None))
        return code[pair], self.code(to_one, to_two, alone), none if one is None else one, none if two is None else two


def _padded(weight: Tensor) -> Tensor:
    return torch.cat((weight.cpu(), weight.new_zeros(1, device="cpu")))
