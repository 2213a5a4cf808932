"""Balancing functions g(t) = t g(1/t): how strongly a locally informed proposal prefers likely neighbours (Zanella 2020)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from ..check import instance, number


class Balance(ABC):
    """log g as a function of log t, t = p(x') / p(x)."""

    @abstractmethod
    def log(self, change: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """log g(exp(change))."""


def check_balance(balance: object) -> Balance:
    """The balancing function, or an error that names what there is."""
    return instance(
        balance, Balance, "balance", hint="; such as Power(2) (the square root), Barker(), Minimum() or Maximum()"
    )


@final
@dataclass(frozen=True)
class Power(Balance):
    """g(t) = t^(1/temperature); balanced at temperature 2, the square root, GWG's choice (its appendix A)."""

    temperature: float = 2.0

    def __post_init__(self):
        object.__setattr__(self, "temperature", number(self.temperature, "temperature", above=0))

    def log(self, change: Tensor) -> Tensor:
        return change / self.temperature


@final
@dataclass(frozen=True)
class Barker(Balance):
    """g(t) = t / (1 + t)."""

    def log(self, change: Tensor) -> Tensor:
        return logsigmoid(change)


@final
@dataclass(frozen=True)
class Minimum(Balance):
    """g(t) = min(1, t)."""

    def log(self, change: Tensor) -> Tensor:
        return change.clamp(max=0)


@final
@dataclass(frozen=True)
class Maximum(Balance):
    """g(t) = max(1, t)."""

    def log(self, change: Tensor) -> Tensor:
        return change.clamp(min=0)
