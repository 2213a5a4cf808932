"""U of an Ising model on a sparse graph, for many states."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def ising(x, offsets, neighbours, weights, field):
    """``U(x) = sum_i s_i (h_i + sum_(j near i) J_ij s_j / 2)``, s = 2x - 1; x (chains, n) uint8; float64 (chains,)."""
    total = np.empty(x.shape[0])
    for chain in range(x.shape[0]):
        row, value = x[chain], 0.0
        for site in range(row.shape[0]):
            pull = 2.0 * field[site]
            for slot in range(offsets[site], offsets[site + 1]):
                pull += weights[slot] * (2.0 * row[neighbours[slot]] - 1.0)
            value += (row[site] - 0.5) * pull
        total[chain] = value
    return total
