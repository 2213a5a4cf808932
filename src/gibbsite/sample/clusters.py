"""Cluster kernels for ferromagnetic Ising and Potts models: Swendsen-Wang and Wolff, with fields and clamped sites."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import random
from ..model import Ferromagnet, Model, evaluate
from ..random import Source
from .clamp import discrete, free_mask, free_sites
from .gibbs import start
from .kernel import Cost, Info, Kernel, State, always


@final
@dataclass(frozen=True, eq=False)
class SwendsenWang(Kernel):
    """Bonds between equal neighbours are laid with probability 1 - exp(-b); every cluster is redrawn by heat bath.

    A cluster's new state is k with probability proportional to exp(sum over its sites of f_i(k)); a cluster that holds a
    clamped site keeps its state.

    References: Swendsen and Wang (1987), Nonuniversal critical dynamics; Edwards and Sokal (1988).
    """

    clamp: Tensor | None = None

    def init(self, model: Model, x: Tensor) -> State:
        return _start(model, x, self.clamp)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        label, field = _clusters(model, state.x, generator)
        totals = torch.zeros(*label.shape, field.shape[1], dtype=field.dtype, device=label.device)
        totals.scatter_add_(1, label[..., None].expand_as(totals), field.expand_as(totals))
        # only the root of a free cluster draws; the others would be a wasted draw, so they are pinned to state 0
        site = torch.arange(label.shape[1], device=label.device)
        held = _held_roots(label, ~free_mask(model, self.clamp, label.device))
        draws = (label == site) & ~held
        pinned = torch.full_like(totals, -torch.inf)
        pinned[..., 0] = 0
        drawn = random.categorical(torch.where(draws[..., None], totals, pinned), generator)
        drawn = torch.where(held, state.x.flatten(1).long(), drawn)
        x = drawn.gather(1, label).to(state.x.dtype).view_as(state.x)
        new = State(x, evaluate(model, x))
        return new, always(new.u, self.cost(model))

    def cost(self, model: Model) -> Cost:
        """Evaluations a step: U at its end."""
        return Cost(1, 0)


@final
@dataclass(frozen=True, eq=False)
class Wolff(Kernel):
    """One Swendsen-Wang cluster, that of a uniformly chosen free site, moves to a uniformly chosen other state.

    The move is accepted with min(1, exp(change of the fields' part)), always when there is no field; a cluster that holds
    a clamped site stays.

    References: Wolff (1989), Collective Monte Carlo updating for spin systems.
    """

    clamp: Tensor | None = None

    def init(self, model: Model, x: Tensor) -> State:
        return _start(model, x, self.clamp)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        states, row = discrete(model).states, torch.arange(len(state.x), device=state.x.device)
        label, field = _clusters(model, state.x, generator)
        free = free_sites(model, self.clamp, label.device)
        seed = free[random.integers(len(free), (len(label),), generator)]
        member = label == label[row, seed][:, None]
        shift = 1 + random.integers(states - 1, (len(label),), generator)
        old = state.x.flatten(1).long()
        new = torch.where(member, (old + shift[:, None]) % states, old)
        site = torch.arange(label.shape[1], device=label.device)
        change = (field[site, new] - field[site, old]).sum(1).clamp(max=0).detach()
        change = change.masked_fill((member & ~free_mask(model, self.clamp, label.device)).any(1), -torch.inf)
        accepted = random.accept(change, generator)
        x = torch.where(accepted[:, None], new, old).to(state.x.dtype).view_as(state.x)
        return State(x, evaluate(model, x)), Info(change.exp(), accepted, self.cost(model))

    def cost(self, model: Model) -> Cost:
        """Evaluations a step: U at its end."""
        return Cost(1, 0)


def _start(model: Model, x: Tensor, clamp: Tensor | None) -> State:
    if not isinstance(model, Ferromagnet):
        raise TypeError(f"cluster kernels: expected an Ising or Potts model, got {type(model).__name__}")
    model.bonds()
    free_mask(model, clamp, x.device)
    return start(model, x)


def _clusters(
    model: Model, x: Tensor, generator: Source
) -> tuple[Int[Tensor, "chains sites"], Float[Tensor, "sites states"]]:
    """A cluster label for each site, the smallest site of its cluster, and the model's fields."""
    assert isinstance(model, Ferromagnet)
    with torch.no_grad():
        edges, strength, field = (part.detach() for part in model.bonds())
    flat, (i, j) = x.flatten(1), edges.T
    log_odds = (strength + torch.log(-torch.expm1(-strength))).expand(len(flat), -1)  # of 1 - exp(-b)
    laid = random.bernoulli(torch.where(flat[:, i] == flat[:, j], log_odds, -torch.inf), generator)
    return connected(laid, edges, flat.shape[1]), field


def connected(laid: Bool[Tensor, "chains edges"], edges: Int[Tensor, "edges 2"], sites: int) -> Int[Tensor, "chains sites"]:
    """The smallest site of each site's component, by minimum propagation along edges with pointer jumping."""
    i, j = (end.expand(len(laid), -1) for end in edges.T)
    label = torch.arange(sites, device=laid.device).expand(len(laid), -1)
    while True:
        least = torch.minimum(label.gather(1, i), label.gather(1, j))
        least = torch.where(laid, least, sites)
        new = label.scatter_reduce(1, i, least, "amin").scatter_reduce(1, j, least, "amin")
        new = new.gather(1, new)
        if torch.equal(new, label):
            return label
        label = new


def _held_roots(label: Tensor, clamped: Bool[Tensor, " sites"]) -> Bool[Tensor, "chains sites"]:
    """True at the root of each cluster that holds a clamped site."""
    return torch.zeros_like(label).scatter_add(1, label, clamped.long().expand_as(label)) > 0
