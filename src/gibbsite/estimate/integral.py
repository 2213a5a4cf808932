"""Integrals over a box in one or two dimensions, on a grid: log Z, and the divergence of a model from a known law."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ..check import instance, number
from ..model import Distribution, Model, as_model, device_of, dtype_of, evaluate
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
    x, shape, cell = _grid(model.space, low, high, points)
    u, dims = _values(model, x).view(shape), len(shape)
    value = _trapezium(u, cell)
    error = abs(value - _trapezium(_thinned(u), cell + dims * math.log(2)))
    return _estimate(value, error, {"integral": (u, cell, value)}, x.shape[0])


def divergence(
    truth: Distribution,
    model: Callable[[Tensor], Tensor],
    low: float | Sequence[float],
    high: float | Sequence[float],
    points: int = 401,
) -> Estimate:
    """KL(p || exp U / Z) = E_p [log p - U] + log Z in nats, p the truth, by the trapezium rule on a grid.

    It is by how much the mean log-likelihood of endlessly many draws of p is lower under the model than under p. Error and
    trust are as those of `integrate`, of which log Z is one; both p and the model must have their mass in the box. Where p
    has none, U may be -inf.

    Example:
        >>> import gibbsite as gb
        >>> p, q = (gb.distributions.Normal.diagonal([0.0], scale) for scale in (1.0, 2.0))
        >>> found = gb.estimate.divergence(p, lambda x: q(x) + 5, -12, 12)
        >>> exact = torch.tensor(2.0).log().item() + 1 / 8 - 1 / 2
        >>> abs(found.value - exact) < 1e-5, found.trusted
        (True, True)
    """
    model = as_model(model, instance(truth, Distribution, "truth").space)
    x, shape, cell = _grid(truth.space, low, high, points)
    u, log_p = _values(model, x).view(shape), _values(truth, x).view(shape)

    def of(u: Tensor, log_p: Tensor, cell: float) -> float:
        terms = torch.where(log_p > -math.inf, log_p.exp() * (log_p - u), 0.0)
        return float((_log_weights(u).exp() * terms).sum()) * math.exp(cell) + _trapezium(u, cell)

    value = of(u, log_p, cell)
    error = abs(value - of(_thinned(u), _thinned(log_p), cell + len(shape) * math.log(2)))
    log_z, mass = _trapezium(u, cell), _trapezium(log_p, cell)
    parts = {"model's integral": (u, cell, log_z), "truth's integral": (log_p, cell, mass)}
    return _estimate(value, max(error, abs(mass)), parts, 2 * x.shape[0])


def _grid(
    space: Space, low: float | Sequence[float], high: float | Sequence[float], points: int
) -> tuple[Tensor, list[int], float]:
    """The points, how many there are in each dimension, and the logarithm of a cell's size."""
    if not isinstance(space, Real) or math.prod(space.shape) not in (1, 2):
        raise TypeError(f"model: expected one on Real states of 1 or 2 dimensions, got {space}")
    dims, n = math.prod(space.shape), whole(points, "points", 5)
    n += 1 - n % 2  # odd, so that every second point is a grid of the same box
    sides = list(zip(_side(low, "low", dims), _side(high, "high", dims), strict=True))
    if any(a >= b for a, b in sides):
        raise ValueError(f"low, high: expected low < high in each dimension, got {low} and {high}")
    axes = [torch.linspace(a, b, n, dtype=torch.float64) for a, b in sides]
    x = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, *space.shape)
    return x, [n] * dims, math.fsum(math.log((b - a) / (n - 1)) for a, b in sides)


def _values(model: Model, x: Tensor) -> Tensor:
    parts = [evaluate(model, part.to(device_of(model), dtype_of(model))).double().cpu() for part in x.split(_BATCH)]
    return torch.cat(parts)


def _estimate(
    value: float, error: float, integrals: Mapping[str, tuple[Tensor, float, float]], evaluations: int
) -> Estimate:
    """The number with its error, and whether it is to be trusted; integrals are given as (U, log cell, log integral)."""
    words = {f"every second point would change it by {error:.2g}: take more points": not error <= 0.01}
    for name, (u, cell, log_z) in integrals.items():
        outer = math.exp(float(_edge(u)) + cell - log_z) if log_z > -math.inf else 0.0
        words[f"{outer:.1%} of the {name} lies in the outermost cells: take a wider box"] = outer > _OUTSIDE
    why = "; ".join(word for word, found in words.items() if found)
    ends = (value - MARGIN * error, value + MARGIN * error)
    return Estimate(value, error, *ends, evaluations, evaluations, Cost(1, 0), not why, why)


def _side(value: float | Sequence[float], name: str, dims: int) -> list[float]:
    given = list(value) if isinstance(value, Sequence) else [value] * dims
    if len(given) != dims:
        raise ValueError(f"{name}: expected a number or {dims} of them, got {value}")
    return [number(v, f"{name}[{place}]") for place, v in enumerate(given)]


def _trapezium(u: Tensor, log_cell: float) -> float:
    """log of the sum of exp U times the cell."""
    return float((u + _log_weights(u)).flatten().logsumexp(0)) + log_cell


def _log_weights(u: Tensor) -> Tensor:
    """Points on faces count half, at corners a quarter."""
    log_weight = torch.zeros_like(u)
    for dim in range(u.ndim):
        for end in (0, -1):
            log_weight.select(dim, end).sub_(math.log(2))
    return log_weight


def _thinned(u: Tensor) -> Tensor:
    return u[(slice(None, None, 2),) * u.ndim]


def _edge(u: Tensor) -> Tensor:
    """log of the sum of exp U over the points on the box's faces."""
    faces = [u.select(dim, end).flatten() for dim in range(u.ndim) for end in (0, -1)]
    return torch.cat(faces).logsumexp(0)
