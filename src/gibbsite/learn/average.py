"""A moving average of weights, as models are evaluated with."""

from typing import final

import torch
from torch import Tensor, nn


@final
class Average:
    """m <- decay m + (1 - decay) w after every update; `copy_to(module)` evaluates with the averaged weights.

    References: Polyak and Juditsky (1992); Ho et al. (2020) for the exponential form.
    """

    def __init__(self, module: nn.Module, decay: float = 0.999):
        if not 0 <= decay < 1:
            raise ValueError(f"decay: expected a number in [0, 1), got {decay}")
        self.module, self.decay = module, decay
        self.weights: dict[str, Tensor] = {name: p.detach().clone() for name, p in module.named_parameters()}

    @torch.no_grad()
    def update(self) -> None:
        """Takes in the weights as they are now."""
        for name, parameter in self.module.named_parameters():
            self.weights[name].lerp_(parameter, 1 - self.decay)

    def copy_to(self, module: nn.Module) -> None:
        """Writes the averaged weights into a module of the same form."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(self.weights[name])
