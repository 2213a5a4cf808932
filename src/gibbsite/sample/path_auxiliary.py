"""The path-auxiliary sampler: a path of several informed one-site moves, accepted as one."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..local import site_logits
from ..model import Model
from ..random import Source
from ..space import whole
from .balance import Balance, Power, check_balance
from .clamp import check_parity, discrete, free_mask
from .kernel import Cost, Proposal, State


@final
@dataclass(frozen=True, eq=False)
class PathAuxiliary(Proposal):
    """Moves `length` times, each move drawn with g(exp d) where d is the first-order change along the path so far.

    The table d_ik is linear: after site i goes to k', its row becomes d_i - d_ik'. One gradient at each end serves the
    path forward from x and the same path backward from x', so a step costs one gradient (PAFS of the paper). On bits the
    length must be odd: an even number of flips would keep the parity of sum(x) for ever.

    References: Sun et al. (2022), Path auxiliary proposal for MCMC in discrete space.
    """

    length: int = 3
    balance: Balance = field(default_factory=Power)
    clamp: Tensor | None = None

    def __post_init__(self):
        check_balance(self.balance)
        object.__setattr__(self, "length", whole(self.length, "length"))

    def init(self, model: Model, x: Tensor) -> State:
        x = discrete(model).check(x)
        check_parity(model, self.length, "length")
        return State(x, *site_logits(model, x, "taylor", start=True))

    def cost(self, model: Model) -> Cost:
        """Evaluations and gradients a step."""
        return Cost(1, 1)

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        free = free_mask(model, self.clamp, state.x.device)
        x, change, path, forward = state.x.flatten(1).long(), state.local, [], 0.0
        for _ in range(self.length):
            log_q = self._log_q(x, change, free)
            move = random.categorical(log_q, generator)
            forward = forward + log_q.gather(-1, move[:, None])[:, 0]
            site, value = move // change.shape[-1], move % change.shape[-1]
            path.append((site, x.gather(1, site[:, None])[:, 0]))
            x, change = _move(x, change, site, value)
        proposed = x.to(state.x.dtype).view_as(state.x)
        new = State(proposed, *site_logits(model, proposed, "taylor", start=False))
        return new, self._backward(x, new.local, path, free) - forward, self.cost(model)

    def _backward(self, x: Tensor, change: Tensor, path: list[tuple[Tensor, Tensor]], free: Tensor) -> Tensor:
        total = torch.zeros_like(change[:, 0, 0])
        for site, old in reversed(path):
            move = site * change.shape[-1] + old
            total = total + self._log_q(x, change, free).gather(-1, move[:, None])[:, 0]
            x, change = _move(x, change, site, old)
        return total

    def _log_q(self, x: Tensor, change: Tensor, free: Tensor) -> Float[Tensor, "chains moves"]:
        log_g = self.balance.log(change).masked_fill(~free[:, None], -torch.inf)
        return log_g.scatter(-1, x[..., None], -torch.inf).flatten(1).log_softmax(-1)


def _move(x: Tensor, change: Tensor, site: Int[Tensor, " chains"], value: Int[Tensor, " chains"]) -> tuple[Tensor, Tensor]:
    row = torch.arange(len(x), device=x.device)
    moved = change.clone()
    moved[row, site] -= change[row, site, value][:, None]
    return x.scatter(1, site[:, None], value[:, None]), moved
