"""A moving average of weights, as models are evaluated with."""

from typing import final

import torch
from torch import Tensor, nn

from ..check import number
from .snapshot import local


@final
class Average:
    """m <- decay m + (1 - decay) w after every update; `copy_to(module)` evaluates with the averaged weights.

    It starts at the weights as they are: m_n = decay^n w_0 + (1 - decay) sum_k decay^(n-k) w_k.

    References: Polyak and Juditsky (1992); Ho et al. (2020) for the exponential form.

    Example:
        >>> import torch, gibbsite as gb
        >>> rbm = gb.models.RBM(4, 2, seed=0)
        >>> average = gb.learn.Average(rbm, decay=0.5)
        >>> torch.nn.init.ones_(rbm.visible_bias); average.update()
        Parameter containing:
        tensor([1., 1., 1., 1.], requires_grad=True)
        >>> average.weights["visible_bias"].tolist()
        [0.5, 0.5, 0.5, 0.5]
    """

    def __init__(self, module: nn.Module, decay: float = 0.999):
        self.module, self.decay = module, number(decay, "decay", least=0, below=1)
        self.weights: dict[str, Tensor] = {name: local(p).clone() for name, p in module.named_parameters()}

    @torch.no_grad()
    def update(self) -> None:
        """Takes in the weights as they are now."""
        now = [local(parameter) for _, parameter in self.module.named_parameters()]
        torch._foreach_lerp_(list(self.weights.values()), now, 1 - self.decay)

    @torch.no_grad()
    def copy_to(self, module: nn.Module) -> None:
        """Writes the averaged weights into a module of the same form."""
        for name, parameter in module.named_parameters():
            local(parameter).copy_(self.weights[name])
