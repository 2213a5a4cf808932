"""The Hamming ball sampler: a block of sites redrawn exactly within a ball whose centre is drawn first."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from .. import random
from ..model import Model, evaluate
from ..random import Source
from ..space import whole
from .clamp import check_blocks, discrete, free_sites
from .gibbs import start
from .kernel import Cost, Info, Kernel, State, always


@final
@dataclass(frozen=True, eq=False)
class HammingBall(Kernel):
    """A block is chosen; its centre c is drawn uniformly from the ball around x, then x' from p within the ball around c.

    Blocks are windows of `size` consecutive free sites (row-major) unless `blocks` lists them all; radius >= size is exact
    block Gibbs by enumeration. A step evaluates U at every state of the ball.

    References: Titsias and Yau (2017), The Hamming ball sampler.
    """

    size: int = 10
    radius: int = 1
    blocks: Sequence[Sequence[int]] | None = None
    clamp: Tensor | None = None

    def __post_init__(self):
        object.__setattr__(self, "size", whole(self.size, "size"))
        object.__setattr__(self, "radius", whole(self.radius, "radius"))

    def init(self, model: Model, x: Tensor) -> State:
        free = free_sites(model, self.clamp, x.device)
        if self.blocks is not None:
            blocks = check_blocks(self.blocks, free, discrete(model).sites)
            if len({len(block) for block in blocks}) != 1 or not torch.isin(torch.cat(blocks), free).all():
                raise ValueError("blocks: expected lists of free sites, all of one length")
        return start(model, x)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        space, windows = discrete(model), self._windows(model, state.x.device)
        shifts = _ball(windows.shape[1], min(self.radius, windows.shape[1]), space.states).to(state.x.device)
        block = windows[random.integers(len(windows), (len(state.x),), generator)]
        centre = _shift(state.x, block, shifts[random.integers(len(shifts), (len(state.x),), generator)], space.states)
        ball = _shift(
            centre[:, None].expand(-1, len(shifts), *space.shape).flatten(0, 1),
            block.repeat_interleave(len(shifts), 0),
            shifts.repeat(len(block), 1),
            space.states,
        )
        u = evaluate(model, ball).view(len(block), -1)
        index = random.categorical(u, generator)
        row = torch.arange(len(block), device=index.device)
        new = State(ball.view(len(block), -1, *space.shape)[row, index], u[row, index])
        return new, always(new.u, Cost(len(shifts), 0))

    def _windows(self, model: Model, device: torch.device) -> Int[Tensor, "blocks size"]:
        if self.blocks is not None:
            return torch.stack([torch.as_tensor(block, dtype=torch.long, device=device) for block in self.blocks])
        free = free_sites(model, self.clamp, device)
        size = min(self.size, len(free))
        starts = torch.arange(0, len(free), size, device=device).clamp(max=len(free) - size)
        return free[starts[:, None] + torch.arange(size, device=device)]


@lru_cache(maxsize=16)
def _ball(size: int, radius: int, states: int) -> Int[Tensor, "ball size"]:
    rows = []
    for distance in range(radius + 1):
        for sites in combinations(range(size), distance):
            for values in product(range(1, states), repeat=distance):
                row = [0] * size
                for site, value in zip(sites, values, strict=True):
                    row[site] = value
                rows.append(row)
    return torch.tensor(rows)


def _shift(x: Tensor, block: Tensor, shift: Tensor, states: int) -> Tensor:
    flat = x.flatten(1).long().scatter_add(1, block, shift) % states
    return flat.to(x.dtype).view_as(x)
