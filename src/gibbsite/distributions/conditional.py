"""Normal laws whose mean, and perhaps scale, a network reads off a context: decoders and encoders."""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..check import instance, number


class ConditionalNormal(nn.Module, ABC):
    """c -> N(m(c), diag s(c)^2), as the pair (m(c), s(c)); s may be of any shape that broadcasts to that of m."""

    @abstractmethod
    def forward(self, c: Float[Tensor, "*batch context"]) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """The means and standard deviations at c."""


@final
class FixedScale(ConditionalNormal):
    """m(c) is what the network says, and s a given number.

    Example:
        >>> import torch
        >>> from gibbsite.distributions import FixedScale
        >>> mean, scale = FixedScale(torch.nn.Identity(), 0.5)(torch.tensor([[1.0]]))
        >>> mean.item(), scale.item()
        (1.0, 0.5)
    """

    scale: Tensor

    def __init__(self, mean: nn.Module, scale: float):
        super().__init__()
        self.mean = instance(mean, nn.Module, "mean")
        self.register_buffer("scale", torch.tensor(number(scale, "scale", above=0)))

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean(c), self.scale


@final
class SharedScale(ConditionalNormal):
    """m(c) is what the network says, and s one number that is learned, for all contexts and entries, from `start`."""

    def __init__(self, mean: nn.Module, start: float = 1.0):
        super().__init__()
        self.mean = instance(mean, nn.Module, "mean")
        self.log_scale = nn.Parameter(torch.tensor(number(start, "start", above=0)).log())

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean(c), self.log_scale.exp()


@final
class OwnScale(ConditionalNormal):
    """The network says (m(c), log s(c)) side by side, in the two halves of its last dimension; s is at least `least`."""

    def __init__(self, both: nn.Module, least: float = 1e-3):
        super().__init__()
        self.both, self.least = instance(both, nn.Module, "both"), number(least, "least", above=0)

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.both(c).chunk(2, -1)
        return mean, self.least + log_scale.exp()
