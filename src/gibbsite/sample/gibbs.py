"""Gibbs sampling: sites, or blocks of sites, drawn anew from their exact conditional law."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, final

import torch
from torch import Tensor

from .. import random
from ..local import changes_cost, site_changes
from ..model import Blocked, Model, check_model, evaluate
from ..models.classes import coloured_of, draw_class
from ..models.graph import check_independent
from ..random import Source
from ..space import Discrete, whole
from .clamp import as_mask, discrete, free_sites
from .kernel import Cost, Info, Kernel, State, always


@final
@dataclass(frozen=True, eq=False)
class Gibbs(Kernel):
    """Redraws `sites` sites a step, one after the other, each chosen uniformly by each chain (random scan).

    References: Geman and Geman (1984), Stochastic relaxation, Gibbs distributions.
    """

    sites: int = 1
    clamp: Tensor | None = None

    def __post_init__(self):
        object.__setattr__(self, "sites", whole(self.sites, "sites"))

    def init(self, model: Model, x: Tensor) -> State:
        free_sites(model, self.clamp, x.device)
        return start(model, x)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        free, exact = free_sites(model, self.clamp, state.x.device), _exact(state)
        for _ in range(self.sites):
            site = free[random.integers(len(free), (len(state.x),), generator)]
            exact = _redraw(model, exact, site, generator)
        state = State(exact.x, exact.u.to(state.u.dtype))
        return state, always(state.u, self.cost(model))

    def cost(self, model: Model) -> Cost:
        """Evaluations a step."""
        return Cost(self.sites * changes_cost(model, discrete(model), 1), 0)


@final
@dataclass(frozen=True, eq=False)
class GibbsSweep(Kernel):
    """Redraws every site once, in row-major order (systematic scan)."""

    clamp: Tensor | None = None

    def __post_init__(self):
        object.__setattr__(self, "clamp", as_mask(self.clamp))

    def init(self, model: Model, x: Tensor) -> State:
        free_sites(model, self.clamp, x.device)
        return start(model, x)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        exact = _exact(state)
        for site in free_sites(model, self.clamp, state.x.device):
            exact = _redraw(model, exact, site.expand(len(state.x)), generator)
        state = State(exact.x, exact.u.to(state.u.dtype))
        return state, always(state.u, self.cost(model))

    def cost(self, model: Model) -> Cost:
        """Evaluations a step."""
        space = discrete(model)
        return Cost(_free(space, self.clamp) * changes_cost(model, space, 1), 0)


@final
@dataclass(frozen=True, eq=False)
class BlockGibbs(Kernel):
    """Redraws every block of a model that knows its blocks: colour classes of Ising and Potts, RBM, rows of FHMM.

    A sum of an Ising or Potts model and models with independent sites, as on an annealing path, has the same classes.
    `blocks`, lists of sites, replace the model's own colour classes (pairwise models only): a block that holds two
    coupled sites is an error, because its sites could not be drawn independently.
    """

    blocks: Sequence[Sequence[int]] | None = None
    clamp: Tensor | None = None

    def __post_init__(self):
        object.__setattr__(self, "clamp", as_mask(self.clamp))

    def init(self, model: Model, x: Tensor) -> State:
        return start(model, self.checked(model, x))

    def checked(self, model: Model, x: Tensor) -> Tensor:
        """x, if this kernel can move it on this model."""
        pairwise = coloured_of(check_model(model))
        if pairwise is None and not isinstance(model, Blocked):
            raise TypeError(
                f"BlockGibbs: {type(model).__name__} does not know its blocks (gibbsite.model.Blocked); "
                "use Gibbs or GibbsSweep"
            )
        free_sites(model, self.clamp, x.device)
        if self.blocks is not None:
            if pairwise is None:
                raise TypeError(f"blocks: only pairwise models take other blocks than their own, got {type(model).__name__}")
            check_independent(self.blocks, pairwise.graph.edges().cpu(), pairwise.graph.sites)
        return discrete(model).check(x)

    def classes(self, model: Model) -> list[Tensor] | None:
        """The independent sets that a pairwise model is redrawn by; None if it is not pairwise."""
        if self.blocks is not None:
            return [torch.as_tensor(block, dtype=torch.long) for block in self.blocks]
        pairwise = coloured_of(model)
        return None if pairwise is None else pairwise.classes

    def cost(self, model: Model) -> Cost:
        """Evaluations a step: the free sites' share of one for a pairwise model, or one a block of others; U at the end."""
        if self.classes(model) is not None:
            space = discrete(model)
            return Cost(1 + _free(space, self.clamp) / space.sites, 0)
        return Cost(1 + cast(Blocked, model).blocks, 0)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        x, classes = state.x, self.classes(model)
        with torch.no_grad():
            if classes is not None:
                for members in classes:
                    x = draw_class(model, members, x, generator, self.clamp)
            else:
                for block in range(cast(Blocked, model).blocks):
                    x = cast(Blocked, model).draw_block(block, x, generator, self.clamp)
        state = State(x, evaluate(model, x))
        return state, always(state.u, self.cost(model))


def _free(space: Discrete, clamp: Tensor | None) -> int:
    """How many sites move."""
    return space.sites if clamp is None else int((~clamp).sum())


def start(model: Model, x: Tensor) -> State:
    """The state of a kernel that needs only x and U(x)."""
    x = discrete(model).check(x)
    return State(x, evaluate(model, x, start=True))


def _exact(state: State) -> State:
    """The state with U in double precision: the many changes of a step add up in it, and are rounded once."""
    return State(state.x, state.u.double())


def _redraw(model: Model, state: State, site: Tensor, generator: Source) -> State:
    change = site_changes(model, discrete(model), state.x, state.u, site[:, None])[:, 0]
    value = random.categorical(change, generator)
    x = state.x.flatten(1).scatter(1, site[:, None], value[:, None].to(state.x.dtype)).view_as(state.x)
    return State(x, state.u + change.gather(-1, value[:, None])[:, 0])
