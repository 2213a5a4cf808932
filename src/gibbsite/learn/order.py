"""The order in which examples are read: every epoch a new permutation, from a generator that is part of a checkpoint."""

from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor

from .. import random


@final
class Order:
    """Numbers of the next mini-batch; an epoch's last examples open the next mini-batch, so that none is left out."""

    def __init__(self, count: int, batch: int, seed: int):
        if batch > count:
            raise ValueError(f"batch: expected at most the {count} examples there are, got {batch}")
        self.count, self.batch = count, batch
        self.generator = torch.Generator().manual_seed(random.substream(seed, -1))
        self._left = torch.empty(0, dtype=torch.long)
        self.epoch = 0

    def next(self) -> Int[Tensor, " batch"]:
        """The next mini-batch."""
        if len(self._left) < self.batch:
            self._left = torch.cat((self._left, random.permutation(self.count, self.generator)))
            self.epoch += 1
        taken, self._left = self._left[: self.batch], self._left[self.batch :]
        return taken

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of it."""
        return {"order.left": self._left.clone(), "order.generator": self.generator.get_state()}

    def state(self) -> dict[str, Any]:
        """The numbers that a checkpoint keeps of it."""
        return {"epoch": self.epoch, "count": self.count, "batch": self.batch}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Back to what a checkpoint kept."""
        if (state["count"], state["batch"]) != (self.count, self.batch):
            raise ValueError(
                f"data: the checkpoint is of {state['count']} examples in batches of {state['batch']}, "
                f"got {self.count} in batches of {self.batch}"
            )
        self.epoch, self._left = state["epoch"], tensors["order.left"].clone()
        self.generator.set_state(tensors["order.generator"])
