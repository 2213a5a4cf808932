"""Schedules: a step's factor of the learning rate, as pure functions of the step, so that there is nothing to save."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ..check import instance, number
from ..space import whole


class Schedule(ABC):
    """step -> factor, steps counted from 0; a product of schedules is one: `Warmup(500) * Cosine(20_000)`."""

    @abstractmethod
    def __call__(self, step: int) -> float:
        """The factor of this step."""

    def __mul__(self, other: "Schedule") -> "Schedule":
        return Product(self, instance(other, Schedule, "schedule"))


@final
@dataclass(frozen=True)
class Product(Schedule):
    """The product of two schedules."""

    first: Schedule
    second: Schedule

    def __call__(self, step: int) -> float:
        return self.first(step) * self.second(step)


@final
@dataclass(frozen=True)
class Warmup(Schedule):
    """(t + 1) / steps up to 1: linear, and never 0.

    References: Goyal et al. (2017), Accurate, large minibatch SGD.

    Example:
        >>> import gibbsite as gb
        >>> schedule = gb.learn.schedule.Warmup(4) * gb.learn.schedule.Polynomial(8)
        >>> [schedule(step) for step in (0, 3, 4, 8)]
        [0.25, 0.625, 0.5, 0.0]
    """

    steps: int

    def __post_init__(self):
        whole(self.steps, "steps")

    def __call__(self, step: int) -> float:
        return min(1.0, (step + 1) / self.steps)


@final
@dataclass(frozen=True)
class Polynomial(Schedule):
    """end + (1 - end) (1 - t / steps)^power, and `end` from `steps` on; linear for power 1."""

    steps: int
    power: float = 1.0
    end: float = 0.0

    def __post_init__(self):
        whole(self.steps, "steps")
        number(self.power, "power", above=0)
        number(self.end, "end", least=0)

    def __call__(self, step: int) -> float:
        return self.end + (1 - self.end) * (1 - min(1.0, step / self.steps)) ** self.power


@final
@dataclass(frozen=True)
class Cosine(Schedule):
    """end + (1 - end) (1 + cos(pi t / steps)) / 2, and `end` from `steps` on.

    References: Loshchilov and Hutter (2017), SGDR.
    """

    steps: int
    end: float = 0.0

    def __post_init__(self):
        whole(self.steps, "steps")
        number(self.end, "end", least=0)

    def __call__(self, step: int) -> float:
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * min(1.0, step / self.steps))) / 2


@final
@dataclass(frozen=True)
class Stairs(Schedule):
    """factor^(t // every): a step down after every so many."""

    every: int
    factor: float = 0.1

    def __post_init__(self):
        whole(self.every, "every")
        number(self.factor, "factor", above=0, most=1)

    def __call__(self, step: int) -> float:
        return self.factor ** (step // self.every)


@final
@dataclass(frozen=True)
class RobbinsMonro(Schedule):
    """1 up to step `hold`, then (hold / t)^power: the sum diverges and the sum of squares does not, for 1/2 < power <= 1.

    With these steps stochastic approximation converges although its chains only move a little between updates.

    References: Robbins and Monro (1951); Younes (1999); EBM-SLP, algorithm 4.
    """

    hold: int
    power: float = 1.0

    def __post_init__(self):
        whole(self.hold, "hold")
        number(self.power, "power", above=0.5, most=1)

    def __call__(self, step: int) -> float:
        return (self.hold / max(step, self.hold)) ** self.power
