"""Masks of any kind as canonical chains: what is real is moved to the left, in its order, and back again."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """Where the real positions of B rows are: `order` permutes them to the front (None: they are there)."""

    lengths: Int[Tensor, " B"]
    order: Int[Tensor, "B T"] | None
    T: int

    @classmethod
    def of(cls, mask: Bool[Tensor, "B T"]) -> "Layout":
        """The layout of a mask: right pads, left pads, holes, nothing at all."""
        lengths, T = mask.sum(1), mask.shape[1]
        if bool((mask[:, 1:] <= mask[:, :-1]).all()):
            return cls(lengths, None, T)
        return cls(lengths, (~mask).to(torch.uint8).argsort(dim=1, stable=True), T)

    @property
    def inside(self) -> Bool[Tensor, "B T"]:
        """The canonical mask."""
        return torch.arange(self.T, device=self.lengths.device) < self.lengths[:, None]

    @property
    def bridges(self) -> Int[Tensor, "B T-1"] | None:
        """Which edge leads to each real position after the first: the one that enters it, whatever it skips."""
        return None if self.order is None else (self.order[:, 1:] - 1).clamp(min=0)

    def compact(self, x: Tensor) -> Tensor:
        """(..., B, T) labels with their real positions first."""
        return x if self.order is None else x.gather(-1, self.order.expand(x.shape))

    def compact_rows(self, x: Tensor) -> Tensor:
        """(..., B, T, K) potentials with their real positions first."""
        return x if self.order is None else x.gather(-2, self.order[..., None].expand(x.shape))

    def compact_edges(self, x: Tensor) -> Tensor:
        """(B, T-1, K, K) edges, each hole bridged by the edge that enters the position behind it."""
        return x if self.bridges is None else x.gather(1, self.bridges[..., None, None].expand(x.shape))

    def spread(self, x: Tensor) -> Tensor:
        """(..., B, T) canonical values where they came from, 0 elsewhere."""
        x = x.masked_fill(~self.inside, 0)
        return x if self.order is None else torch.zeros_like(x).scatter(-1, self.order.expand(x.shape), x)

    def spread_rows(self, x: Tensor) -> Tensor:
        """(B, T, K) canonical values where they came from, 0 elsewhere."""
        return self.spread(x.movedim(-1, 0)).movedim(0, -1)

    def spread_edges(self, x: Tensor) -> Tensor:
        """(B, T-1, K, K) canonical values at the edges that enter, 0 elsewhere."""
        x = x.masked_fill(~self.inside[:, 1:, None, None], 0)
        if self.bridges is None:
            return x
        return torch.zeros_like(x).scatter_add(1, self.bridges[..., None, None].expand(x.shape), x)
