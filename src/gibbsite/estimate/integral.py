"""log of the integral of exp U over a box in one or two dimensions, on a grid."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..check import number
from ..model import as_model, device_of, dtype_of, evaluate
from ..sample.kernel import Cost
from ..space import Real, Space, whole
from .estimate import MARGIN, Estimate

_BATCH = 1 << 16
_OUTSIDE = 1e-3  # the share of the integral in the outermost cells from which a box is too narrow


def integrate(
    model: Callable[[Tensor], Tensor],
    low: float | Sequence[float],
    high: float | Sequence[float],
    points: int = 401,
    *,
    space: Space | None = None,
) -> Estimate:
    """log int_box exp U(x) dx for x in one or two dimensions, by the trapezium rule on `points` a dimension.

    Where U is smooth and the box holds all the mass the rule converges faster than any power of the step. `stderr` is what
    every second point alone would change, in logs: a discretisation error, no chance is involved. Not trusted when that is
    above 0.01, or when more than a thousandth of the integral lies in the outermost cells: mass may then lie outside.

    References: Trefethen and Weideman (2014), The exponentially convergent trapezoidal rule.

    Example:
        >>> import gibbsite as gb
        >>> z = gb.estimate.integrate(gb.distributions.Normal.standard(2), -8, 8, 201)
        >>> abs(z.value) < 1e-5, z.trusted
        (True, True)
    """
    model = as_model(model, space)
    if not isinstance(model.space, Real) or math.prod(model.space.shape) not in (1, 2):
        raise TypeError(f"model: expected one on Real states of 1 or 2 dimensions, got {model.space}")
    dims, n = math.prod(model.space.shape), whole(points, "points", 5)
    n += 1 - n % 2  # odd, so that every second point is a grid of the same box
    sides = list(zip(_side(low, "low", dims), _side(high, "high", dims), strict=True))
    if any(a >= b for a, b in sides):
        raise ValueError(f"low, high: expected low < high in each dimension, got {low} and {high}")
    axes = [torch.linspace(a, b, n, dtype=torch.float64) for a, b in sides]
    x = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, *model.space.shape)
    parts = [evaluate(model, part.to(device_of(model), dtype_of(model))).double().cpu() for part in x.split(_BATCH)]
    u = torch.cat(parts).view([n] * dims)
    cell = math.fsum(math.log((b - a) / (n - 1)) for a, b in sides)
    value = _trapezium(u, cell)
    error = abs(value - _trapezium(u[(slice(None, None, 2),) * dims], cell + dims * math.log(2)))
    edge = _edge(u)
    outer = math.exp(float(edge) + cell - value) if value > -math.inf else 0.0
    words = {
        f"every second point would change it by {error:.2g}: take more points": not error <= 0.01,
        f"{outer:.1%} of the integral lies in the outermost cells: take a wider box": outer > _OUTSIDE,
    }
    why = "; ".join(word for word, found in words.items() if found)
    ends = (value - MARGIN * error, value + MARGIN * error)
    return Estimate(value, error, *ends, x.shape[0], x.shape[0], Cost(1, 0), not why, why)


def _side(value: float | Sequence[float], name: str, dims: int) -> list[float]:
    given = list(value) if isinstance(value, Sequence) else [value] * dims
    if len(given) != dims:
        raise ValueError(f"{name}: expected a number or {dims} of them, got {value}")
    return [number(v, f"{name}[{place}]") for place, v in enumerate(given)]


def _trapezium(u: Tensor, log_cell: float) -> float:
    """log of the sum of exp U times the cell, points on faces counting half, at corners a quarter."""
    log_weight = torch.zeros_like(u)
    for dim in range(u.ndim):
        for end in (0, -1):
            log_weight.select(dim, end).sub_(math.log(2))
    return float((u + log_weight).flatten().logsumexp(0)) + log_cell


def _edge(u: Tensor) -> Tensor:
    """log of the sum of exp U over the points on the box's faces."""
    faces = [u.select(dim, end).flatten() for dim in range(u.ndim) for end in (0, -1)]
    return torch.cat(faces).logsumexp(0)
