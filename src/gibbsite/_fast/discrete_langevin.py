"""Metropolis-adjusted discrete Langevin on a sparse Ising model: all sites move at once, chains innermost.

Every site flips with probability ``sigmoid(l_i)``, ``l_i = d_i / T - c``: ``d_i = -2 s_i f_i`` is the change of U when it
does, ``f_i = h_i + sum_j J_ij s_j``, T = 2 locally balanced, c = 1 / (2 step size). So log q(x' | x) is
``- sum_i log(1 + exp(-|l_i|))`` less ``|l_i|`` of each site that took its less likely value; accepted with
``min(1, exp(U(x') - U(x)) q(x | x') / q(x' | x))``, ``U(x) = sum_i s_i (h_i + f_i) / 2``. The fields of the state that stays
are reused, so that a step sums over edges once.

Lanes are chains, as in `gibbs`; sums over sites are float32 over `_DEPTH` sites at most, then float64.

References:
    R. Zhang, X. Liu, Q. Liu, "A Langevin-like sampler for discrete distributions" (2022).
"""

import math

import numpy as np
from numba import njit

from gibbsite._fast.gibbs import _load, _store, _sum_field
from gibbsite._fast.memory import aligned32
from gibbsite._fast.random import exp_negative, next32, seed_lanes32, substream, uniform32

LANES = 32  # as in `gibbs`, whose helpers are used
_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation
_DEPTH = 96  # factors 1 + exp(-|l|) up to 2 multiplied in float32, which ends at 2^128
_ONE = np.float32(1.0)
_TWO = np.float32(2.0)
_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _propose(site, slope, cost, spins, fields, moved, linear, factors, state):
    """One site of x': its spin, and its terms of -log q(x' | x)."""
    row = _ROW(site)
    for lane in range(LANES):
        spin = spins[row, lane]
        logit = slope * spin * fields[row, lane] - cost
        size = abs(logit)
        decay = exp_negative(-size)
        rare = uniform32(next32(state, LANES, lane)) * (_ONE + decay) < decay
        likely = -spin if logit > _ZERO else spin
        moved[row, lane] = -likely if rare else likely
        linear[lane] += size if rare else _ZERO
        factors[lane] *= _ONE + decay


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _reverse(site, slope, cost, spins, fields, moved, linear, factors):
    """The terms of -log q(x | x') of one site."""
    row = _ROW(site)
    for lane in range(LANES):
        spin = moved[row, lane]
        logit = slope * spin * fields[row, lane] - cost
        size = abs(logit)
        likely = -spin if logit > _ZERO else spin
        linear[lane] += _ZERO if likely == spins[row, lane] else size
        factors[lane] *= _ONE + exp_negative(-size)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_potential(site, base, moved, fields, part):
    row = _ROW(site)
    for lane in range(LANES):
        part[lane] += moved[row, lane] * (base + fields[row, lane])


@njit(cache=True, nogil=True, error_model="numpy")
def _clear(part, linear, factors):
    part[:] = _ZERO
    linear[:] = _ZERO
    factors[:] = _ONE


@njit(cache=True, nogil=True, error_model="numpy")
def _flush(linear, factors, sign, log_ratio):
    """log_ratio += sign (linear + log factors), of the sites since the last flush."""
    for lane in range(LANES):
        log_ratio[lane] += sign * (np.float64(linear[lane]) + math.log(np.float64(factors[lane])))


@njit(cache=True, nogil=True, error_model="numpy")
def _out(slope, cost, free, spins, fields, moved, lanes, log_ratio, state):
    """Draws x' and subtracts log q(x' | x) from ``log_ratio``."""
    part, linear, factors = lanes[0], lanes[1], lanes[2]
    for first in range(0, spins.shape[0], _DEPTH):
        _clear(part, linear, factors)
        for site in range(first, min(first + _DEPTH, spins.shape[0])):
            if free[site] != 0:
                _propose(site, slope, cost, spins, fields, moved, linear, factors, state)
            else:
                moved[site] = spins[site]
        _flush(linear, factors, 1.0, log_ratio)


@njit(cache=True, nogil=True, error_model="numpy")
def _back(graph, slope, cost, free, spins, moved, fields, lanes, potential, log_ratio):
    """The fields at x', U(x'), and log q(x | x') added to ``log_ratio``."""
    offsets, neighbours, weights, field = graph
    part, linear, factors = lanes[0], lanes[1], lanes[2]
    potential[:] = 0.0
    for first in range(0, spins.shape[0], _DEPTH):
        _clear(part, linear, factors)
        for site in range(first, min(first + _DEPTH, spins.shape[0])):
            _sum_field(site, offsets, neighbours, weights, field, moved, fields[site])
            _add_potential(site, field[site], moved, fields, part)
            if free[site] != 0:
                _reverse(site, slope, cost, spins, fields, moved, linear, factors)
        _flush(linear, factors, -1.0, log_ratio)
        for lane in range(LANES):
            potential[lane] += 0.5 * np.float64(part[lane])


@njit(cache=True, nogil=True, error_model="numpy")
def _select(taken, new, old):
    """old <- new in the lanes that are taken."""
    for site in range(old.shape[0]):
        row = _ROW(site)
        for lane in range(LANES):
            old[row, lane] = new[row, lane] if taken[lane] > _ZERO else old[row, lane]


@njit(cache=True, nogil=True, error_model="numpy")
def _block(x, u, block, graph, free, slope, cost, seed, thin, kept, kept_u, accepted):
    """All steps of one block of chains."""
    sites, first = x.shape[1], block * LANES
    count = min(LANES, x.shape[0] - first)
    spins, moved, fields, after = (
        aligned32(sites, LANES),
        aligned32(sites, LANES),
        aligned32(sites, LANES),
        aligned32(sites, LANES),
    )
    lanes, taken = aligned32(3, LANES), aligned32(1, LANES)[0]
    potential, fresh, log_ratio = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    state = aligned32(4, LANES).reshape(4 * LANES).view(np.uint32)
    seed_lanes32(substream(seed, block), state)
    _load(x, block, spins)
    _back(graph, slope, cost, free, spins, spins, fields, lanes, potential, log_ratio)
    rest = u[first : first + count] - potential[:count]  # a constant, which the sum that the model may be in adds
    for draw in range(kept.shape[0]):
        for _ in range(thin):
            log_ratio[:] = 0.0
            _out(slope, cost, free, spins, fields, moved, lanes, log_ratio, state)
            _back(graph, slope, cost, free, spins, moved, after, lanes, fresh, log_ratio)
            for lane in range(LANES):
                chance = math.log(np.float64(uniform32(next32(state, LANES, lane))))
                taken[lane] = _ONE if chance < fresh[lane] - potential[lane] + log_ratio[lane] else _ZERO
                potential[lane] = fresh[lane] if taken[lane] > _ZERO else potential[lane]
            _select(taken, moved, spins)
            _select(taken, after, fields)
            for lane in range(count):
                accepted[first + lane] += np.int64(taken[lane])
        _store(kept[draw], block, spins)
        kept_u[draw, first : first + count] = potential[:count] + rest
    _store(x, block, spins)
    u[first : first + count] = potential[:count] + rest


@njit(cache=True, nogil=True, error_model="numpy")
def draws(x, u, offsets, neighbours, weights, field, free, step_size, temperature, seed, thin, kept, kept_u):
    """``thin`` steps of a chain before each kept state, in place; how many each chain accepted.

    Args: x (chains, sites) uint8; u (chains,) float64, U(x), moved along; offsets (sites + 1,) int; neighbours, weights
    (2 edges,) int32, float32; field (sites,) float32; free (sites,) uint8, 0 where a site is clamped; step_size, temperature
    T float, 2 being locally balanced; seed uint64; thin int; kept (draws, chains, sites) uint8 and kept_u (draws, chains)
    float64 are filled.
    Returns: (chains,) int64.
    """
    accepted = np.zeros(x.shape[0], np.int64)
    graph, slope, cost = (offsets, neighbours, weights, field), np.float32(-2.0 / temperature), np.float32(0.5 / step_size)
    for block in range((x.shape[0] + LANES - 1) // LANES):
        _block(x, u, block, graph, free, slope, cost, seed, thin, kept, kept_u, accepted)
    return accepted
