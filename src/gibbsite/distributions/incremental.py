"""What an autoregressive distribution asks for: the logits of each next token, told token by token.

A conditional reads ids `previous` (n, t), of which the first is the start, id `vocabulary`, and gives logits (n, t,
vocabulary); row t may depend on previous[:, :t + 1] only. What it has read is its state, so that going on costs what the
new tokens cost.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import instance
from ..model import device_of
from ..random import Source


class State(ABC):
    """What a conditional has read of n sequences. It is never changed: sequences may part from it."""

    @abstractmethod
    def rows(self, index: Tensor) -> "State":
        """The state of some of the sequences: `index` is a mask or numbers, which may repeat."""


@final
@dataclass(frozen=True, eq=False)
class Tensors(State):
    """A state that is tensors, each with a row a sequence."""

    parts: tuple[Tensor, ...]

    def rows(self, index: Tensor) -> "Tensors":
        return Tensors(tuple(part[index] for part in self.parts))


class Incremental(nn.Module, ABC):
    """A conditional that remembers what it has read: step(b, step(a, s)'s state) gives what step(ab, s) gives for b."""

    @abstractmethod
    def start(self, n: int) -> State:
        """The state of n sequences of which nothing was read, not even the start."""

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        """The logits after each of `tokens`, read after `state`, and the state then; with a source, as while learning.

        The source is what components are dropped by, where the conditional does so.
        """

    def forward(self, previous: Int[Tensor, "n t"]) -> Float[Tensor, "n t vocabulary"]:
        return self.step(previous, self.start(len(previous)))[0]


@final
class Recomputed(Incremental):
    """A plain module, previous -> logits, asked anew for all that was read: right for any of them, and slow."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def start(self, n: int) -> State:
        return Tensors((torch.empty(n, 0, dtype=torch.long, device=device_of(self)),))

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        (read,) = instance(state, Tensors, "state").parts
        previous = torch.cat((read, tokens), 1)
        logits = self.module(previous)
        if logits.shape[:2] != previous.shape:
            expected = f"({', '.join(map(str, previous.shape))}, vocabulary)"
            raise ValueError(f"conditional: expected logits of shape {expected}, got {tuple(logits.shape)}")
        return logits[:, read.shape[1] :], Tensors((previous,))


def incremental(conditional: nn.Module) -> Incremental:
    """The conditional itself, or a plain module as one."""
    return conditional if isinstance(conditional, Incremental) else Recomputed(conditional)
