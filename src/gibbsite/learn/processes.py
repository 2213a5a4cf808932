"""More than one process: each takes its share of a mini-batch and has chains and draws of its own."""

from dataclasses import dataclass
from typing import Self, final

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch import distributed as dist

from .objective import Objective


@final
@dataclass(frozen=True)
class Group:
    """The processes that learn together: this one's number, and how many there are."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Self:
        """The group that torch.distributed knows, or this process alone."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    def wrapped(self, objective: Objective) -> nn.Module:
        """The objective with gradients averaged over the processes; each keeps its own chains and running averages."""
        if self.size == 1:
            return objective
        return nn.parallel.DistributedDataParallel(objective, broadcast_buffers=False)

    def share(self, index: Int[Tensor, " batch"]) -> Int[Tensor, " share"]:
        """This process's part of a mini-batch."""
        if len(index) % self.size:
            raise ValueError(f"batch: expected a multiple of the {self.size} processes, got {len(index)}")
        return index[self.rank :: self.size]

    def mean(self, numbers: dict[str, float]) -> dict[str, float]:
        """The mean over processes of each number."""
        if self.size == 1:
            return numbers
        total = torch.tensor(list(numbers.values()), dtype=torch.float64)
        dist.all_reduce(total)
        return dict(zip(numbers, (total / self.size).tolist(), strict=True))


def shard(x: Tensor) -> Tensor:
    """This process's part of chains or buffers that all processes share between them."""
    group = Group.current()
    return x[group.rank :: group.size]
