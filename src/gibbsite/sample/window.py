"""Informed proposals over larger windows: sets of distinct sites, drawn exactly by elementary symmetric sums."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..local import How
from ..model import Model
from ..random import Source
from ..space import whole
from .balance import Balance, Power, check_balance
from .clamp import discrete
from .informed import apply_moves, informed_cost, move_logits, reverse_moves
from .kernel import Cost, Proposal, State


@final
@dataclass(frozen=True, eq=False)
class InformedWindow(Proposal):
    """Moves to x' with 1 to `radius` sites changed, q(x' | x) proportional to the product of g(exp d) over those sites.

    This is the extension of Gibbs-With-Gradients to larger windows (its appendix D.1): the first-order change of a set
    of sites is the sum of its members' changes, so the normaliser over all C(n, m) sets of m sites is the elementary
    symmetric sum e_m of the sites' weights, and a set is drawn site by site from partial sums. Radius 1 is `Informed`.
    A step costs one gradient and O(sites x radius) small tensor operations.

    References: Grathwohl et al. (2021), Oops I took a gradient, appendix D.1.
    """

    radius: int = 2
    how: How = "taylor"
    balance: Balance = field(default_factory=Power)
    clamp: Tensor | None = None

    def __post_init__(self):
        check_balance(self.balance)
        object.__setattr__(self, "radius", whole(self.radius, "radius"))

    def init(self, model: Model, x: Tensor) -> State:
        return self._at(model, discrete(model).check(x), start=True)

    def _at(self, model: Model, x: Tensor, start: bool = False) -> State:
        u, log_g = move_logits(model, x, self.how, self.balance, self.clamp, start=start)
        return State(x, u, (log_g, _symmetric_sums(log_g.logsumexp(-1), self.radius)))

    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Tensor, Cost]:
        space, (log_g, sums) = discrete(model), state.local
        size = 1 + random.categorical(sums[:, -1, 1:], generator)
        moves, forward = _draw_set(log_g, sums, size, generator)
        held = moves < 0  # rows whose set is smaller than the radius end with -1
        flat = apply_moves(space, _with_dummy(state.x), moves.masked_fill(held, space.sites * (space.states - 1)))
        new = self._at(model, flat[:, : space.sites].reshape(state.x.shape))
        back = reverse_moves(space, moves.clamp(min=0))
        backward = new.local[0].flatten(1).gather(1, back).masked_fill(held, 0).sum(-1)
        return new, backward - _log_total(new.local[1]) - forward + _log_total(sums), informed_cost(model, self.how)


def _with_dummy(x: Tensor) -> Tensor:
    """x in a row with one more site, where the moves of rows that are done go."""
    flat = x.flatten(1)
    return torch.cat((flat, torch.zeros_like(flat[:, :1])), 1)


def _log_total(sums: Float[Tensor, "chains sites1 radius1"]) -> Float[Tensor, " chains"]:
    return sums[:, -1, 1:].logsumexp(-1)


def _symmetric_sums(log_w: Float[Tensor, "chains sites"], radius: int) -> Float[Tensor, "chains sites1 radius1"]:
    """log e_m of the first i sites' weights: e_m(i) = e_m(i-1) + w_i e_(m-1)(i-1); all of them, i = 0, ..., sites."""
    row = log_w.new_full((len(log_w), radius + 1), -torch.inf)
    row[:, 0] = 0
    rows = [row]
    for i in range(log_w.shape[1]):
        longer = rows[-1][:, :-1] + log_w[:, i : i + 1]
        rows.append(torch.cat((rows[-1][:, :1], torch.logaddexp(rows[-1][:, 1:], longer)), 1))
    return torch.stack(rows, 1)


def _draw_set(log_g: Tensor, sums: Tensor, size: Tensor, generator: Source) -> tuple[Tensor, Tensor]:
    """A set of `size` moves a row, from the last site to the first, and the sum of their log weights.

    The last site of the set, given that m sites are wanted among the first l, is i with probability
    w_i e_(m-1)(i-1) / e_m(l): so one categorical draw a member, never one a site.
    """
    chains, sites, shifts = log_g.shape
    wanted, limit, total = size.clone(), torch.full_like(size, sites), torch.zeros_like(log_g[:, 0, 0])
    site_weight, moves = log_g.logsumexp(-1), []
    index, row = torch.arange(sites, device=size.device), torch.arange(chains, device=size.device)
    for _ in range(sums.shape[2] - 1):
        active = wanted > 0
        before = sums[row, :-1, (wanted - 1).clamp(min=0)]
        logits = (site_weight + before).masked_fill(index >= limit[:, None], -torch.inf)
        logits = torch.where(active[:, None], logits, torch.where(index == 0, 0.0, -torch.inf))
        site = random.categorical(logits, generator)
        shift_logits = log_g[row, site].where(
            active[:, None], torch.where(torch.arange(shifts, device=size.device) == 0, 0.0, -torch.inf)
        )
        move = site * shifts + random.categorical(shift_logits, generator)
        total = total + log_g.flatten(1).gather(1, move[:, None])[:, 0].masked_fill(~active, 0)
        moves.append(move.masked_fill(~active, -1))
        wanted, limit = torch.where(active, wanted - 1, wanted), torch.where(active, site, limit)
    return torch.stack(moves, 1), total
