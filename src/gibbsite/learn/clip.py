"""Clipping by what the optimiser has seen: gradients beyond a few of their own standard deviations are cut."""

from dataclasses import dataclass
from typing import final

import torch

from ..check import number


@final
@dataclass(frozen=True)
class AdamClip:
    """Each entry of a gradient is kept within +-(deviations sqrt(v_hat) + floor), v_hat Adam's corrected second moment.

    v_hat is that of the updates before, so that the first one is not clipped. `floor` lets an entry move whose gradient
    was 0 so far. It is a `clip` of `fit`, for Adam and its kin.

    References: Du and Mordatch (2019), Implicit generation and generalization in energy-based models; Xiao et al. (2021),
    VAEBM, appendix E.

    Example:
        >>> import torch, gibbsite as gb
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> optimiser = torch.optim.Adam([weight], lr=0.0)
        >>> for gradient in (torch.ones(2), torch.tensor([10.0, -1.0])):
        ...     weight.grad = gradient
        ...     gb.learn.AdamClip(floor=0.5)(optimiser)
        ...     optimiser.step()
        >>> weight.grad.tolist()
        [3.5, -1.0]
    """

    deviations: float = 3.0
    floor: float = 0.1

    def __post_init__(self):
        number(self.deviations, "deviations", above=0)
        number(self.floor, "floor", least=0)

    @torch.no_grad()
    def __call__(self, optimiser: torch.optim.Optimizer) -> None:
        """Clips the gradients in place."""
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                state = optimiser.state.get(parameter, {})
                if parameter.grad is None or not state:
                    continue
                if "exp_avg_sq" not in state:
                    kind = type(optimiser).__name__
                    raise TypeError(f"optimiser: expected Adam or one of its kin, which know a second moment, got {kind}")
                second = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
                bound = self.deviations * second.sqrt() + self.floor
                torch.clamp(parameter.grad, -bound, bound, out=parameter.grad)
