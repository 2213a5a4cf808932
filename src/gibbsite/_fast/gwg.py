"""Gibbs-With-Gradients, one site a step, on a sparse Ising model: incremental weights.

Proposal ``q(i | x) = exp(d_i(x) / T) / Z(x)``, ``d_i`` the (first-order) change of U when site i flips, T = 2 locally
balanced; accepted with ``min(1, exp(U(x') - U(x)) q(i | x') / q(i | x))``, the reverse probability being computed at x'.

Ising: d_i = -2 s_i f_i is exact, ``f_i = h_i + sum_j J_ij s_j``, and d_i(x') = -d_i(x), so the log-ratio is
``d_i (1 - 2 / T) + log Z(x) - log Z(x')``. A flip changes f at the site and its neighbours only; the weights are summed
in blocks of sqrt(n) and a touched block is summed again, so the total doesn't drift.

References:
    W. Grathwohl et al., "Oops I took a gradient: scalable sampling for discrete distributions" (2021).
"""

import math

import numpy as np
from numba import njit

from gibbsite._fast.random import exp64, next64, seed_lanes64, substream, uniform53

_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation
_WIDE = 300.0  # |d / T| beyond which exp could leave float64: the log-space path is taken
_TINY = 2.0**-54  # half a step of a 53-bit uniform, so that its log is finite


@njit(cache=True, nogil=True, error_model="numpy")
def _fields(row, offsets, neighbours, weights, field, out):
    """out[i] = h_i + sum_j J_ij s_j (float64); returns the largest |d_i| any state can have."""
    bound = 0.0
    for site in range(row.shape[0]):
        total, size = np.float64(field[site]), abs(np.float64(field[site]))
        for edge in range(offsets[site], offsets[site + 1]):
            weight = np.float64(weights[edge])
            total += weight * (2.0 * np.float64(row[neighbours[edge]]) - 1.0)
            size += abs(weight)
        out[site] = total
        bound = max(bound, 2.0 * size)
    return bound


@njit(cache=True, nogil=True, error_model="numpy")
def _change(row, fields, site):
    """d_i = -2 s_i f_i."""
    return -2.0 * fields[site] if row[site] != 0 else 2.0 * fields[site]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _total(values, first, last):
    total = 0.0
    for index in range(_ROW(first), _ROW(last)):
        total += values[index]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _pick(values, first, last, target):
    """First index whose running sum exceeds ``target``, and the rest of the target; never an index of weight 0."""
    chosen = -1
    for index in range(first, last):
        value = values[index]
        if value > 0.0:
            chosen = index
            if target < value:
                return chosen, target
        target -= value
    return chosen, values[chosen] if chosen >= 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _flip(site, row, offsets, neighbours, weights, fields):
    """Flip a site and move the fields of its neighbours by ``2 J_ij s_i'``."""
    row[site] ^= 1
    sign = 2.0 if row[site] != 0 else -2.0
    for edge in range(offsets[site], offsets[site + 1]):
        fields[neighbours[edge]] += sign * np.float64(weights[edge])


@njit(cache=True, nogil=True, error_model="numpy")
def _near(site, slot, offsets, neighbours):
    """The sites a flip touches, by slot: the neighbours, then the site itself (the last slot)."""
    edge = np.int64(offsets[site]) + slot
    return np.int64(site) if edge == offsets[site + 1] else np.int64(neighbours[edge])


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_block(masses, sums, block, shift):
    first = block << shift
    sums[block] = _total(masses, first, min(first + (1 << shift), masses.shape[0]))


@njit(cache=True, nogil=True, error_model="numpy")
def _reweigh(site, row, offsets, neighbours, free, inverse, fields, masses, sums, marks, saved):
    """Weights and block sums after the flip of ``site``; those before are kept in ``saved`` rows 1 and 2."""
    shift, slots = marks[-1], offsets[site + 1] - offsets[site] + 1
    for slot in range(slots):
        near = _near(site, slot, offsets, neighbours)
        saved[1, slot] = masses[near]
        if free[near] != 0:
            masses[near] = exp64(_change(row, fields, near) * inverse)
        marks[near >> shift] = 0
    for slot in range(slots):
        block = _near(site, slot, offsets, neighbours) >> shift
        if marks[block] == 0:
            saved[2, slot] = sums[block]
            _sum_block(masses, sums, block, shift)
            marks[block] = slot + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _restore(site, row, offsets, neighbours, fields, masses, sums, marks, saved):
    """The state before the flip of ``site``, bit for bit."""
    row[site] ^= 1
    for slot in range(offsets[site + 1] - offsets[site] + 1):
        near = _near(site, slot, offsets, neighbours)
        fields[near], masses[near] = saved[0, slot], saved[1, slot]
        block = near >> marks[-1]
        if marks[block] == slot + 1:
            sums[block] = saved[2, slot]


@njit(cache=True, nogil=True, error_model="numpy")
def _start(row, free, inverse, fields, masses, sums, shift):
    for site in range(row.shape[0]):
        mass = exp64(inverse * (2.0 - 4.0 * np.float64(row[site])) * fields[site])
        masses[site] = mass if free[site] != 0 else 0.0
    for block in range(sums.shape[0]):
        _sum_block(masses, sums, block, shift)


@njit(cache=True, nogil=True, error_model="numpy")
def _chain(row, potential, offsets, neighbours, weights, free, inverse, state, steps, fields, masses, sums, marks, saved):
    """``steps`` proposals of one chain by incremental weights, after `_start`; returns (potential, accepted)."""
    blocks, shift, accepted = sums.shape[0], marks[-1], 0
    before = _total(sums, 0, blocks)
    for _ in range(steps):
        block, rest = _pick(sums, 0, blocks, uniform53(next64(state, 1, 0)) * before)
        if block < 0:
            return potential, accepted
        first = block << shift
        site, _ = _pick(masses, first, min(first + (1 << shift), masses.shape[0]), rest)
        gain = _change(row, fields, site)
        for slot in range(offsets[site + 1] - offsets[site] + 1):
            saved[0, slot] = fields[_near(site, slot, offsets, neighbours)]
        _flip(site, row, offsets, neighbours, weights, fields)
        _reweigh(site, row, offsets, neighbours, free, inverse, fields, masses, sums, marks, saved)
        after = _total(sums, 0, blocks)
        log_ratio = gain * (1.0 - 2.0 * inverse) + math.log(before / after)
        if math.log(uniform53(next64(state, 1, 0)) + _TINY) < log_ratio:
            accepted += 1
            potential += gain
            before = after
        else:
            _restore(site, row, offsets, neighbours, fields, masses, sums, marks, saved)
    return potential, accepted


@njit(cache=True, nogil=True, error_model="numpy")
def _log_masses(row, free, inverse, fields, masses):
    """masses = exp(d / T - max), returns log Z(x) = max + log sum; -inf when nothing may move."""
    top = -np.inf
    for site in range(row.shape[0]):
        if free[site] != 0:
            top = max(top, _change(row, fields, site) * inverse)
    for site in range(row.shape[0]):
        masses[site] = math.exp(_change(row, fields, site) * inverse - top) if free[site] != 0 else 0.0
    total = _total(masses, 0, row.shape[0])
    return top + math.log(total) if total > 0.0 else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _chain_wide(row, potential, offsets, neighbours, weights, free, inverse, state, steps, fields, masses):
    """The same law as `_chain` by a log-space pass over all sites: for couplings so large that exp could overflow."""
    accepted = 0
    before = _log_masses(row, free, inverse, fields, masses)
    for _ in range(steps):
        total = _total(masses, 0, row.shape[0])
        site, _ = _pick(masses, 0, row.shape[0], uniform53(next64(state, 1, 0)) * total)
        if site < 0:
            return potential, accepted
        gain = _change(row, fields, site)
        _flip(site, row, offsets, neighbours, weights, fields)
        after = _log_masses(row, free, inverse, fields, masses)
        log_ratio = gain * (1.0 - 2.0 * inverse) + before - after
        if math.log(uniform53(next64(state, 1, 0)) + _TINY) < log_ratio:
            accepted += 1
            potential += gain
            before = after
        else:
            _flip(site, row, offsets, neighbours, weights, fields)
            _log_masses(row, free, inverse, fields, masses)
    return potential, accepted


@njit(cache=True, nogil=True, error_model="numpy")
def steps(x, u, offsets, neighbours, weights, field, free, temperature, seed, steps):
    """As `draws`, with the last state kept only."""
    kept, kept_u = np.empty((1, *x.shape), np.uint8), np.empty((1, x.shape[0]))
    return draws(x, u, offsets, neighbours, weights, field, free, temperature, seed, steps, kept, kept_u)


@njit(cache=True, nogil=True, error_model="numpy")
def draws(x, u, offsets, neighbours, weights, field, free, temperature, seed, thin, kept, kept_u):
    """``thin`` Gibbs-With-Gradients transitions a chain before each kept state, in place; how many each chain accepted.

    ``i ~ q(i | x) = exp(d_i / T) / Z(x)``, accepted with ``min(1, exp(d_i (1 - 2 / T)) Z(x) / Z(x'))``.

    Args: x (chains, sites) uint8; u (chains,) float64, U(x), moved along; offsets (sites + 1,) int; neighbours,
    weights (2 edges,) int32, float32, at most one edge a pair; field (sites,) float32; free (sites,) uint8, 0 where a
    site is clamped; temperature T float, 2 being locally balanced; seed uint64; thin int; kept (draws, chains, sites)
    uint8 and kept_u (draws, chains) float64 are filled.
    Returns: (chains,) int64.
    """
    sites, shift, degree = x.shape[1], 3, 0
    while (1 << (2 * shift)) < sites:
        shift += 1
    for site in range(sites):
        degree = max(degree, offsets[site + 1] - offsets[site])
    sums = np.zeros((sites + (1 << shift) - 1) >> shift, np.float64)
    marks = np.zeros(sums.shape[0] + 1, np.int64)
    marks[-1] = shift
    fields, masses = np.empty(sites, np.float64), np.empty(sites, np.float64)
    saved = np.empty((3, degree + 1), np.float64)
    state, accepted = np.empty(4, np.uint64), np.zeros(x.shape[0], np.int64)
    inverse = 1.0 / temperature
    for chain in range(x.shape[0]):
        seed_lanes64(substream(seed, chain), state)
        row = x[chain]
        bound = _fields(row, offsets, neighbours, weights, field, fields)
        wide = bound * inverse >= _WIDE
        if not wide:
            _start(row, free, inverse, fields, masses, sums, shift)
        for draw in range(kept.shape[0]):
            if wide:
                u[chain], taken = _chain_wide(
                    row, u[chain], offsets, neighbours, weights, free, inverse, state, thin, fields, masses
                )
            else:
                u[chain], taken = _chain(
                    row, u[chain], offsets, neighbours, weights, free, inverse, state, thin, fields, masses, sums, marks,
                    saved,
                )  # fmt: skip
            accepted[chain] += taken
            kept[draw, chain], kept_u[draw, chain] = row, u[chain]
    return accepted
