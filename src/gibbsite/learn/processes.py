"""More than one process: each takes its share of a mini-batch and has chains and draws of its own."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, final

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.tensor import DTensor

from .objective import Objective


@final
@dataclass(frozen=True)
class Group:
    """The processes that learn together: this one's number, and how many there are."""

    rank: int = 0
    size: int = 1
    device: torch.device | str = "cpu"

    @classmethod
    def current(cls, device: torch.device | str = "cpu") -> Self:
        """The group that torch.distributed knows, or this process alone; what they tell each other lies on the device."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), device)
        return cls(device=device)

    def wrapped(self, objective: Objective) -> nn.Module:
        """The objective with gradients averaged over the processes; each keeps its own chains and running averages.

        One whose parameters are sharded (FSDP2) averages them itself.
        """
        if self.size == 1 or any(isinstance(parameter, DTensor) for parameter in objective.parameters()):
            return objective
        with warnings.catch_warnings():
            # torch's warning says to go on so where buffers differ from process to process, as chains do
            warnings.simplefilter("ignore", FutureWarning)
            return nn.parallel.DistributedDataParallel(objective, broadcast_buffers=False)

    def mean(self, numbers: Tensor) -> Tensor:
        """The mean over processes."""
        if self.size == 1:
            return numbers
        total = numbers.clone()
        dist.all_reduce(total)
        return total / self.size

    def any(self, here: bool) -> bool:
        """Whether it is so in any process."""
        return here if self.size == 1 else float(self.mean(torch.tensor(float(here), device=self.device))) > 0

    def common(self, numbers: Iterable[int]) -> list[int]:
        """The numbers that all processes have, in order."""
        own = set(numbers)
        if self.size == 1:
            return sorted(own)
        every: list[Any] = [None] * self.size
        dist.all_gather_object(every, own)
        return sorted(set.intersection(*every))


def shard(x: Tensor) -> Tensor:
    """This process's part of chains or buffers that all processes share between them.

    Example:
        >>> import torch, gibbsite as gb
        >>> gb.learn.shard(torch.arange(4)).tolist()  # of one process: all
        [0, 1, 2, 3]
    """
    group = Group.current()
    return x[group.rank :: group.size]
