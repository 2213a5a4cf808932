"""Annealing a binary RBM: the weight of a step of beta and the draw of the hidden units in one pass, then the visible ones.

On the path ``U(v; beta) = ((1 - beta) a + beta b).v + sum_j log(1 + exp(beta z_j))``, ``z = c + W v``, a step from beta to
beta' adds ``(beta' - beta) (b - a).v + sum_j log(1 + exp(beta' z_j)) - log(1 + exp(beta z_j))`` to a log weight. One product
``W v`` serves the weight and ``h ~ P(h | v; beta')``; softplus differences are products of ratios, one logarithm to 1024.

References:
    R. Salakhutdinov, I. Murray, "On the quantitative analysis of deep belief networks" (2008).
"""

import numpy as np
from numba import njit

from gibbsite._fast.memory import aligned32
from gibbsite._fast.random import exp_negative, next32, seed_lanes32, uniform32
from gibbsite._fast.rbm import LANES, _draw_groups

_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_DEPTH = (
    32  # factors from 1 to 2 multiplied in one lane: at most 2^32, and 2^1024 over the lanes is never reached by a ratio
)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _weigh_groups(groups, low, high, upper, lower, linear, state):
    """In place: every input z becomes a draw with log-odds high z; the lanes gather the factors of its weight."""
    for group in range(groups.shape[0]):
        row = _ROW(group)
        for lane in range(LANES):
            z = groups[row, lane]
            size = abs(z)
            decay = exp_negative(-high * size)
            upper[lane] *= _ONE + decay
            lower[lane] *= _ONE + exp_negative(-low * size)
            linear[lane] += _ZERO if z <= _ZERO else z  # keeps NaN
            likely = _ONE if z > _ZERO else _ZERO
            rare = uniform32(next32(state, LANES, lane)) * (_ONE + decay) < decay
            groups[row, lane] = _ONE - likely if rare else likely


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_and_draw_hidden(inputs, bias, low, high, log_w, seed):
    """Adds to ``log_w[c]`` the hidden units' part of a step from low to high; ``inputs[c]``, W v, becomes h given v at high.

    Args: inputs (chains, hidden) float32; bias (hidden,) float32; low, high float32; log_w (chains,) float64; seed uint64.
    """
    state = np.empty(4 * LANES, np.uint32)
    seed_lanes32(np.uint64(seed), state)
    size = inputs.shape[1]
    groups = aligned32((size + LANES - 1) // LANES, LANES)
    held = groups.reshape(-1)
    lanes = aligned32(3, LANES)
    step = np.float64(high) - np.float64(low)
    for row in range(inputs.shape[0]):
        source = inputs[row]
        held[:] = _ZERO  # a unit of input 0 has the same factor above and below
        for index in range(size):
            held[index] = source[index] + bias[index]
        total, positive = 0.0, 0.0
        for first in range(0, groups.shape[0], _DEPTH):
            lanes[0, :] = _ONE
            lanes[1, :] = _ONE
            lanes[2, :] = _ZERO
            _weigh_groups(groups[first : first + _DEPTH], low, high, lanes[0], lanes[1], lanes[2], state)
            ratio = 1.0
            for lane in range(LANES):
                ratio *= np.float64(lanes[0, lane]) / np.float64(lanes[1, lane])
                positive += np.float64(lanes[2, lane])
            total += np.log(ratio)
        log_w[row] += total + step * positive
        for index in range(size):
            source[index] = held[index]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _dot_groups(groups, slopes, sums):
    for group in range(groups.shape[0]):
        row = _ROW(group)
        for lane in range(LANES):
            sums[lane] += groups[row, lane] * slopes[row, lane]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def draw_visible(logits, scale, bias, slope, dots, seed):
    """In place ``v[c, i] ~ Bernoulli(sigmoid(scale logits[c, i] + bias[i]))``, and ``dots[c] = slope . v[c]``.

    Args: logits (chains, visible) float32; scale float32; bias, slope (visible,) float32; dots (chains,) float64; seed.
    """
    state = np.empty(4 * LANES, np.uint32)
    seed_lanes32(np.uint64(seed), state)
    size = logits.shape[1]
    count = (size + LANES - 1) // LANES
    groups, slopes, sums = aligned32(count, LANES), aligned32(count, LANES), aligned32(1, LANES)
    held, padded = groups.reshape(-1), slopes.reshape(-1)
    held[:] = _ZERO
    padded[:] = _ZERO
    padded[:size] = slope
    for row in range(logits.shape[0]):
        source = logits[row]
        for index in range(size):
            held[index] = scale * source[index] + bias[index]
        _draw_groups(groups, state)
        sums[0, :] = _ZERO
        _dot_groups(groups, slopes, sums[0])
        total = 0.0
        for lane in range(LANES):
            total += np.float64(sums[0, lane])
        dots[row] = total
        for index in range(size):
            source[index] = held[index]
