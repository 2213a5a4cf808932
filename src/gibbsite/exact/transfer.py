"""Ising on strips and tori, exactly: Kaufman's formula, and transfer matrices for any row of up to 12 sites."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..space import whole


def kaufman_log_z(rows: int, columns: int, coupling: float | Tensor) -> Float[Tensor, ""]:
    """log Z of the zero-field Ising torus (each edge once, K = `coupling` > 0), in double precision.

    Z = 1/2 (2 sinh 2K)^(nm/2) [prod 2cosh(m g_(2r+1) / 2) + prod 2sinh(m g_(2r+1) / 2)
                               + prod 2cosh(m g_(2r) / 2) + prod 2sinh(m g_(2r) / 2)],
    r = 0..n-1, cosh g_l = cosh 2K coth 2K - cos(pi l / n), g_0 = 2K + ln tanh K with its sign.
    Twice differentiable in K: -d/dK is the mean energy in units of J, K^2 d^2/dK^2 the heat capacity.

    References: Kaufman (1949), Crystal statistics II.

    Example:
        >>> import math
        >>> round(kaufman_log_z(4, 4, math.log(1 + math.sqrt(2)) / 2).item() / 16, 9)
        0.970119716
    """
    _check_sides(rows, columns, periodic=True)
    K = _number(coupling, "coupling")
    if not K > 0:
        raise ValueError(f"coupling: expected a positive number, got {coupling}")
    order = torch.arange(2 * rows, dtype=torch.float64, device=K.device)
    # in logarithms, for e^K may overflow: cosh 2K coth 2K = e^peak, and acosh y = log y + log(1 + sqrt(1 - y^-2))
    log_two_sinh = 2 * K + torch.log(-torch.expm1(-4 * K))
    peak = 4 * K + 2 * torch.log1p(torch.exp(-4 * K)) - log_two_sinh - math.log(2)
    log_cosh_g = peak + torch.log1p(-torch.cos(math.pi * order[1:] / rows) * torch.exp(-peak))
    rest = log_cosh_g + torch.log1p(torch.sqrt(-torch.expm1(-2 * log_cosh_g)))
    g = torch.cat(((2 * K + torch.log(torch.tanh(K)))[None], rest))
    half = columns * g / 2
    log_cosh = torch.logaddexp(half, -half)
    # g_0 changes sign at the critical point, so its 2 sinh is taken as 2 cosh times a signed, smooth tanh
    log_sinh = torch.cat((log_cosh[:1], half[1:] + torch.log(-torch.expm1(-2 * half[1:]))))
    odd, even = slice(1, None, 2), slice(0, None, 2)
    terms = torch.stack((log_cosh[odd].sum(), log_sinh[odd].sum(), log_cosh[even].sum(), log_sinh[even].sum()))
    sign = torch.stack((*[torch.ones_like(K)] * 3, torch.tanh(half[0])))
    largest = terms.max()
    total = largest + torch.log((sign * torch.exp(terms - largest)).sum())
    return total - math.log(2) + rows * columns / 2 * log_two_sinh


def strip_log_z(
    length: int, width: int, coupling: float | Tensor, field: float | Tensor = 0.0, periodic: bool = True
) -> Float[Tensor, ""]:
    """log Z of a length x width Ising strip by its transfer matrix; periodic in both directions or in none.

    Z = trace(T^length), T = diag(v)^(1/2) exp(K s s') diag(v)^(1/2), v the weight within a row; open: v^(1/2)' T^(length-1)
    v^(1/2). A row has the shorter side's sites, 12 at most. Sums of positive terms in logarithms, so that no coupling or
    field is too strong: the trace is sum_i lambda_i^length where no term is negative, and otherwise, round an odd length of
    antiferromagnetic rows, the sum over first rows of the weight with which each returns.
    """
    _check_sides(length, width, periodic)
    length, width = max(length, width), min(length, width)
    coupling, field = _number(coupling, "coupling"), _number(field, "field")
    if width > 12:
        raise ValueError(f"sides: expected 1 to 12 sites in one direction, got {length} x {width}")
    code = torch.arange(2**width)[:, None] >> torch.arange(width) & 1
    s = (2 * code - 1).double().to(coupling.device)
    within = s[:, 1:] * s[:, :-1] if not periodic else s * s.roll(1, 1)
    half_row = (coupling * within.sum(1) + field * s.sum(1)) / 2
    if periodic and length % 2 and coupling < 0:
        return _log_trace(length, coupling, half_row, s)
    log_t = half_row[:, None] + coupling * (s @ s.T) + half_row
    if periodic:
        shift = log_t.max()
        value = torch.linalg.eigvalsh(torch.exp(log_t - shift)).abs()
        return torch.logsumexp(value.clamp(min=torch.finfo(value.dtype).tiny).log() * length, 0) + length * shift
    log_vector = half_row
    for _ in range(length - 1):
        log_vector = torch.logsumexp(log_t + log_vector, 1)
    return torch.logsumexp(half_row + log_vector, 0)


def _log_trace(length: int, coupling: Tensor, half_row: Float[Tensor, " rows"], s: Float[Tensor, "rows width"]) -> Tensor:
    """log trace(T^length), row after row in logarithms: no signed terms cancel, as eigenvalues would.

    One first row stands for all that are its rotations and reflections; exp(K s s') acts site by site.
    """
    width, place = s.shape[1], 2 ** torch.arange(s.shape[1], device=s.device)
    spins = (s > 0).long()
    images = [(turned.roll(k, 1) * place).sum(1) for turned in (spins, spins.flip(1)) for k in range(width)]
    first, count = torch.stack(images).amin(0).unique(return_counts=True)
    from_first = half_row[first, None] + coupling * (s[first] @ s.T) + half_row
    log_weight = from_first
    for _ in range(length - 2):
        log_weight = checkpoint(_next_row, log_weight, coupling, half_row, use_reentrant=False, preserve_rng_state=False)
    return torch.logsumexp(torch.logsumexp(log_weight + from_first, 1) + count.to(half_row.dtype).log(), 0)


def _next_row(log_weight: Float[Tensor, "first rows"], coupling: Tensor, half_row: Float[Tensor, " rows"]) -> Tensor:
    """log(T w) for each vector w."""
    table = log_weight + half_row
    for site in range(len(half_row).bit_length() - 1):
        bit = table.view(len(table), -1, 2, 2**site)
        table = torch.logaddexp(bit + coupling, bit.flip(2) - coupling).flatten(1)
    return table + half_row


def _check_sides(length: int, width: int, periodic: bool) -> None:
    for side in (whole(length, "length"), whole(width, "width")):
        if periodic and side < 3:
            raise ValueError(
                f"sides: expected at least 3 in a periodic direction, got {length} x {width}: round a shorter side the same "
                "pair would be coupled twice, where Ising.lattice couples it once"
            )


def _number(value: float | Tensor, name: str) -> Float[Tensor, ""]:
    number = torch.as_tensor(value, dtype=torch.float64)
    if number.ndim:
        raise ValueError(f"{name}: expected one number, got shape {tuple(number.shape)}; call it once a value")
    return number
