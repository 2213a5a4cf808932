"""Sums over label sequences of linear chains that share one table of edges: scaled forward and backward recursions.

With ``E = exp(edge)``, ``w_t = exp(node_t)`` (start added to the first, end to the last), in numbers that are scaled anew
at every step:

    ``s_t = a_(t-1) E``, ``a_t = w_t s_t``, ``Z = sum_j a_T(j)``;
    ``p_T = a_T / Z``, ``G_t = p_t / s_t``, ``p_(t-1) = a_(t-1) * (E G_t)``,
    ``P(y_(t-1) = i, y_t = j) = a_(t-1)(i) E_ij G_t(j)``.

Chains go through time in groups, so that ``a E`` is a product of small matrices: panels of 32 columns, tiles of 4 x 4.

Small numbers may be lost, and the loop proves that it does not matter or says that it cannot. Where every edge is allowed
and their range R is at most `_WIDTH`, every label follows from the best one: what is lost is below K T exp(2 R) of the
smallest number, in Z and in every marginal. Elsewhere no number may be lost at all: their ranges are bounded at every step.
A chain that fails is marked in ``lost``: `chain_log` takes it.

Legend: B chains, T positions, K labels, W labels rounded up to whole panels.

References:
    L. Rabiner, "A tutorial on hidden Markov models and selected applications in speech recognition" (1989);
    J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields" (2001).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gibbsite._fast.chain_log import exp_of

PANEL = 32
ROWS = 16  # chains that go through time together
_PEAK = 2.0**40  # what the largest number of a step is scaled to, far from both ends of float32
_INDEX = np.uint64  # an unsigned index needs no wrap-around test, which would stop vectorisation
_1, _2, _3, _32, _64, _96 = (_INDEX(n) for n in (1, 2, 3, 32, 64, 96))
_FEWEST = 1e-30  # a step's largest number before it is scaled
_WIDTH = {np.dtype(np.float32): 25.0, np.dtype(np.float64): 250.0}  # K T exp(2 width) times the smallest number is small
_SMALL = {np.dtype(np.float32): -87.0, np.dtype(np.float64): -700.0}  # log of the smallest number that is kept
_LEAST = {np.dtype(np.float32): -40.0, np.dtype(np.float64): -300.0}  # log of the smallest sum that may be divided by


class Table(NamedTuple):
    """exp(edge - top) in panels for either direction, and what its numbers allow: see `table`."""

    forward: np.ndarray
    backward: np.ndarray
    top: float
    spread: float
    strict: bool
    small: float
    least: float


def table(edge: np.ndarray) -> Table:
    """What the loops read instead of edge (K, K): its exponentials, their range, and whether nothing may be lost."""
    finite = edge[np.isfinite(edge)]
    top = float(finite.max()) if finite.size else 0.0
    spread = top - float(finite.min()) if finite.size else 0.0
    weight = np.exp(edge - edge.dtype.type(top))
    strict = bool(finite.size < edge.size or spread > _WIDTH[edge.dtype])
    limits = _SMALL[edge.dtype], _LEAST[edge.dtype]
    return Table(_panels(weight), _panels(weight.T), top, spread, strict, *limits)


def _panels(weight: np.ndarray) -> np.ndarray:
    """(panels, rows, 32) of a (K, K) matrix, on a cache line, rows rounded up to whole tiles; zeros where nothing is."""
    labels = weight.shape[0]
    panels, rows = -(-labels // PANEL), -(-labels // 4) * 4
    buffer = np.zeros(panels * rows * PANEL + 64 // weight.itemsize, weight.dtype)
    first = -buffer.ctypes.data % 64 // weight.itemsize
    out = buffer[first : first + panels * rows * PANEL].reshape(panels, rows, PANEL)
    for panel in range(panels):
        part = weight[:, panel * PANEL : (panel + 1) * PANEL]
        out[panel, :labels, : part.shape[1]] = part
    return out


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _tile(left, right, out, at, r, o):
    """out (4, 32) += left (4, 4) right (4, 32): flat arrays from these offsets, rows of all 32 apart."""
    at, r, o = _INDEX(at), _INDEX(r), _INDEX(o)
    a0, a1, a2, a3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    b0, b1, b2, b3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    c0, c1, c2, c3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    d0, d1, d2, d3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    for j in range(_32):
        r0, r1, r2, r3 = right[r + j], right[r + _32 + j], right[r + _64 + j], right[r + _96 + j]
        out[o + j] += a0 * r0 + a1 * r1 + a2 * r2 + a3 * r3
        out[o + _32 + j] += b0 * r0 + b1 * r1 + b2 * r2 + b3 * r3
        out[o + _64 + j] += c0 * r0 + c1 * r1 + c2 * r2 + c3 * r3
        out[o + _96 + j] += d0 * r0 + d1 * r1 + d2 * r2 + d3 * r3


@njit(cache=True, nogil=True, error_model="numpy")
def _product(left, right, out, rows):
    """out = left right, in panels of 32 columns: left, out (panels, ROWS, 32) and right (panels, terms, 32)."""
    terms, from_left, from_right, to = right.shape[1], left.reshape(-1), right.reshape(-1), out.reshape(-1)
    to[:] = 0
    for panel in range(out.shape[0]):
        for term in range(0, terms, 4):
            there = term // PANEL * ROWS * PANEL + term % PANEL
            for row in range(0, rows, 4):
                to_row = (panel * ROWS + row) * PANEL
                _tile(from_left, from_right, to, there + row * PANEL, (panel * terms + term) * PANEL, to_row)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
def _largest(x):
    """The largest of x, or -inf; what NaN gives is not said, for sums tell."""
    largest = x[0]
    for j in range(x.shape[0]):
        largest = x[j] if x[j] > largest else largest
    return largest


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _sum(x):
    total = x[0] - x[0]
    for j in range(x.shape[0]):
        total += x[j]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _weigh(x, top, out, row):
    """x <- exp(x - top) s, s the row of ``out``."""
    for panel in range(out.shape[0]):
        part, source = x[panel], out[panel, row]
        for lane in range(PANEL):
            part[lane] = exp_of(part[lane] - top) * source[lane]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _scale(x, factor, left, row):
    """x <- factor x, and the row of ``left`` too."""
    for panel in range(left.shape[0]):
        part, to = x[panel], left[panel, row]
        for lane in range(PANEL):
            part[lane] *= factor
            to[lane] = part[lane]


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(out, row, kept):
    """The row of ``out`` into ``kept`` (K,)."""
    for panel in range(out.shape[0]):
        part = kept[panel * PANEL : (panel + 1) * PANEL]
        part[:] = out[panel, row, : part.shape[0]]


@njit(cache=True, nogil=True, error_model="numpy")
def _smallest(x, below):
    """The smallest number of x above ``below``, or inf."""
    smallest = np.inf
    for j in range(x.shape[0]):
        if x[j] > below and x[j] < smallest:
            smallest = np.float64(x[j])
    return smallest


@njit(cache=True, nogil=True, error_model="numpy")
def _load(node, start, end, t, last, x):
    """x <- the weights of position t of one chain, its ends added; returns the largest."""
    labels = node.shape[1]
    x[:labels], x[labels:] = node[t], -np.inf
    if t == 0:
        x[:labels] += start
    if t == last:
        x[:labels] += end
    return _largest(x)


@njit(cache=True, nogil=True, error_model="numpy")
def _sure(floor, spread, lowest, small, least):
    """Whether no product of a step can be lost: logs of the smallest a, of the range of E, and of the smallest w."""
    return floor - spread >= least and lowest >= small and floor - spread + lowest >= small


@njit(cache=True, nogil=True, error_model="numpy")
def _forward_group(node, start, end, right, limits, lengths, chains, alpha, sums, log_z, lost):
    top, spread, strict, small, least = limits
    rows, labels, panels = chains.shape[0], node.shape[2], right.shape[0]
    left, out = np.zeros((panels, ROWS, PANEL), node.dtype), np.ones((panels, ROWS, PANEL), node.dtype)
    x = np.empty((panels, PANEL), node.dtype)
    flat = x.reshape(-1)
    log_scale, mass, floor = np.zeros(rows), np.ones(rows), np.zeros(rows)
    for t in range(lengths[chains].max()):
        if t > 0:
            _product(left, right, out, rows)
        for row in range(rows):
            chain = chains[row]
            if t >= lengths[chain] or lost[chain]:
                continue
            high = _load(node[chain], start, end, t, lengths[chain] - 1, flat)
            if strict:
                lowest = _smallest(flat[:labels], -np.inf) - high
                lost[chain] = not _sure(floor[row], spread if t > 0 else 0.0, lowest, small, least)
            _weigh(x, high, out, row)
            peak = _largest(flat)
            if lost[chain] or not (peak > _FEWEST and high > -np.inf):
                lost[chain] = True
                continue
            factor = x.dtype.type(_PEAK / peak)
            _scale(x, factor, left, row)
            alpha[chain, t] = flat[:labels]
            _copy(out, row, sums[chain, t])
            if strict:
                floor[row] = math.log(_smallest(flat, 0.0))
            mass[row] /= np.float64(factor)
            if mass[row] < 1e-100 or mass[row] > 1e100:
                log_scale[row] += math.log(mass[row])
                mass[row] = 1.0
            log_scale[row] += high + (top if t > 0 else 0.0)
            if t == lengths[chain] - 1:
                log_z[chain] = log_scale[row] + math.log(mass[row]) + math.log(_sum(flat))
                lost[chain] = not np.isfinite(log_z[chain])


@njit(cache=True, nogil=True, error_model="numpy")
def forward(node, start, end, right, limits, lengths, order, alpha, sums, log_z, lost):
    """log Z of every chain, and a and s of every position for `backward`.

    Args: node (B, T, K), start, end (K,), right `Table.forward`; limits (top, spread, strict, small, least) of the table;
    lengths (B,) int64; order int64, the chains as groups are made of them, none of length 0; alpha, sums (B, T, K) zeros,
    log_z (B,) float64 and lost (B,) bool are filled.
    """
    for first in range(0, order.shape[0], ROWS):
        chains = order[first : first + ROWS]
        _forward_group(node, start, end, right, limits, lengths, chains, alpha, sums, log_z, lost)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _times(x, out, row):
    """x <- x * the row of ``out``."""
    for panel in range(out.shape[0]):
        part, source = x[panel], out[panel, row]
        for lane in range(PANEL):
            part[lane] *= source[lane]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _divide(p, sums, weight, gain):
    """p <- p / s, 0 where nothing leads, and ``gain`` <- weight p / s."""
    for j in range(gain.shape[0]):
        value = p[j] / (sums[j] if p[j] > 0 else 1)
        p[j] = value
        gain[j] = weight * value


@njit(cache=True, nogil=True, error_model="numpy")
def _backward_group(right, lengths, chains, alpha, sums, weight, lost, marginal, gain):
    rows, labels, panels = chains.shape[0], alpha.shape[2], right.shape[0]
    left, out = np.zeros((panels, ROWS, PANEL), alpha.dtype), np.empty((panels, ROWS, PANEL), alpha.dtype)
    x = np.zeros((panels, PANEL), alpha.dtype)
    flat = x.reshape(-1)
    for t in range(lengths[chains].max() - 1, -1, -1):
        for row in range(rows):
            chain = chains[row]
            if t >= lengths[chain] or lost[chain]:
                continue
            flat[:labels] = alpha[chain, t]
            if t < lengths[chain] - 1:
                _times(x, out, row)
            flat *= x.dtype.type(1) / _sum(flat)
            marginal[chain, t] = weight[chain] * flat[:labels]
            if t > 0:
                _divide(flat, sums[chain, t], weight[chain], gain[chain, t])
                _scale(x, x.dtype.type(1), left, row)
        if t > 0:
            _product(left, right, out, rows)


@njit(cache=True, nogil=True, error_model="numpy")
def backward(right, lengths, order, alpha, sums, weight, lost, marginal, gain):
    """P(y_t) times weight, and G times weight, of every chain that is not lost: what the gradient is made of.

    Expected counts of edges, weighed: ``E_ij sum_(chain, t) a_(t-1)(i) gain_t(j)``.

    Args: right `Table.backward`; weight (B,), the slope of each log Z; lengths, order, alpha, sums, lost as `forward` took
    and left them; marginal, gain (B, T, K) zeros, filled.
    """
    for first in range(0, order.shape[0], ROWS):
        chains = order[first : first + ROWS]
        _backward_group(right, lengths, chains, alpha, sums, weight, lost, marginal, gain)
