"""What an encoder is: features to hidden vectors, with fewer frames; and the parts that encoders share."""

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ... import random
from ...random import Source


class Encoder(nn.Module, ABC):
    """Hidden vectors of `width` numbers, one for each `subsample` frames; without a source nothing is dropped."""

    def __init__(self, width: int, subsample: int):
        super().__init__()
        self.width, self.subsample = width, subsample

    def frames(self, lengths: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """How many hidden vectors there are for so many frames."""
        return (lengths + self.subsample - 1) // self.subsample

    @abstractmethod
    def forward(
        self, features: Float[Tensor, "batch frames size"], lengths: Int[Tensor, " batch"], source: Source | None = None
    ) -> Float[Tensor, "batch fewer width"]:
        """The hidden vectors; what lies beyond `frames(lengths)` is without meaning."""


def stacked(features: Float[Tensor, "batch frames size"], count: int) -> Float[Tensor, "batch fewer more"]:
    """Each `count` frames side by side as one."""
    missing = -features.shape[1] % count
    whole = nn.functional.pad(features, (0, 0, 0, missing))
    return whole.reshape(len(whole), -1, count * whole.shape[2])


def within(lengths: Int[Tensor, " batch"], most: int) -> Bool[Tensor, "batch most"]:
    """Which of the first `most` places lie within each length."""
    return torch.arange(most, device=lengths.device) < lengths[:, None]


def dropped(x: Tensor, rate: float, source: Source | None) -> Tensor:
    """Numbers set to 0 with probability `rate`, the others scaled so that means stay; none without a source."""
    if source is None or not rate:
        return x
    return x * (random.uniform(x.shape, source, x.dtype) >= rate) / (1 - rate)


@torch.no_grad()
def draw_weights(module: nn.Module, source: Source) -> None:
    """Matrices uniform in +-1 / sqrt(inputs), scales of norms 1, biases 0, in the order of the parameters."""
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if parameter.ndim > 1:
                bound = 1 / math.sqrt(parameter[0].numel())
                parameter.copy_((2 * random.uniform(parameter.shape, source, parameter.dtype) - 1) * bound)
            else:
                parameter.fill_(float(isinstance(part, nn.LayerNorm) and name == "weight"))
