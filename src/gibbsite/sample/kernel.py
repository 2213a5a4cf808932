"""What a kernel is: a frozen dataclass with `init` and `step`, the model an argument of both; and the one accept/reject."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from .. import random
from ..check import instance
from ..model import Model, check_model, counting
from ..random import Source


class State(NamedTuple):
    """Where the chains are, and what the next step needs. It belongs to the model it was made with: re-init on another.

    Every tensor in it has the chains as its leading dimension.
    """

    x: Shaped[Tensor, "chains *event"]
    u: Float[Tensor, " chains"]
    local: Any = None


class Cost(NamedTuple):
    """Evaluations of U and of its gradient, a chain."""

    evaluations: float = 0.0
    gradients: float = 0.0

    def plus(self, other: "Cost", times: float = 1.0) -> "Cost":
        """The sum of two costs, the second counted `times` over."""
        return Cost(self.evaluations + times * other.evaluations, self.gradients + times * other.gradients)


class Info(NamedTuple):
    """What one step did: the probability with which each chain's proposal was taken, whether it was, and the cost."""

    acceptance: Float[Tensor, " chains"]
    accepted: Bool[Tensor, " chains"]
    cost: Cost


class Kernel(ABC):
    """A Markov kernel on the states of a model. `step` is pure given (model, state, generator)."""

    @abstractmethod
    def init(self, model: Model, x: Tensor) -> Any:
        """The state of chains that stand at x, shape (chains, *event); checks x and U(x)."""

    @abstractmethod
    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        """One transition of every chain."""


class Proposal(ABC):
    """A move that `MH` corrects."""

    @abstractmethod
    def init(self, model: Model, x: Tensor) -> State:
        """The state at x with all that proposing from it takes; checks x and U(x)."""

    @abstractmethod
    def propose(self, model: Model, state: State, generator: Source) -> tuple[State, Float[Tensor, " chains"], Cost]:
        """The state proposed, log q(x | x') - log q(x' | x), and the cost."""


@final
@dataclass(frozen=True, eq=False)
class MH(Kernel):
    """Metropolis-Hastings: a proposed x' is taken with probability min(1, p(x') q(x|x') / (p(x) q(x'|x))).

    References: Metropolis et al. (1953); Hastings (1970).

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.3)
        >>> kernel = gb.sample.MH(gb.sample.Informed())  # Gibbs-With-Gradients
        >>> chain = gb.run(kernel, model, model.space.uniform().sample(8, seed=0), steps=10, seed=1)
        >>> chain.samples.shape
        torch.Size([10, 8, 16])
    """

    proposal: Proposal

    def __post_init__(self):
        check_proposal(self.proposal)

    def init(self, model: Model, x: Tensor) -> State:
        return self.proposal.init(model, x)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        new, log_ratio, cost = self.proposal.propose(model, state, generator)
        log_accept = acceptance(new.u - state.u + log_ratio, new.u)
        accepted = random.accept(log_accept, generator)
        return select(accepted, new, state), Info(log_accept.exp(), accepted, cost)


@final
@dataclass(frozen=True, eq=False)
class Unadjusted(Kernel):
    """Takes every proposal: no correction, so its stationary law is the target only in the limit of small steps."""

    proposal: Proposal

    def __post_init__(self):
        check_proposal(self.proposal)

    def init(self, model: Model, x: Tensor) -> State:
        return self.proposal.init(model, x)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        new, _, cost = self.proposal.propose(model, state, generator)
        return new, always(new.u, cost)


class Alias(Kernel, ABC):
    """A kernel that is made of others, under a name and with fields of its own: `dataclasses.replace` adapts it."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """The kernel that it is."""

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernel.init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        return self.kernel.step(model, state, generator)


def started(kernel: Kernel, model: Model, x: Tensor) -> tuple[Any, Cost]:
    """The state that `kernel.init` makes, and what making it cost."""
    with counting() as count:
        state = kernel.init(model, x)
    return state, Cost(count.evaluations / len(x), count.gradients / len(x))


def check_kernel(kernel: object, name: str = "kernel") -> Kernel:
    """The kernel, or an error that says how to make one of a class or a proposal."""
    hint = f"; a proposal is run as MH(proposal): write MH({type(kernel).__name__}(...))"
    return instance(kernel, Kernel, name, hint if isinstance(kernel, Proposal) else "")


def check_proposal(proposal: object, name: str = "proposal") -> Proposal:
    """The proposal, or an error that says what came instead."""
    hint = "; a kernel is run as it is, without a correction"
    return instance(proposal, Proposal, name, hint if isinstance(proposal, Kernel) else "")


def check_chains(model: Model, x: object) -> Tensor:
    """x as states of the model, one a chain and at least one, or an error."""
    space = check_model(model).space
    states = space.check(x)
    if states.ndim != 1 + len(space.shape) or not len(states):
        shape = ", ".join(map(str, ("chains", *space.shape)))
        raise ValueError(f"x: expected ({shape}) with at least 1 chain, got {tuple(states.shape)}")
    return states


def acceptance(log_ratio: Tensor, new_u: Tensor) -> Tensor:
    """min(0, log_ratio), and -inf where the proposed state has probability 0."""
    return torch.where(new_u == -torch.inf, -torch.inf, log_ratio).clamp(max=0)


def always(u: Tensor, cost: Cost) -> Info:
    """The info of a step without rejection."""
    return Info(torch.ones_like(u), torch.ones_like(u, dtype=torch.bool), cost)


def select(mask: Bool[Tensor, " chains"], new: Any, old: Any) -> Any:
    """Chain by chain, `new` where the mask is true, else `old`; through tuples and None."""
    if new is None:
        return None
    if isinstance(new, Tensor):
        return torch.where(mask.view(-1, *[1] * (new.ndim - 1)), new, old)
    parts = [select(mask, a, b) for a, b in zip(new, old, strict=True)]
    return tuple(parts) if type(new) is tuple else type(new)(*parts)
