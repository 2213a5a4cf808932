"""Discrete Langevin: every site moves at once, each from its own informed categorical. `MH` of it is DMALA."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import number
from ..local import How, site_logits
from ..model import Model
from ..random import Source
from .balance import Balance, Power, check_balance
from .clamp import discrete, free_mask
from .informed import informed_cost
from .kernel import Cost, Proposal, State


@final
@dataclass(frozen=True, eq=False)
class DiscreteLangevin(Proposal):
    """q(x' | x) = prod_i softmax_k(log g(exp d_ik) - |e_k - e_x_i|^2 / (2 step_size)), e the float view of a state.

    With the default g = sqrt and how="taylor" this is the paper's proposal, step_size its alpha (binary: a flip costs
    1 / (2 alpha); categorical, one-hot: 1 / alpha). `MH(DiscreteLangevin(a))` is DMALA, exact; `Unadjusted(...)` is DULA.

    References: Zhang et al. (2022), A Langevin-like sampler for discrete distributions.
    """

    step_size: float = 0.2
    how: How = "taylor"
    balance: Balance = field(default_factory=Power)
    clamp: Tensor | None = None

    def __post_init__(self):
        check_balance(self.balance)
        number(self.step_size, "step_size", above=0)

    def init(self, model: Model, x: Tensor) -> State:
        return self._at(model, discrete(model).check(x), start=True)

    def _at(self, model: Model, x: Tensor, start: bool = False) -> State:
        u, change = site_logits(model, x, self.how, start=start)
        stay = x.flatten(1)[..., None].long()
        penalty = discrete(model).distance / (2 * self.step_size)
        logits = self.balance.log(change) - penalty + torch.zeros_like(change).scatter(-1, stay, penalty)
        if self.clamp is not None:
            held = torch.full_like(logits, -torch.inf).scatter(-1, stay, 0.0)
            logits = torch.where(free_mask(model, self.clamp, x.device)[:, None], logits, held)
        return State(x, u, logits.log_softmax(-1))

    def cost(self, model: Model) -> Cost:
        """Evaluations and gradients a step."""
        return informed_cost(model, self.how)

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        drawn = random.categorical(state.local, generator)
        new = self._at(model, drawn.to(state.x.dtype).view_as(state.x))
        ratio = _log_q(new.local, state.x) - _log_q(state.local, new.x)
        return new, ratio, self.cost(model)


def _log_q(log_q: Float[Tensor, "chains sites states"], x: Tensor) -> Float[Tensor, " chains"]:
    return log_q.gather(-1, x.flatten(1)[..., None].long())[..., 0].sum(-1)
