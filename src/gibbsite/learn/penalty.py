"""Penalties on parameters, and the objective that adds one to another objective."""

from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from ..check import function, instance, number
from ..random import Source
from .objective import Objective, Report


def l1(weights: Tensor | Iterable[Tensor]) -> Float[Tensor, ""]:
    """sum |w|: drives most weights to 0 (Tibshirani, 1996).

    Example:
        >>> import torch
        >>> l1(torch.tensor([1.0, -2.0])).item()
        3.0
    """
    tensors = [weights] if isinstance(weights, Tensor) else list(weights)
    if not tensors:
        raise ValueError("weights: expected at least one tensor, got none")
    return torch.stack([w.abs().sum() for w in tensors]).sum()


def block_l1(weights: Float[Tensor, "..."], block: tuple[int, ...]) -> Float[Tensor, ""]:
    """The sum over blocks of the norm of each: whole blocks become 0 (Yuan and Lin, 2006).

    `block` are the dimensions that lie inside a block: (1, 3) makes each pair of sites of Potts couplings (L, q, L, q) one.
    A block of 0 has the gradient 0, not NaN.

    Example:
        >>> import torch
        >>> block_l1(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), (1,)).item()
        5.0
    """
    if not block or not all(-weights.ndim <= axis < weights.ndim for axis in block):
        raise ValueError(f"block: expected dimensions of weights of shape {tuple(weights.shape)}, got {block}")
    squares = weights.square().sum(block)
    return torch.where(squares > 0, squares, 1.0).sqrt().where(squares > 0, 0.0).sum()


@final
class Penalised(Objective):
    """An objective plus `weight` times a penalty: a function without arguments, or a module such as `SpectralNorm`.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(3, coupling=0.2)
        >>> data = model.space.uniform().sample(8, seed=0)
        >>> sparse = gb.learn.Penalised(gb.learn.PseudoLikelihood(model), lambda: gb.learn.l1(model.pairs.parameters()), 0.1)
        >>> round(sparse(data, seed=0).metrics["penalty"].item(), 2)            # 18 edges of 0.2
        3.6
    """

    def __init__(self, objective: Objective, penalty: Callable[[], Tensor], weight: float):
        super().__init__(instance(objective, Objective, "objective").space)
        self.objective, self.weight = objective, number(weight, "weight", least=0)
        self.penalty = function(penalty, "penalty", "lambda: gb.learn.l1(model.parameters())")

    def forward(self, data: Any, *, seed: Source) -> Report:
        report, penalty = self.objective(data, seed=seed), self.penalty()
        return Report(report.loss + self.weight * penalty, {**report.metrics, "penalty": penalty.detach()})
