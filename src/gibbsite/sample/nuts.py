"""The No-U-Turn sampler, all chains in step: each doubles its own trajectory until it turns back."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import random
from ..local import score
from ..model import Model
from ..random import Source
from ..space import whole
from .kernel import Cost, Info, Kernel, State, select
from .langevin import check_step_size, real
from .trajectory import Metric, Point, check_mass, inner, kinetic, metric, slope

_DIVERGENT = 1000.0  # a point of this many nats more than the start ends the trajectory


class Local(NamedTuple):
    """The gradient at x; how many doublings the last step made; whether its trajectory diverged."""

    gradient: Tensor
    depth: Int[Tensor, " chains"]
    divergent: Bool[Tensor, " chains"]


class _Tree(NamedTuple):
    """A trajectory: its ends in time, the point drawn from it, its log weight relative to the start, its sum of momenta."""

    left: Point
    right: Point
    x: Tensor
    u: Tensor
    gradient: Tensor
    log_weight: Float[Tensor, " chains"]
    momenta: Tensor
    energy: Float[Tensor, " chains"]  # H at the start
    accepted: Float[Tensor, " chains"]  # the acceptances of all points tried, summed
    leaves: Float[Tensor, " chains"]  # how many were tried


class _Branch(NamedTuple):
    """The new half of a trajectory while it grows."""

    end: Point
    x: Tensor
    u: Tensor
    gradient: Tensor
    log_weight: Float[Tensor, " chains"]
    momenta: Tensor
    alive: Bool[Tensor, " chains"]  # neither turned nor divergent
    divergent: Bool[Tensor, " chains"]
    accepted: Float[Tensor, " chains"]
    leaves: Float[Tensor, " chains"]
    steps: int = 0


@final
@dataclass(frozen=True, eq=False)
class NUTS(Kernel):
    """HMC whose trajectory doubles, forward or backward in time, until it turns back; x' is drawn from all its points.

    A point has weight exp(-H); within the new half it is drawn by weight, and the new half is taken over the old with
    probability min(1, w_new / w_old). A trajectory has turned if p^T M^-1 rho <= 0 at one of its ends, rho the sum of
    its momenta with the two ends counted half (the way gone); every balanced subtree is tested, with the momenta at the
    left ends of the open subtrees kept, so that memory grows with max_depth only. A new half that turned within itself,
    or lost more than 1000 nats somewhere, is thrown away and ends the step.

    All chains walk together; a chain that is done drops out at the next doubling. `Info.acceptance` is the mean of
    min(1, exp(-change of H)) over the points tried (aim for 0.8); `state.local` tells the depth and any divergence.

    References: Hoffman and Gelman (2014), The No-U-Turn sampler; Betancourt (2017), A conceptual introduction to
    Hamiltonian Monte Carlo; Lao and Dillon (2019), Unrolled implementation of the No-U-Turn sampler.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.distributions.Funnel(3, scale=1.0)
        >>> chain = gb.run(gb.sample.NUTS(0.3), model, model.sample(4, seed=0), steps=5, seed=1)
        >>> chain.samples.shape
        torch.Size([5, 4, 3])
    """

    step_size: float
    max_depth: int = 10
    mass: Tensor | None = None

    def __post_init__(self):
        check_step_size(self.step_size)
        check_mass(self.mass)
        object.__setattr__(self, "max_depth", whole(self.max_depth, "max_depth"))

    def init(self, model: Model, x: Tensor) -> State:
        x = real(model, x)
        metric(self.mass, model.space)
        u, gradient = score(model, x, start=True)
        return State(x, u, Local(gradient, torch.zeros_like(u, dtype=torch.long), torch.zeros_like(u, dtype=torch.bool)))

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        mass = metric(self.mass, model.space)
        tree = _plant(state, mass.draw(state.x, generator), mass)
        depth, divergent = torch.zeros_like(state.local.depth), torch.zeros_like(state.local.divergent)
        rows, gradients = torch.arange(len(state.x), device=state.x.device), 0
        for level in range(self.max_depth):
            part = _take(tree, rows)
            forward = random.bernoulli(torch.zeros_like(part.u), generator)
            branch = _grow(model, part, forward, mass, self.step_size, level, generator)
            depth[rows], divergent[rows] = level + 1, branch.divergent
            gradients += branch.steps * len(rows)
            part, turned = _join(part, branch, forward, mass, generator)
            tree = part if len(rows) == len(state.x) else _put(tree, rows, part)
            rows = rows[branch.alive & ~turned]
            if not len(rows):
                break
        moved = (tree.x != state.x).reshape(len(state.x), -1).any(-1)
        cost = Cost(gradients / len(state.x), gradients / len(state.x))
        new = State(tree.x, tree.u, Local(tree.gradient, depth, divergent))
        return new, Info(tree.accepted / tree.leaves, moved, cost)


def _plant(state: State, momentum: Tensor, mass: Metric) -> _Tree:
    start = Point(state.x, momentum, state.u, state.local.gradient)
    energy = kinetic(momentum, mass.velocity(momentum)) - state.u
    zero = torch.zeros_like(state.u)
    return _Tree(start, start, state.x, state.u, state.local.gradient, zero, momentum, energy, zero, zero)


def _grow(
    model: Model, tree: _Tree, forward: Tensor, mass: Metric, step_size: float, level: int, generator: Source
) -> _Branch:
    """2^level more points from one end of the tree, or fewer if no chain is left alive."""
    end = select(forward, tree.right, tree.left)
    step = torch.where(forward, step_size, -step_size).to(end.x.dtype).view(-1, *[1] * (end.x.ndim - 1))
    none, yes = torch.full_like(tree.u, -torch.inf), torch.ones_like(forward)
    branch = _Branch(
        end, end.x, end.u, end.gradient, none, torch.zeros_like(end.momentum), yes, ~yes, tree.accepted, tree.leaves
    )
    open_ends: dict[int, tuple[Tensor, Tensor]] = {}
    for leaf in range(2**level):
        p = torch.addcmul(branch.end.momentum, step, branch.end.gradient, value=0.5)
        x = torch.addcmul(branch.end.x, step, mass.velocity(p))
        u, gradient = slope(model, x)
        end = Point(x, torch.addcmul(p, step, gradient, value=0.5), u, gradient)
        log_weight = tree.energy + u - kinetic(end.momentum, mass.velocity(end.momentum))
        sound = (log_weight > -_DIVERGENT) & (log_weight < torch.inf)
        branch = _add(branch, end, torch.where(sound, log_weight, -torch.inf), generator)
        turned = _turned_within(branch, leaf, open_ends, mass)
        branch = branch._replace(alive=branch.alive & ~turned, steps=leaf + 1)
        if not bool(branch.alive.any()):
            break
    return branch


def _add(branch: _Branch, end: Point, log_weight: Tensor, generator: Source) -> _Branch:
    """The branch with one more point, drawn in place of the point held with probability weight / total weight."""
    total = torch.logaddexp(branch.log_weight, log_weight)
    taken = branch.alive & random.accept(log_weight - total, generator)
    x, u, gradient = select(taken, (end.x, end.u, end.gradient), (branch.x, branch.u, branch.gradient))
    diverged = branch.alive & (log_weight == -torch.inf)
    accepted = branch.accepted + torch.where(branch.alive, log_weight.clamp(max=0).exp(), 0.0)
    leaves, momenta = branch.leaves + branch.alive, branch.momenta + end.momentum
    alive, divergent = branch.alive & ~diverged, branch.divergent | diverged
    return _Branch(end, x, u, gradient, total, momenta, alive, divergent, accepted, leaves)


def _turned_within(branch: _Branch, leaf: int, open_ends: dict[int, tuple[Tensor, Tensor]], mass: Metric) -> Tensor:
    """Whether a balanced subtree that this leaf completes has turned; an even leaf opens one instead.

    The left ends of open subtrees are kept by level: leaf n's slot is the number of ones of n // 2 in binary, and an odd
    leaf closes as many subtrees as n has trailing ones.
    """
    turned, slot = torch.zeros_like(branch.alive), (leaf >> 1).bit_count()
    momentum = branch.end.momentum
    if leaf % 2 == 0:
        open_ends[slot] = (momentum, branch.momenta)
        return turned
    closing = (~leaf & (leaf + 1)).bit_length() - 1
    for index in range(slot, slot - closing, -1):
        first, before = open_ends[index]
        turned = turned | _turned(first, momentum, branch.momenta - before + first, mass)
    return turned


def _turned(first: Tensor, last: Tensor, momenta: Tensor, mass: Metric) -> Bool[Tensor, " chains"]:
    """Whether going on at either end would shorten the way, for a stretch of points with this sum of momenta."""
    way = momenta - 0.5 * (first + last)
    return ~((inner(mass.velocity(last), way) > 0) & (inner(mass.velocity(first), way) > 0))


def _join(tree: _Tree, branch: _Branch, forward: Tensor, mass: Metric, generator: Source) -> tuple[_Tree, Tensor]:
    """The tree with a sound branch joined on, and whether the whole has turned; an unsound branch is thrown away."""
    sound = branch.alive
    taken = sound & random.accept((branch.log_weight - tree.log_weight).clamp(max=0), generator)
    x, u, gradient = select(taken, (branch.x, branch.u, branch.gradient), (tree.x, tree.u, tree.gradient))
    left, right = select(sound & ~forward, branch.end, tree.left), select(sound & forward, branch.end, tree.right)
    log_weight = torch.where(sound, torch.logaddexp(tree.log_weight, branch.log_weight), tree.log_weight)
    momenta = select(sound, tree.momenta + branch.momenta, tree.momenta)
    whole = _Tree(left, right, x, u, gradient, log_weight, momenta, tree.energy, branch.accepted, branch.leaves)
    return whole, _turned(left.momentum, right.momentum, momenta, mass)


def _take(tree: Any, rows: Tensor) -> Any:
    """The rows of every tensor of a nested tuple."""
    return tree[rows] if isinstance(tree, Tensor) else type(tree)(*(_take(part, rows) for part in tree))


def _put(tree: Any, rows: Tensor, part: Any) -> Any:
    """The nested tuple with these rows replaced."""
    if isinstance(tree, Tensor):
        return tree.index_copy(0, rows, part)
    return type(tree)(*(_put(a, rows, b) for a, b in zip(tree, part, strict=True)))
