"""What an autoregressive distribution asks for: the logits of each next token, told token by token.

A conditional reads ids `previous` (n, t), of which the first is the start, id `vocabulary`, and gives logits (n, t,
vocabulary); row t may depend on previous[:, :t + 1] only. What it has read is its state, so that going on costs what the
new tokens cost.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..model import device_of
from ..random import Source

State = tuple[Tensor, ...]  # sequences first in each tensor, so that rows of it are the states of some of the sequences


class Incremental(nn.Module, ABC):
    """A conditional that remembers what it has read: step(b, step(a, s)'s state) gives what step(ab, s) gives for b.

    A state is never changed in place: what it was stays good, and sequences may part from it.
    """

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
        return (torch.empty(n, 0, dtype=torch.long, device=device_of(self)),)

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        previous = torch.cat((state[0], tokens), 1)
        logits = self.module(previous)
        if logits.shape[:2] != previous.shape:
            expected = f"({', '.join(map(str, previous.shape))}, vocabulary)"
            raise ValueError(f"conditional: expected logits of shape {expected}, got {tuple(logits.shape)}")
        return logits[:, state[0].shape[1] :], (previous,)


def incremental(conditional: nn.Module) -> Incremental:
    """The conditional itself, or a plain module as one."""
    return conditional if isinstance(conditional, Incremental) else Recomputed(conditional)


def rows(state: State, index: Tensor) -> State:
    """The states of some of the sequences: `index` is a mask or numbers, which may repeat."""
    return tuple(part[index] for part in state)
