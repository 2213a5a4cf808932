"""Optimisers as configurations, of which flags are made."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from torch import nn

from ...check import number


class Optimiser(ABC):
    """What follows the gradient, as a configuration."""

    @abstractmethod
    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of these parameters."""


@final
@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma and Ba, 2015)."""

    rate: float = 2e-3
    """Its learning rate at the start."""

    def __post_init__(self):
        number(self.rate, "rate", above=0)

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, self.rate, betas=(0.9, 0.99))


@final
@dataclass(frozen=True)
class SGD(Optimiser):
    """Stochastic gradient descent with momentum."""

    rate: float = 0.1
    """Its learning rate at the start."""
    momentum: float = 0.9
    """How much of the last step goes on."""

    def __post_init__(self):
        number(self.rate, "rate", above=0)
        number(self.momentum, "momentum", least=0, below=1)

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, self.rate, self.momentum)
