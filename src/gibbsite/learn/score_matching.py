"""Score matching: learning U on real states without its normaliser, by its first and second derivatives."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..model import Model, check_model, evaluate
from ..random import Source
from ..space import Real
from .objective import Objective, Report


def real(model: Model) -> Model:
    """The model, if it lives on real states."""
    if not isinstance(check_model(model).space, Real):
        raise TypeError(
            f"model: expected one on Real states, got one on {model.space}; on discrete ones take ratio_matching"
        )
    return model


def with_score(model: Model, data: Float[Tensor, "batch *event"]) -> tuple[Tensor, Float[Tensor, "batch event"]]:
    """Leaves x and s(x) = dU/dx, flattened, with the graph that leads from s to x and to the parameters."""
    x = model.space.check(data, "data").clone().requires_grad_()
    if x.ndim != len(model.space.shape) + 1 or not len(x):
        raise ValueError(f"data: expected at least one state, shape (batch, *event), got {tuple(x.shape)}")
    with torch.enable_grad():
        u = evaluate(model, x, start=False, graph=True)
        s = torch.autograd.grad(u.sum(), x, create_graph=True, allow_unused=True)[0] if u.requires_grad else None
    return x, (torch.zeros_like(x) if s is None else s).flatten(1)


def directional(
    x: Float[Tensor, "batch *event"], s: Float[Tensor, "batch event"], v: Float[Tensor, "*#batch event"]
) -> Float[Tensor, "batch"]:
    """v.(ds/dx)v at each state; 0 where s does not depend on x."""
    along = (s * v).sum()
    if not along.requires_grad:
        return torch.zeros_like(s[:, 0])
    (h,) = torch.autograd.grad(along, x, create_graph=True, allow_unused=True)
    return torch.zeros_like(s[:, 0]) if h is None else (h.flatten(1) * v).sum(1)


def score_matching(model: Model, data: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
    """E_data |s|^2 / 2 + tr ds/dx, s = dU/dx: up to a constant E_data |s - s_data|^2 / 2.

    The trace takes one more differentiation for each entry of x: see `sliced_score_matching` for many.

    References: Hyvarinen (2005), Estimation of non-normalized statistical models by score matching.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.Potential(lambda x: -0.5 * x.square().sum(-1), gb.Real(2))
        >>> gb.learn.score_matching(model, torch.tensor([[1.0, 2.0]])).item()          # 5 / 2 - 2
        0.5
    """
    x, s = with_score(model, data)
    directions = torch.eye(s.shape[1], dtype=s.dtype, device=s.device)
    trace = torch.stack([directional(x, s, v) for v in directions]).sum(0)
    return (0.5 * s.square().sum(1) + trace).mean()


@final
class ScoreMatching(Objective):
    """Score matching with the exact trace."""

    def __init__(self, model: Model):
        super().__init__(real(model).space)
        self.model = model

    def forward(self, data: Float[Tensor, "batch *event"], *, seed: Source) -> Report:
        return Report(score_matching(self.model, data))
