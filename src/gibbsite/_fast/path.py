"""The path-auxiliary sampler on a sparse Ising model: a path of informed flips from one table of changes, accepted as one.

The table at x is ``l_i = d_i / T``, ``d_i = -2 s_i f_i`` the change of U when site i flips, T = 2 locally balanced. Along a
path only the rows of the sites it visits change: ``q(i | path so far) = exp(l_i) / Z``, then ``l_i <- -l_i``. The same path
backwards starts from the table at its end x'; accepted with ``min(1, exp(U(x') - U(x)) q(path back) / q(path))``.

A flip costs a sum over sqrt(n) weights (as in `gwg`), an acceptance the rows of the flipped sites' neighbours. Every row is
a function of the state alone, so that a rejected path leaves no trace.

References:
    H. Sun, H. Dai, W. Xia, A. Ramamurthy, "Path auxiliary proposal for MCMC in discrete space" (2022).
"""

import math

import numpy as np
from numba import njit

from gibbsite._fast.gwg import _TINY, _WIDE, _near, _pick, _sum_block, _total
from gibbsite._fast.random import exp64, next64, seed_lanes64, substream, uniform53


@njit(cache=True, nogil=True, error_model="numpy")
def _change(row, offsets, neighbours, weights, field, site):
    """d_i = -2 s_i (h_i + sum_j J_ij s_j), in float64 and always in the same order."""
    total = np.float64(field[site])
    for edge in range(offsets[site], offsets[site + 1]):
        total += np.float64(weights[edge]) * (2.0 * np.float64(row[neighbours[edge]]) - 1.0)
    return -2.0 * total if row[site] != 0 else 2.0 * total


@njit(cache=True, nogil=True, error_model="numpy")
def _largest(offsets, weights, field, inverse):
    """The largest |l_i| that any state can have."""
    bound = 0.0
    for site in range(field.shape[0]):
        size = abs(np.float64(field[site]))
        for edge in range(offsets[site], offsets[site + 1]):
            size += abs(np.float64(weights[edge]))
        bound = max(bound, 2.0 * size * inverse)
    return bound


@njit(cache=True, nogil=True, error_model="numpy")
def _start(row, offsets, neighbours, weights, field, inverse, free, logits, masses, sums, shift):
    for site in range(row.shape[0]):
        logits[site], masses[site] = -np.inf, 0.0
        if free[site] != 0:
            logits[site] = _change(row, offsets, neighbours, weights, field, site) * inverse
            masses[site] = exp64(logits[site])
    for block in range(sums.shape[0]):
        _sum_block(masses, sums, block, shift)


@njit(cache=True, nogil=True, error_model="numpy")
def _refresh(path, row, offsets, neighbours, weights, field, inverse, free, logits, masses, sums, seen):
    """The rows at x of the sites on a path and of their neighbours; ``seen[block]`` is 1 once its sum is made."""
    shift, slots = seen[-1], 0
    for site in path:
        slots += offsets[site + 1] - offsets[site] + 1
    if slots >= row.shape[0]:  # a long path meets nearly every row
        _start(row, offsets, neighbours, weights, field, inverse, free, logits, masses, sums, shift)
        return
    for site in path:
        for slot in range(offsets[site + 1] - offsets[site] + 1):
            near = _near(site, slot, offsets, neighbours)
            if free[near] != 0:  # written out, for a call with that many arrays costs more than the work
                logits[near] = _change(row, offsets, neighbours, weights, field, near) * inverse
                masses[near] = exp64(logits[near])
            seen[near >> shift] = 0
    for site in path:
        for slot in range(offsets[site + 1] - offsets[site] + 1):
            block = _near(site, slot, offsets, neighbours) >> shift
            if seen[block] == 0:
                _sum_block(masses, sums, block, shift)
                seen[block] = 1


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(site, logits, masses, sums, shift):
    """The row of a site after its flip along a path."""
    logits[site] = -logits[site]
    masses[site] = exp64(logits[site])
    _sum_block(masses, sums, site >> shift, shift)


@njit(cache=True, nogil=True, error_model="numpy")
def _level(logits, masses, sums, shift, wide):
    """The logit that masses are relative to: 0, or the largest where exp could overflow; all masses are then made anew."""
    if not wide:
        return 0.0
    top = logits.max()
    for site in range(logits.shape[0]):
        masses[site] = math.exp(logits[site] - top)
    for block in range(sums.shape[0]):
        _sum_block(masses, sums, block, shift)
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(path, logits, masses, sums, shift, wide, state):
    """Draws the path; returns its log probability."""
    log_q = 0.0
    for step in range(path.shape[0]):
        top = _level(logits, masses, sums, shift, wide)
        total = _total(sums, 0, sums.shape[0])
        block, rest = _pick(sums, 0, sums.shape[0], uniform53(next64(state, 1, 0)) * total)
        first = block << shift
        site, _ = _pick(masses, first, min(first + (1 << shift), masses.shape[0]), rest)
        log_q += logits[site] - top - math.log(total)
        path[step] = site
        _turn(site, logits, masses, sums, shift)
    return log_q


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(path, logits, masses, sums, shift, wide):
    """The log probability of the path from its end to its start."""
    log_q = 0.0
    for site in path[::-1]:
        top = _level(logits, masses, sums, shift, wide)
        log_q += logits[site] - top - math.log(_total(sums, 0, sums.shape[0]))
        _turn(site, logits, masses, sums, shift)
    return log_q


@njit(cache=True, nogil=True, error_model="numpy")
def _flip(path, row, offsets, neighbours, weights, field):
    """Flips the sites of a path one after the other; returns the change of U."""
    gain = 0.0
    for site in path:
        gain += _change(row, offsets, neighbours, weights, field, site)
        row[site] ^= 1
    return gain


@njit(cache=True, nogil=True, error_model="numpy")
def _chain(row, offsets, neighbours, weights, field, inverse, free, path, logits, masses, sums, seen, wide, state, steps):
    """``steps`` paths of one chain; returns what U gained, and how many paths were accepted."""
    gained, accepted, shift = 0.0, 0, seen[-1]
    for _ in range(steps):
        log_forward = _forward(path, logits, masses, sums, shift, wide, state)
        gain = _flip(path, row, offsets, neighbours, weights, field)
        _refresh(path, row, offsets, neighbours, weights, field, inverse, free, logits, masses, sums, seen)
        log_ratio = gain + _backward(path, logits, masses, sums, shift, wide) - log_forward
        if math.log(uniform53(next64(state, 1, 0)) + _TINY) < log_ratio:
            accepted += 1
            gained += gain
            for site in path:
                _turn(site, logits, masses, sums, shift)  # back to the table at x'
        else:
            _flip(path, row, offsets, neighbours, weights, field)
            _refresh(path, row, offsets, neighbours, weights, field, inverse, free, logits, masses, sums, seen)
    return gained, accepted


@njit(cache=True, nogil=True, error_model="numpy")
def draws(x, u, offsets, neighbours, weights, field, free, length, temperature, seed, thin, kept, kept_u):
    """``thin`` paths of ``length`` flips a chain before each kept state, in place; how many each chain accepted.

    Args: x (chains, sites) uint8; u (chains,) float64, U(x), moved along; offsets (sites + 1,) int; neighbours,
    weights (2 edges,) int32, float32, at most one edge a pair; field (sites,) float32; free (sites,) uint8, 0 where a
    site is clamped, and not everywhere; length int; temperature T float, 2 being locally balanced; seed uint64; thin int;
    kept (draws, chains, sites) uint8 and kept_u (draws, chains) float64 are filled.
    Returns: (chains,) int64.
    """
    sites, shift, inverse = x.shape[1], 3, 1.0 / temperature
    while (1 << (2 * shift)) < sites:
        shift += 1
    sums = np.zeros((sites + (1 << shift) - 1) >> shift, np.float64)
    logits, masses = np.empty(sites, np.float64), np.empty(sites, np.float64)
    seen = np.zeros(sums.shape[0] + 1, np.int64)
    seen[-1] = shift
    path, wide = np.empty(length, np.int64), _largest(offsets, weights, field, inverse) >= _WIDE
    state, accepted = np.empty(4, np.uint64), np.zeros(x.shape[0], np.int64)
    for chain in range(x.shape[0]):
        seed_lanes64(substream(seed, chain), state)
        row = x[chain]
        _start(row, offsets, neighbours, weights, field, inverse, free, logits, masses, sums, shift)
        for draw in range(kept.shape[0]):
            gained, taken = _chain(
                row, offsets, neighbours, weights, field, inverse, free, path, logits, masses, sums, seen, wide, state, thin
            )
            u[chain] += gained
            accepted[chain] += taken
            kept[draw, chain], kept_u[draw, chain] = row, u[chain]
    return accepted
