"""Metropolis within Gibbs: a proposal corrected on one block of sites at a time, the rest held."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ..check import function
from ..model import Model
from ..random import Source
from .clamp import as_mask, check_blocks, discrete, free_sites
from .combine import Cycle
from .gibbs import start
from .kernel import MH, Info, Kernel, Proposal, State, started


@final
@dataclass(frozen=True, eq=False)
class WithinGibbs(Kernel):
    """One Metropolis-Hastings move of each block in turn (single sites by default), by `propose(held)`.

    `blocks` must hold every free site: one in none would never move. `held` is a mask of the event's shape, true outside
    the block; any discrete proposal takes it as its `clamp`.

    References: Tierney (1994), Markov chains for exploring posterior distributions.

    Example:
        >>> import gibbsite as gb
        >>> kernel = gb.sample.WithinGibbs(lambda held: gb.sample.RandomFlips(clamp=held))
    """

    propose: Callable[[Tensor], Proposal]
    blocks: Sequence[Sequence[int]] | None = None
    clamp: Tensor | None = None

    def __post_init__(self):
        function(self.propose, "propose", "lambda held: gb.sample.RandomFlips(clamp=held)")
        object.__setattr__(self, "clamp", as_mask(self.clamp))

    def init(self, model: Model, x: Tensor) -> State:
        state = start(model, x)
        if self.blocks is not None:
            check_blocks(self.blocks, free_sites(model, self.clamp, state.x.device), discrete(model).sites)
        self._cycle(model, state.x.device).init(model, state.x)
        return state

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        cycle = self._cycle(model, state.x.device)
        inside, cost = started(cycle, model, state.x)
        end, info = cycle.step(model, inside, generator)
        return State(end.x, end.u), info._replace(cost=info.cost.plus(cost))

    def _cycle(self, model: Model, device: torch.device) -> Cycle:
        space, free, kernels = discrete(model), free_sites(model, self.clamp, device), []
        for block in self.blocks if self.blocks is not None else free[:, None].tolist():
            held = torch.ones(space.sites, dtype=torch.bool, device=device)
            held[torch.as_tensor(block, device=device)] = False
            if self.clamp is not None:
                held = held | self.clamp.flatten().to(device)
            if not bool(held.all()):
                kernels.append(MH(self.propose(held.view(space.shape))))
        return Cycle(tuple(kernels))
