"""The order in which examples are read: every epoch a new permutation, from a generator that is part of a checkpoint."""

from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from .. import random
from ..processes import Group


@final
class Order:
    """Numbers of the next mini-batch; an epoch's last examples open the next mini-batch, so that none is left out.

    All processes go through one permutation, each taking its share; `draws`, for what is random in an example, is each one's
    own.
    """

    def __init__(self, count: int, batch: int, seed: int, group: Group):
        if batch > count:
            raise ValueError(f"batch: expected at most the {count} examples there are, got {batch}")
        if batch % group.size:
            raise ValueError(f"batch: expected a multiple of the {group.size} processes, got {batch}")
        self.count, self.batch, self.group = count, batch, group
        self.draws = torch.Generator().manual_seed(random.substream(seed, -2 - group.rank))
        self._generator = torch.Generator().manual_seed(random.substream(seed, -1))
        self._left = torch.empty(0, dtype=torch.long)

    def next(self) -> Int[Tensor, " share"]:
        """This process's share of the next mini-batch."""
        if len(self._left) < self.batch:
            self._left = torch.cat((self._left, random.permutation(self.count, self._generator)))
        taken, self._left = self._left[: self.batch], self._left[self.batch :]
        return taken[self.group.rank :: self.group.size]

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of it."""
        states = {"generator": self._generator.get_state(), "draws": self.draws.get_state()}
        return {"order.left": self._left.clone(), **{f"order.{key}": value for key, value in states.items()}}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Back to what a checkpoint kept."""
        self._left = tensors["order.left"].clone()
        self._generator.set_state(tensors["order.generator"])
        self.draws.set_state(tensors["order.draws"])
