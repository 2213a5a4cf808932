"""More than one process, as torchrun starts them: who is there, which part is whose, and what they tell each other."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, final

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.tensor import DTensor

from . import random
from .random import Seed, Source


@final
@dataclass(frozen=True)
class Group:
    """The processes that work together: this one's number, and how many there are.

    All of them call the same functions with the same arguments, `seed` too; each works on its share, with draws of its own.
    """

    rank: int = 0
    size: int = 1
    device: torch.device | str = "cpu"

    @classmethod
    def current(cls, device: torch.device | str = "cpu") -> Self:
        """The group that torch.distributed knows, or this process alone; what they tell each other lies on the device."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), device)
        return cls(device=device)

    def share(self, count: int, name: str) -> int:
        """How many of `count` are this process's: each has at least one, and as many as another or one more or less."""
        if count < self.size:
            raise ValueError(f"{name}: expected at least one for each of the {self.size} processes, got {count}")
        return len(range(self.rank, count, self.size))

    def part(self, x: Shaped[Tensor, "rows ..."], name: str) -> Shaped[Tensor, "own_rows ..."]:
        """The rows that are this process's."""
        self.share(len(x), name)
        return x[self.rank :: self.size]

    def source(self, common: Source) -> Source:
        """The generator of this process's own draws, from one that all processes have alike: itself, if there is but one."""
        if self.size == 1 or not isinstance(common, torch.Generator):
            return common
        number = int(torch.randint(2**63 - 1, (), generator=common, device=common.device))
        if len(self.common([number])) != 1:
            raise ValueError("seed: expected the same one in every process, got different ones; each draws its own from it")
        return torch.Generator(common.device).manual_seed(random.substream(number, self.rank))

    def gather(self, x: Shaped[Tensor, "rows ..."]) -> Shaped[Tensor, "all_rows ..."]:
        """The rows of all processes, one process after the other."""
        if self.size == 1:
            return x
        sizes = [torch.zeros((), dtype=torch.long, device=self.device) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor(len(x), device=self.device))
        rows = x.new_zeros(int(torch.stack(sizes).max()), *x.shape[1:], device=self.device)
        rows[: len(x)] = x
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(parts, rows)
        return torch.cat([part[: int(size)] for part, size in zip(parts, sizes, strict=True)]).to(x.device)

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
        return sorted(set.intersection(*map(set, self._told(list(numbers)))))

    @contextmanager
    def agreed(self, kind: type[Exception] = RuntimeError) -> Iterator[None]:
        """What fails inside in one process fails in all of them, so that none waits for another; nothing inside may wait."""
        failure = None
        try:
            yield
        except Exception as error:
            failure = error
        told = self._told(None if failure is None else str(failure))
        if failure is not None:
            raise failure
        for rank, message in enumerate(told):
            if message is not None:
                raise kind(f"process {rank}: {message}")

    def first(self, value: Any) -> Any:
        """What process 0 has; plain values, not tensors."""
        return self._told(value)[0]

    def _told(self, value: Any) -> list[Any]:
        every: list[Any] = [value] * self.size
        if self.size > 1:
            dist.all_gather_object(every, value)
        return every


def sharded(module: nn.Module) -> bool:
    """Whether any parameter is one of which each process holds a part (FSDP2)."""
    return any(isinstance(parameter, DTensor) for parameter in module.parameters())


def shard(x: Tensor) -> Tensor:
    """This process's part of chains, buffers or data that all processes share between them.

    Example:
        >>> import torch, gibbsite as gb
        >>> gb.learn.shard(torch.arange(4)).tolist()  # of one process: all
        [0, 1, 2, 3]
    """
    group = Group.current()
    return x[group.rank :: group.size]


def own(seed: Seed, device: torch.device | str = "cpu") -> Source:
    """A generator of this process's own draws, from the seed that all of them are given.

    Example:
        >>> import gibbsite as gb
        >>> space = gb.Binary(4)
        >>> x = space.uniform().sample(8, seed=gb.processes.own(0))  # others in every process
    """
    return Group.current(device).source(random.generator(seed, device))


def gather(x: Shaped[Tensor, "rows ..."]) -> Shaped[Tensor, "all_rows ..."]:
    """The rows of all processes, one process after the other; all of them call it.

    Example:
        >>> import torch, gibbsite as gb
        >>> gb.processes.gather(torch.arange(2)).tolist()  # of one process: its own
        [0, 1]
    """
    return Group.current(x.device).gather(x)
