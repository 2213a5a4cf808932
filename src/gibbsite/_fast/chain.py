"""Sums over label sequences of linear chains that share one table of edges: scaled forward and backward recursions.

With ``E = exp(edge)``, ``w_t = exp(node_t)`` (start added to the first, end to the last), in numbers that are scaled anew
at every step:

    ``s_t = a_(t-1) E``, ``a_t = w_t s_t``, ``Z = sum_j a_T(j)``;
    ``p_T = a_T / Z``, ``G_t = p_t / s_t``, ``p_(t-1) = a_(t-1) * (E G_t)``,
    ``P(y_(t-1) = i, y_t = j) = a_(t-1)(i) E_ij G_t(j)``.

Chains go through time in groups, so that ``a E`` is a product of small matrices: panels of 32 columns, tiles of 8 x 4.

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
_1, _2, _3 = _INDEX(1), _INDEX(2), _INDEX(3)
_32, _64, _96, _128, _160, _192, _224 = (_INDEX(n) for n in range(32, 256, 32))
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
    """(panels, rows, 32) of a (K, K) matrix, rows rounded up to whole tiles; zeros where nothing is."""
    labels = weight.shape[0]
    out = _aligned((-(-labels // PANEL), -(-labels // 4) * 4, PANEL), weight.dtype)
    out[:] = 0
    for panel in range(len(out)):
        part = weight[:, panel * PANEL : (panel + 1) * PANEL]
        out[panel, :labels, : part.shape[1]] = part
    return out


def kept(node: np.ndarray) -> np.ndarray:
    """Memory (2, B T, W) for what is kept of every position of node (B, T, K): in one piece, which C's heap gives again."""
    return _aligned((2, node.shape[0] * node.shape[1], -(-node.shape[2] // PANEL) * PANEL), node.dtype)


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory that starts on a cache line."""
    size = math.prod(shape)
    buffer = np.empty(size + 64 // dtype.itemsize, dtype)
    first = -buffer.ctypes.data % 64 // dtype.itemsize
    return buffer[first : first + size].reshape(shape)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _tile(left, right, out, at, r, o):
    """out (8, 32) += left (8, 4) right (4, 32): flat arrays from these offsets, rows of all 32 apart."""
    at, r, o = _INDEX(at), _INDEX(r), _INDEX(o)
    a0, a1, a2, a3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    b0, b1, b2, b3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    c0, c1, c2, c3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    d0, d1, d2, d3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    e0, e1, e2, e3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    f0, f1, f2, f3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    g0, g1, g2, g3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    at += _32
    h0, h1, h2, h3 = left[at], left[at + _1], left[at + _2], left[at + _3]
    for j in range(_32):
        r0, r1, r2, r3 = right[r + j], right[r + _32 + j], right[r + _64 + j], right[r + _96 + j]
        out[o + j] += a0 * r0 + a1 * r1 + a2 * r2 + a3 * r3
        out[o + _32 + j] += b0 * r0 + b1 * r1 + b2 * r2 + b3 * r3
        out[o + _64 + j] += c0 * r0 + c1 * r1 + c2 * r2 + c3 * r3
        out[o + _96 + j] += d0 * r0 + d1 * r1 + d2 * r2 + d3 * r3
        out[o + _128 + j] += e0 * r0 + e1 * r1 + e2 * r2 + e3 * r3
        out[o + _160 + j] += f0 * r0 + f1 * r1 + f2 * r2 + f3 * r3
        out[o + _192 + j] += g0 * r0 + g1 * r1 + g2 * r2 + g3 * r3
        out[o + _224 + j] += h0 * r0 + h1 * r1 + h2 * r2 + h3 * r3


@njit(cache=True, nogil=True, error_model="numpy")
def _product(left, right, out, rows, terms):
    """out = left right, in panels of 32 columns: left, out (panels, ROWS, 32) and right (panels, terms, 32)."""
    out[:] = 0
    for panel in range(out.shape[0] // (ROWS * PANEL)):
        for term in range(0, terms, 4):
            at = term // PANEL * ROWS * PANEL + term % PANEL
            for row in range(0, rows, 8):
                _tile(left, right, out, at + row * PANEL, (panel * terms + term) * PANEL, (panel * ROWS + row) * PANEL)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
def _largest(x, at, wide):
    """The largest of a row, or -inf; what NaN gives is not said, for sums tell."""
    at = _INDEX(at)
    largest = x[at]
    for j in range(_INDEX(wide)):
        largest = x[at + j] if x[at + j] > largest else largest
    return largest


@njit(cache=True, nogil=True, error_model="numpy")
def _smallest(x, at, wide, below):
    """The smallest number of a row that is above ``below``, or inf."""
    at, smallest = _INDEX(at), np.inf
    for j in range(_INDEX(wide)):
        if x[at + j] > below and x[at + j] < smallest:
            smallest = np.float64(x[at + j])
    return smallest


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _sum(x, at, wide):
    at = _INDEX(at)
    total = x[at] - x[at]
    for j in range(_INDEX(wide)):
        total += x[at + j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _load(node, at, labels, start, end, first, last, x, row, wide):
    """The row of x <- the weights of one position, its ends added; returns the largest. Beyond the labels x stays -inf."""
    at, labels, to = _INDEX(at), _INDEX(labels), _INDEX(row * wide)
    for j in range(labels):
        x[to + j] = node[at + j]
    if first:
        for j in range(labels):
            x[to + j] += start[j]
    if last:
        for j in range(labels):
            x[to + j] += end[j]
    return _largest(x, row * wide, wide)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _weigh(x, wide, top, out, row, sums, at, alpha, slot):
    """sums, from ``at``, <- s, the row of ``out``, and alpha, from ``slot``, <- exp(x - top) s, x its row."""
    for panel in range(wide // PANEL):
        h, o = _INDEX(row * wide + panel * PANEL), _INDEX((panel * ROWS + row) * PANEL)
        k, a = _INDEX(at + panel * PANEL), _INDEX(slot + panel * PANEL)
        for j in range(_32):
            value = out[o + j]
            sums[k + j] = value
            alpha[a + j] = exp_of(x[h + j] - top) * value


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _scale(alpha, at, wide, factor, left, row):
    """alpha <- factor alpha from ``at``, and the row of ``left`` too."""
    for panel in range(wide // PANEL):
        k, o = _INDEX(at + panel * PANEL), _INDEX((panel * ROWS + row) * PANEL)
        for j in range(_32):
            value = factor * alpha[k + j]
            alpha[k + j] = value
            left[o + j] = value


@njit(cache=True, nogil=True, error_model="numpy")
def _sure(floor, spread, lowest, small, least):
    """Whether no product of a step can be lost: logs of the smallest a, of the range of E, and of the smallest w."""
    return floor - spread >= least and lowest >= small and floor - spread + lowest >= small


@njit(cache=True, nogil=True, error_model="numpy")
def _forward_group(node, shape, start, end, right, limits, lengths, chains, alpha, sums, log_z, lost):
    top, spread, strict, small, least = limits
    (positions, labels, wide), rows, active = shape, chains.shape[0], chains.shape[0]
    left, out = np.zeros(wide * ROWS, node.dtype), np.ones(wide * ROWS, node.dtype)
    x, high = np.full(wide * ROWS, -np.inf, node.dtype), np.zeros(ROWS, node.dtype)
    log_scale, mass, floor = np.zeros(ROWS), np.ones(ROWS), np.zeros(ROWS)
    for t in range(lengths[chains[0]]):
        while lengths[chains[active - 1]] <= t:
            active -= 1
        if t > 0:
            _product(left, right, out, active, right.shape[0] // wide)
        for row in range(active):  # a pass each: rows then do not wait for the end of one another
            at, last = (chains[row] * positions + t) * labels, t == lengths[chains[row]] - 1
            high[row] = _load(node, at, labels, start, end, t == 0, last, x, row, wide)
            if strict:
                lowest = _smallest(x, row * wide, labels, -np.inf) - high[row]
                lost[chains[row]] |= not _sure(floor[row], spread if t > 0 else 0.0, lowest, small, least)
        for row in range(active):
            slot = ((0 if t == lengths[chains[row]] - 1 else t + 1) * rows + row) * wide
            _weigh(x, wide, high[row], out, row, sums, (t * rows + row) * wide, alpha, slot)
        for row in range(active):
            chain, last = chains[row], t == lengths[chains[row]] - 1
            slot = ((0 if last else t + 1) * rows + row) * wide
            peak = _largest(alpha, slot, wide)
            lost[chain] |= not (peak > _FEWEST and high[row] > -np.inf)
            factor = alpha.dtype.type(_PEAK / peak)
            _scale(alpha, slot, wide, factor, left, row)
            mass[row] /= np.float64(factor)
            log_scale[row] += high[row] + (top if t > 0 else 0.0)
            if mass[row] < 1e-100 or mass[row] > 1e100:
                log_scale[row] += math.log(mass[row])
                mass[row] = 1.0
            if strict:
                floor[row] = math.log(_smallest(alpha, slot, wide, 0.0))
            if last:
                log_z[chain] = log_scale[row] + math.log(mass[row]) + math.log(_sum(alpha, slot, wide))
                lost[chain] |= not np.isfinite(log_z[chain])


@njit(cache=True, nogil=True, error_model="numpy")
def _clear(chains, positions, lengths, lost, alpha, sums):
    """Zeros where no label is, and at the first position's sums: what is kept becomes a matrix product."""
    rows = chains.shape[0]
    wide = alpha.shape[0] // (positions * rows)
    for t in range(positions):
        for row in range(rows):
            at = (t * rows + row) * wide
            beyond = t >= lengths[chains[row]] or lost[chains[row]]
            if beyond:
                alpha[at : at + wide] = 0
            if beyond or t == 0:
                sums[at : at + wide] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def forward(node, start, end, right, limits, lengths, order, alpha, sums, log_z, lost):
    """log Z of every chain, and what `backward` reads: s_t and a_(t-1), the last a in the place of the first.

    Args: node (B, T, K), start, end (K,), right `Table.forward`; limits (top, spread, strict, small, least) of the table;
    lengths (B,) int64; order int64, the chains from the longest to the shortest; alpha, sums (B T, W) from `kept`, rows by
    group, position and chain, log_z (B,) float64 and lost (B,) bool are filled.
    """
    positions, wide = node.shape[1], alpha.shape[1]
    shape, flat, panels = (positions, node.shape[2], wide), node.reshape(-1), right.reshape(-1)
    for first in range(0, order.shape[0], ROWS):
        chains = order[first : first + ROWS]
        here = slice(first * positions * wide, (first + chains.shape[0]) * positions * wide)
        a, s = alpha.reshape(-1)[here], sums.reshape(-1)[here]
        _forward_group(flat, shape, start, end, panels, limits, lengths, chains, a, s, log_z, lost)
        _clear(chains, positions, lengths, lost, a, s)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(out, row, wide):
    """The row of ``out`` <- 1."""
    for panel in range(wide // PANEL):
        o = _INDEX((panel * ROWS + row) * PANEL)
        for j in range(_32):
            out[o + j] = 1


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _times(alpha, at, out, row, p, wide):
    """The row of p <- alpha, from ``at``, times the row of ``out``."""
    for panel in range(wide // PANEL):
        h, o = _INDEX(row * wide + panel * PANEL), _INDEX((panel * ROWS + row) * PANEL)
        k = _INDEX(at + panel * PANEL)
        for j in range(_32):
            p[h + j] = alpha[k + j] * out[o + j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _share(p, row, wide, factor, weight, marginal, at, labels):
    """The row of p <- factor p, and marginal, from ``at``, <- weight p."""
    h, at = _INDEX(row * wide), _INDEX(at)
    for j in range(_INDEX(wide)):
        p[h + j] *= factor
    for j in range(_INDEX(labels)):
        marginal[at + j] = weight * p[h + j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _divide(p, wide, sums, at, weight, left, row):
    """The row of ``left`` <- G = p / s, 0 where nothing leads, and sums, from ``at``, <- weight G."""
    for panel in range(wide // PANEL):
        h, o = _INDEX(row * wide + panel * PANEL), _INDEX((panel * ROWS + row) * PANEL)
        k = _INDEX(at + panel * PANEL)
        for j in range(_32):
            value = p[h + j] / (sums[k + j] if p[h + j] > 0 else 1)
            left[o + j] = value
            sums[k + j] = weight * value


@njit(cache=True, nogil=True, error_model="numpy")
def _backward_group(shape, right, lengths, chains, alpha, sums, weight, lost, marginal):
    (positions, labels, wide), rows, active = shape, chains.shape[0], 0
    left, out = np.zeros(wide * ROWS, alpha.dtype), np.empty(wide * ROWS, alpha.dtype)
    p, share = np.empty(wide * ROWS, alpha.dtype), np.empty(ROWS, alpha.dtype)
    for t in range(lengths[chains[0]] - 1, -1, -1):
        while active < rows and lengths[chains[active]] > t:
            active += 1
        for row in range(active):
            last = t == lengths[chains[row]] - 1
            if last:
                _fill(out, row, wide)
            _times(alpha, ((0 if last else t + 1) * rows + row) * wide, out, row, p, wide)
        for row in range(active):
            share[row] = p.dtype.type(1) / _sum(p, row * wide, wide)
        for row in range(active):
            chain = chains[row]
            if not lost[chain]:
                _share(p, row, wide, share[row], weight[chain], marginal, (chain * positions + t) * labels, labels)
                if t > 0:
                    _divide(p, wide, sums, (t * rows + row) * wide, weight[chain], left, row)
        if t > 0:
            _product(left, right, out, active, right.shape[0] // wide)


@njit(cache=True, nogil=True, error_model="numpy")
def backward(right, lengths, order, alpha, sums, weight, lost, marginal):
    """P(y_t) times weight of every chain that is not lost; in place sums <- G times weight.

    Expected counts of edges, weighed: ``E_ij (alpha^T sums)_ij``, one matrix product.

    Args: right `Table.backward`; weight (B,), the slope of each log Z; lengths, order, alpha, sums, lost as `forward` took
    and left them; marginal (B, T, K) zeros, filled.
    """
    positions, wide = marginal.shape[1], alpha.shape[1]
    shape, flat, panels = (positions, marginal.shape[2], wide), marginal.reshape(-1), right.reshape(-1)
    for first in range(0, order.shape[0], ROWS):
        chains = order[first : first + ROWS]
        here = slice(first * positions * wide, (first + chains.shape[0]) * positions * wide)
        a, s = alpha.reshape(-1)[here], sums.reshape(-1)[here]
        _backward_group(shape, panels, lengths, chains, a, s, weight, lost, flat)
