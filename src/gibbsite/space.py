"""Where states live: `Real`, `Binary`, `Categorical`, `Tokens`. A space checks states and gives the view gradients need."""

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from . import random
from .model import ClosedForm, Distribution, Factorised, Multilinear


class Space(ABC):
    """A set of states of one shape."""

    shape: tuple[int, ...]

    @abstractmethod
    def check(self, x: object, name: str = "x") -> Shaped[Tensor, "..."]:
        """x as a tensor of this space's dtype, or an error that says what was expected and what came."""

    @abstractmethod
    def embed(self, x: Tensor, dtype: torch.dtype | None = None) -> Float[Tensor, "..."]:
        """The float view of x on which a gradient is taken; a view passes through as it is."""

    @abstractmethod
    def batch(self, x: Tensor) -> torch.Size:
        """The leading dimensions of x, states or their float view."""

    @abstractmethod
    def uniform(self) -> Distribution:
        """The distribution that gives every state the same probability."""


class Discrete(Space):
    """A product of `sites` variables with `states` values each, stored as integers."""

    states: int
    distance: float  # squared distance between the float views of two states that differ at one site
    dtype: torch.dtype  # the integer type that states are stored in

    @property
    def sites(self) -> int:
        """How many variables a state has."""
        return math.prod(self.shape)

    @property
    def expected(self) -> str:
        """What `check` wants, in words."""
        return f"integers in [0, {self.states}) of shape {_shape_text(self.shape)}"

    def check(self, x: object, name: str = "x") -> Tensor:
        """x as integers of this space's dtype, or a ValueError."""
        return self._checked(_tensor(x, name, self.expected), name).to(self.dtype)

    def _checked(self, x: Tensor, name: str) -> Tensor:
        """x as it is, if its type, shape and range are those of states."""
        if x.is_floating_point() or x.is_complex() or not _ends_with(x, self.shape):
            raise ValueError(f"{name}: expected {self.expected}, got {_text(x)}")
        if x.numel() and x.dtype != torch.bool and not 0 <= int(x.min()) <= int(x.max()) < self.states:
            bad = ((x < 0) | (x >= self.states)).nonzero()[0].tolist()
            hint = "; spins s of -1 and 1 are bits x = (s + 1) / 2" if self.states == 2 and int(x.min()) == -1 else ""
            raise ValueError(f"{name}: expected {self.expected}, got {x[tuple(bad)].item()} at {bad}{hint}")
        return x

    def uniform(self) -> Distribution:
        return Uniform(self)


@final
@dataclass(frozen=True)
class Binary(Discrete):
    """{0, 1}^shape, stored as int8; its float view is the same numbers as floats.

    Example:
        >>> import gibbsite as gb
        >>> gb.Binary(784).uniform().sample(32, seed=0).shape
        torch.Size([32, 784])
    """

    shape: tuple[int, ...]
    states = 2
    distance = 1.0
    dtype = torch.int8

    def __init__(self, shape: int | tuple[int, ...]):
        object.__setattr__(self, "shape", _sites(shape))

    def embed(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        if x.is_floating_point():
            if not _ends_with(x, self.shape):
                raise ValueError(f"x: expected the float view of {self.expected}, got {_text(x)}")
            return x if dtype is None else x.to(dtype)
        return self._checked(x, "x").to(dtype or torch.get_default_dtype())

    def batch(self, x: Tensor) -> torch.Size:
        return x.shape[: x.ndim - len(self.shape)]


@final
@dataclass(frozen=True)
class Categorical(Discrete):
    """{0, ..., states - 1}^shape, stored as int64; its float view is one-hot, shape (*batch, *shape, states)."""

    shape: tuple[int, ...]
    states: int
    distance = 2.0
    dtype = torch.int64

    def __init__(self, shape: int | tuple[int, ...], states: int):
        object.__setattr__(self, "shape", _sites(shape))
        object.__setattr__(self, "states", whole(states, "states", 2))

    def embed(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        if x.is_floating_point():
            if not _ends_with(x, (*self.shape, self.states)):
                raise ValueError(f"x: expected the one-hot view of {self.expected}, got {_text(x)}")
            return x if dtype is None else x.to(dtype)
        self._checked(x, "x")
        z = torch.zeros(*x.shape, self.states, dtype=dtype or torch.get_default_dtype(), device=x.device)
        return z.scatter_(-1, x.long()[..., None], 1)

    def batch(self, x: Tensor) -> torch.Size:
        return x.shape[: x.ndim - len(self.shape) - x.is_floating_point()]


@final
@dataclass(frozen=True)
class Tokens(Space):
    """Sequences of at most `length` ids below `vocabulary`; all ids after the first `eos` are `eos` (padding).

    A sequence without an eos has the full length. Not a product of free sites: single-site kernels refuse it.
    """

    length: int
    vocabulary: int
    eos: int

    def __post_init__(self):
        object.__setattr__(self, "length", whole(self.length, "length"))
        object.__setattr__(self, "vocabulary", whole(self.vocabulary, "vocabulary", 2))
        if not 0 <= self.eos < self.vocabulary:
            raise ValueError(f"eos: expected an id in [0, {self.vocabulary}), got {self.eos}")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def padded(self) -> Categorical:
        """The product space that holds these sequences among others."""
        return Categorical(self.length, self.vocabulary)

    def check(self, x: object, name: str = "x") -> Tensor:
        x = self.padded.check(x, name)
        late = self._ended(x) & (x != self.eos)
        if late.any():
            bad = late.nonzero()[0].tolist()
            raise ValueError(
                f"{name}: expected only eos={self.eos} after the first eos, got {x[tuple(bad)].item()} at {bad}"
            )
        return x

    def _ended(self, x: Tensor) -> Tensor:
        return (x == self.eos).cumsum(-1) > 0

    def lengths(self, x: Tensor) -> Tensor:
        """How many ids stand before the first eos, a sequence."""
        return (~self._ended(x)).sum(-1)

    def embed(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return self.padded.embed(x, dtype)

    def batch(self, x: Tensor) -> torch.Size:
        return self.padded.batch(x)

    def uniform(self) -> Distribution:
        raise TypeError(
            "Tokens.uniform: sequences of several lengths have no natural uniform law; start from a Distribution"
        )


@final
@dataclass(frozen=True)
class Real(Space):
    """R^shape, any floating type.

    Example:
        >>> import gibbsite as gb
        >>> gb.Real((3, 32, 32))
        Real(shape=(3, 32, 32))
    """

    shape: tuple[int, ...]

    def __init__(self, shape: int | tuple[int, ...]):
        object.__setattr__(self, "shape", _shape(shape))

    @property
    def expected(self) -> str:
        """What `check` wants, in words."""
        return f"finite floats of shape {_shape_text(self.shape)}"

    def check(self, x: object, name: str = "x") -> Tensor:
        x = _tensor(x, name, self.expected)
        self._check_form(x, name)
        if not x.isfinite().all():
            bad = (~x.isfinite()).nonzero()[0].tolist()
            raise ValueError(f"{name}: expected {self.expected}, got {x[tuple(bad)].item()} at {bad}")
        return x.detach()

    def _check_form(self, x: Tensor, name: str) -> None:
        if not x.is_floating_point() or not _ends_with(x, self.shape):
            raise ValueError(f"{name}: expected {self.expected}, got {_text(x)}")

    def embed(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        self._check_form(x, "x")
        return x if dtype is None else x.to(dtype)

    def batch(self, x: Tensor) -> torch.Size:
        return x.shape[: x.ndim - len(self.shape)]

    def uniform(self) -> Distribution:
        raise TypeError("Real.uniform: R has no uniform distribution; start from gb.distributions.Normal(...)")


@final
class Uniform(Distribution, Factorised, ClosedForm, Multilinear):
    """log q(x) = -sites log(states) on a product of discrete sites."""

    def __init__(self, space: Discrete):
        super().__init__()
        self.space: Discrete = space

    def forward(self, x: Tensor) -> Tensor:
        value = -self.space.sites * math.log(self.space.states)
        return torch.full(self.space.batch(x), value, dtype=self.space.embed(x).dtype, device=x.device)

    def sample(self, n: int, *, seed: random.Seed) -> Tensor:
        return random.integers(self.space.states, (n, *self.space.shape), random.generator(seed)).to(self.space.dtype)

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Float[Tensor, "batch m states"]:
        shape = (len(x), self.space.sites if sites is None else sites.shape[1], self.space.states)
        return torch.zeros(shape, dtype=torch.get_default_dtype(), device=x.device)


def whole(value: object, name: str, least: int = 1) -> int:
    """value as an int that is at least `least`; integers of numpy and torch count as such, booleans do not."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        expected = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return number


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple(whole(size, "shape") for size in sizes)


def _sites(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    if not (sizes := _shape(shape)):
        raise ValueError("shape: expected at least one dimension on discrete states, got (); use Binary(1) for one variable")
    return sizes


def _ends_with(x: Tensor, shape: tuple[int, ...]) -> bool:
    return x.ndim >= len(shape) and tuple(x.shape[x.ndim - len(shape) :]) == shape


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"(*, {', '.join(map(str, shape))})" if shape else "(*)"


def _tensor(x: object, name: str, expected: str) -> Tensor:
    """x as a tensor; several of them (states and labels, say) are none."""
    try:
        return torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError):
        several = f" of {len(x)}: states alone, without labels" if isinstance(x, tuple | list) else ""
        raise TypeError(f"{name}: expected {expected}, got a {type(x).__name__}{several}") from None


def _text(x: Tensor) -> str:
    return f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
