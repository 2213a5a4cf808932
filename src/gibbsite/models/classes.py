"""What pairwise models share: colour classes of their graph, whose sites are drawn at once, each from its conditional."""

from abc import abstractmethod
from typing import Protocol, cast

import torch
from jaxtyping import Int
from torch import Tensor

from .. import random
from ..local import closed_changes, has_closed_form
from ..model import Blocked, ClosedForm, Factorised, Model, leaves
from ..random import Source
from .graph import colour_classes


class Structured(Protocol):
    """The couplings of a pairwise model, as far as its graph goes."""

    sites: int

    @property
    def structure_version(self) -> int:
        """Changes when the structure does."""
        ...

    def structure(self) -> Int[Tensor, "edges 2"]:
        """The pairs that are coupled or that learning could couple."""
        ...

    def edges(self) -> Int[Tensor, "edges 2"]:
        """The pairs that are coupled now."""
        ...


class Coloured(ClosedForm, Blocked):
    """Mixed into a pairwise model: its blocks are independent sets of sites, found by colouring its graph."""

    _coloured: tuple[Structured, int, list[Tensor]] | None = None

    @property
    @abstractmethod
    def graph(self) -> Structured:
        """The couplings."""

    @property
    def classes(self) -> list[Int[Tensor, " members"]]:
        """Independent sets that cover the sites; found anew when the graph was replaced or loaded over."""
        version = self.graph.structure_version
        if self._coloured is None or self._coloured[0] is not self.graph or self._coloured[1] != version:
            self._coloured = (self.graph, version, colour_classes(self.graph.structure().cpu(), self.graph.sites))
        return self._coloured[2]

    @property
    def blocks(self) -> int:
        return len(self.classes)

    def draw_block(self, block: int, x: Tensor, source: Source, clamp: Tensor | None) -> Tensor:
        return draw_class(cast(Model, self), self.classes[block], x, source, clamp)


def coloured_of(model: Model) -> Coloured | None:
    """The pairwise model in `model`: itself, or the only one in a sum whose other terms have independent sites."""
    found = [term for _, term in leaves(model) if not isinstance(term, Factorised)]
    known = len(found) == 1 and isinstance(found[0], Coloured) and has_closed_form(model)
    return cast(Coloured, found[0]) if known else None


def draw_class(
    model: Model, members: Int[Tensor, " members"], x: Int[Tensor, "batch *event"], source: Source, clamp: Tensor | None
) -> Int[Tensor, "batch *event"]:
    """x with the free sites of one independent set drawn from their conditionals; no two members may be coupled."""
    members = members.to(x.device)
    if clamp is not None:
        members = members[~clamp.flatten().to(x.device)[members]]
    if not len(members):
        return x
    sites = members.expand(len(x), -1)
    with torch.no_grad():
        drawn = random.categorical(closed_changes(model, x, sites), source)
    return x.flatten(1).scatter(1, sites, drawn.to(x.dtype)).view_as(x)
