"""What follows a prefix, as a conditional of its own."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import instance
from ..random import Source
from .incremental import Incremental, State, incremental


@final
class Continued(Incremental):
    """A conditional that has read the start and a prefix: its own start stands for the prefix's last token.

    The prefix is read once for all sequences.
    """

    prefix: Tensor

    def __init__(self, conditional: nn.Module, prefix: Int[Tensor, " t"], start: int):
        super().__init__()
        self.conditional = instance(conditional, nn.Module, "conditional")
        self.first = start
        self.register_buffer("prefix", prefix)

    def start(self, n: int) -> State:
        steps = incremental(self.conditional)
        read = torch.cat((self.prefix.new_tensor([self.first]), self.prefix[:-1]))
        return steps.step(read[None], steps.start(1))[1].rows(torch.zeros(n, dtype=torch.long, device=read.device))

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        tokens = torch.where(tokens == self.first, self.prefix[-1], tokens)
        return incremental(self.conditional).step(tokens, state, source)
