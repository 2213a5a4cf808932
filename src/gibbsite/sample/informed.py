"""Locally informed proposals: Gibbs-With-Gradients, its multi-sample variant, and Zanella's exact version."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..local import How, changes_cost, site_logits
from ..model import Model
from ..random import Source
from ..space import Discrete, whole
from .balance import Balance, Power, check_balance
from .clamp import check_parity, discrete, free_mask
from .kernel import Cost, Proposal, State


@final
@dataclass(frozen=True, eq=False)
class Informed(Proposal):
    """Changes one site, drawn with q(i, k | x) proportional to g(exp d_ik), d_ik = U(x with x_i = k) - U(x).

    how="taylor" is Gibbs-With-Gradients: d from one gradient, which the next step reuses. how="exact" is Zanella's
    locally balanced proposal. With `draws` N > 1, N (site, shift) pairs are drawn i.i.d. and all applied (modulo the
    number of states); q is then over index paths, and the acceptance uses the product of all N at x' (appendix D.2). On
    bits N must be odd: an even number of flips would keep the parity of sum(x) for ever.

    References: Grathwohl et al. (2021), Oops I took a gradient; Zanella (2020), Informed proposals for local MCMC.

    Example:
        >>> import gibbsite as gb
        >>> gwg = gb.sample.MH(gb.sample.Informed())
        >>> zanella = gb.sample.MH(gb.sample.Informed(how="exact", balance=gb.sample.Barker()))
    """

    how: How = "taylor"
    balance: Balance = field(default_factory=Power)
    draws: int = 1
    clamp: Tensor | None = None

    def __post_init__(self):
        check_balance(self.balance)
        object.__setattr__(self, "draws", whole(self.draws, "draws"))

    def init(self, model: Model, x: Tensor) -> State:
        check_parity(model, self.draws, "draws")
        return self._at(model, discrete(model).check(x), start=True)

    def _at(self, model: Model, x: Tensor, start: bool = False) -> State:
        u, log_q = move_logits(model, x, self.how, self.balance, self.clamp, start=start)
        return State(x, u, log_q.flatten(1).log_softmax(-1))

    def cost(self, model: Model) -> Cost:
        """Evaluations and gradients a step."""
        return informed_cost(model, self.how)

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        space = discrete(model)
        table = state.local[:, None].expand(-1, self.draws, -1)
        moves = random.categorical(table, generator)
        new = self._at(model, apply_moves(space, state.x, moves))
        forward = state.local.gather(-1, moves).sum(-1)
        backward = new.local.gather(-1, reverse_moves(space, moves)).sum(-1)
        return new, backward - forward, self.cost(model)


def informed_cost(model: Model, how: How) -> Cost:
    """What one table of neighbours costs."""
    if how == "taylor":
        return Cost(1, 1)
    space = discrete(model)
    neighbours = space.sites * (space.states - 1)
    return Cost(1 + (neighbours if how == "enumerate" else changes_cost(model, space, space.sites)), 0)


def move_logits(
    model: Model, x: Tensor, how: How, balance: Balance, clamp: Tensor | None, *, start: bool = False
) -> tuple[Float[Tensor, " chains"], Float[Tensor, "chains sites shifts"]]:
    """U(x) and log g(exp d) of every move: site i goes from k to k + 1 + j modulo the number of states; -inf if clamped."""
    space = discrete(model)
    u, change = site_logits(model, x, how, start=start)
    shift = torch.arange(1, space.states, device=x.device)
    target = (x.reshape(len(x), -1, 1).long() + shift) % space.states
    log_g = balance.log(change.gather(-1, target))
    held = ~free_mask(model, clamp, x.device)[:, None]
    log_g = log_g.masked_fill(held, -torch.inf)
    # a state whose neighbours are all impossible proposes any of them and stays, for each is rejected
    stuck = (log_g == -torch.inf).flatten(1).all(1)[:, None, None]
    return u, torch.where(stuck & ~held, 0.0, log_g)


def apply_moves(space: Discrete, x: Tensor, moves: Int[Tensor, "chains draws"]) -> Tensor:
    """x with every (site, shift) move added, modulo the number of states."""
    site, shift = moves // (space.states - 1), moves % (space.states - 1) + 1
    flat = x.flatten(1).long().scatter_add(1, site, shift) % space.states
    return flat.to(x.dtype).view_as(x)


def reverse_moves(space: Discrete, moves: Int[Tensor, "chains draws"]) -> Int[Tensor, "chains draws"]:
    """The moves that undo `moves`."""
    shifts = space.states - 1
    return moves // shifts * shifts + (shifts - 1 - moves % shifts)
