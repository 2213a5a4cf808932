"""U of an Ising model on a sparse graph, for many states."""

import numpy as np
from numba import njit

LANES = 32
_FEW = 8  # chains below which lanes would mostly be empty
_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _one(row, offsets, neighbours, weights, field):
    """U of one state: every edge is met from both its ends."""
    value = 0.0
    for site in range(row.shape[0]):
        pull = 2.0 * field[site]
        for slot in range(offsets[site], offsets[site + 1]):
            pull += weights[slot] * (2.0 * row[neighbours[slot]] - 1.0)
        value += (row[site] - 0.5) * pull
    return value


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _lanes(offsets, neighbours, weights, field, spins, pull, value):
    """value[lane] = U of the state in column ``lane`` of ``spins`` (sites, LANES): every edge from its lower end."""
    for lane in range(LANES):
        value[lane] = 0.0
    for site in range(spins.shape[0]):
        base = np.float64(field[site])
        for lane in range(LANES):
            pull[lane] = base
        for edge in range(offsets[site], offsets[site + 1]):
            if neighbours[edge] > site:
                weight, near = np.float64(weights[edge]), _ROW(neighbours[edge])
                for lane in range(LANES):
                    pull[lane] += weight * spins[near, lane]
        here = _ROW(site)
        for lane in range(LANES):
            value[lane] += spins[here, lane] * pull[lane]


@njit(cache=True, nogil=True, error_model="numpy")
def ising(x, offsets, neighbours, weights, field):
    """``U(x) = sum_i s_i (h_i + sum_(j near i) J_ij s_j / 2)``, s = 2x - 1; x (chains, n) uint8; float64 (chains,)."""
    chains, sites = x.shape
    total, first = np.empty(chains), 0
    spins, pull, value = np.empty((sites, LANES), np.float32), np.empty(LANES), np.empty(LANES)
    while chains - first >= _FEW:
        for lane in range(LANES):
            chain = min(first + lane, chains - 1)
            for site in range(sites):
                spins[site, lane] = np.float32(2.0) * np.float32(x[chain, site]) - np.float32(1.0)
        _lanes(offsets, neighbours, weights, field, spins, pull, value)
        count = min(LANES, chains - first)
        total[first : first + count] = value[:count]
        first += count
    for chain in range(first, chains):
        total[chain] = _one(x[chain], offsets, neighbours, weights, field)
    return total
