"""How far an estimate may be from the truth: the exact asymptotic law of estimators that minimise a mean of losses."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..statistics import chi_square_bound


def gradient(loss: Tensor, parameters: Sequence[Tensor], graph: bool = False) -> Tensor:
    """The gradient as one vector; 0 for a parameter that the loss does not touch."""
    if not loss.requires_grad:
        return torch.zeros(sum(p.numel() for p in parameters), dtype=loss.dtype, device=loss.device)
    parts = torch.autograd.grad(loss, parameters, create_graph=graph, allow_unused=True, retain_graph=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(parts, parameters)])


def gradient_gap(loss: Tensor, definition: Tensor, parameters: Sequence[Tensor]) -> float:
    """The largest difference between two gradients, over the largest entry."""
    a, b = gradient(loss, parameters), gradient(definition, parameters)
    assert float(b.abs().max()) > 1e-3, "a gradient of 0 tells nothing"
    return float((a - b).abs().max() / b.abs().max())


def hessian(loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    slope = gradient(loss, parameters, graph=True)
    return torch.stack([gradient(entry, parameters) for entry in slope])


def spread(losses: Sequence[Tensor], p: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The covariance of a loss's gradient when its state has the law p."""
    rows = torch.stack([gradient(loss, parameters) for loss in losses])
    away = rows - p @ rows
    return away.T @ (p[:, None] * away)


def covariance(curvature: Tensor, spread: Tensor, n: int) -> Tensor:
    """H^-1 V H^-1 / n, the covariance of the minimiser of a mean over n examples (White, 1982)."""
    inverse = torch.linalg.inv(curvature)
    return inverse @ spread @ inverse / n


def close(found: Tensor, truth: Tensor, covariance: Tensor) -> bool:
    """Whether found - truth, normal with that covariance, is within the ellipse left once in a million."""
    away = (found - truth).flatten()
    return float(away @ torch.linalg.solve(covariance, away)) < chi_square_bound(len(away))


def minimise(loss: Callable[[], Tensor], parameters: Sequence[Tensor], steps: int = 200) -> Tensor:
    """The minimum of a smooth loss, by LBFGS; the parameters there as one vector."""
    optimiser = torch.optim.LBFGS(
        list(parameters), max_iter=steps, tolerance_grad=1e-10, tolerance_change=1e-13, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)
    assert float(gradient(loss(), parameters).abs().max()) < 1e-5, "not at a minimum"
    return flat(parameters)


def flat(parameters: Sequence[Tensor]) -> Tensor:
    return torch.cat([p.detach().flatten() for p in parameters]).clone()


def draws(p: Tensor, states: Tensor, n: int, seed: int) -> Tensor:
    """n exact draws from enumerated probabilities."""
    return states[torch.multinomial(p, n, True, generator=torch.Generator().manual_seed(seed))]
