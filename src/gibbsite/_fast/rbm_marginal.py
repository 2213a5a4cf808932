"""The hidden units of a binary RBM summed out: their part of U and their probabilities in one pass over their inputs.

``sum_j log(1 + exp(z_j))`` and ``sigmoid(z_j)`` share ``exp(-|z_j|)``; a logarithm is taken once for 32 units, of the
product of their factors ``1 + exp(-|z_j|)``.
"""

import numpy as np
from numba import njit

from gibbsite._fast.memory import aligned32
from gibbsite._fast.random import exp_negative
from gibbsite._fast.rbm import LANES

_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_DEPTH = 32  # factors from 1 to 2 multiplied in one lane: at most 2^32


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _marginalise_groups(groups, factors, positive):
    """In place: every input z becomes sigmoid(z); the lanes gather 1 + exp(-|z|) as products and max(z, 0) as sums."""
    for group in range(groups.shape[0]):
        row = _ROW(group)
        for lane in range(LANES):
            z = groups[row, lane]
            decay = exp_negative(-abs(z))
            factors[lane] *= _ONE + decay
            positive[lane] += _ZERO if z <= _ZERO else z  # keeps NaN
            inverse = _ONE / (_ONE + decay)
            groups[row, lane] = decay * inverse if z <= _ZERO else inverse


@njit(cache=True, nogil=True, error_model="numpy")
def marginalise(inputs, bias, u):
    """Adds ``sum_j log(1 + exp(z_j))``, ``z = inputs[c] + bias``, to ``u[c]``; inputs becomes ``sigmoid(z)``.

    Args: inputs (chains, hidden) float32; bias (hidden,) float32; u (chains,) float64.
    """
    size = inputs.shape[1]
    groups = aligned32((size + LANES - 1) // LANES, LANES)
    held = groups.reshape(-1)
    lanes = aligned32(2, LANES)
    padded = held.size - size
    for row in range(inputs.shape[0]):
        source = inputs[row]
        held[size:] = _ZERO  # a unit of input 0 adds log 2, taken off below
        for index in range(size):
            held[index] = source[index] + bias[index]
        total = -padded * np.log(2.0)
        for first in range(0, groups.shape[0], _DEPTH):
            lanes[0, :] = _ONE
            lanes[1, :] = _ZERO
            _marginalise_groups(groups[first : first + _DEPTH], lanes[0], lanes[1])
            for lane in range(LANES):
                total += np.log(np.float64(lanes[0, lane])) + np.float64(lanes[1, lane])
        u[row] += total
        for index in range(size):
            source[index] = held[index]
