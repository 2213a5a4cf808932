"""Gibbs-With-Gradients, one site a step, on the marginal of a binary RBM.

``U(x) = b.x + sum_j softplus(a_j)``, a = W x + c, W (hidden, visible). The first-order change of U when site i flips is
``d_i = (1 - 2 x_i) (b_i + sum_j W_ji sigmoid(a_j))``; ``q(i | x) = exp(d_i / T) / Z(x)``, T = 2 locally balanced; accepted
with ``min(1, exp(U(x') - U(x)) q(i | x') / q(i | x))``, the reverse probability being computed at x'.

One step is one product sigmoid(a') W for all chains: the gradient of the state that stays is reused.
Hidden inputs are float64 and move by one row of W^T a flip; sums over sites and units are float64.

References:
    W. Grathwohl et al., "Oops I took a gradient: scalable sampling for discrete distributions" (2021).
"""

import math

import numpy as np
from numba import njit

from gibbsite._fast.product import multiply
from gibbsite._fast.random import exp32, exp_negative, log1p_unit, next64, seed_lanes64, substream, uniform53

_TINY = 2.0**-54  # half a step of a 53-bit uniform, so that its log is finite
_ONE = np.float32(1.0)
_TWO = np.float32(2.0)
_LOW = np.float32(-3.0e38)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _units(inputs, active):
    """active[j] = sigmoid(a_j) (float32); returns sum_j softplus(a_j) (float64)."""
    total = 0.0
    for unit in range(inputs.shape[0]):
        value = np.float32(inputs[unit])
        decay = exp_negative(-abs(value))
        inverse = _ONE / (_ONE + decay)
        active[unit] = inverse if value > 0 else decay * inverse
        total += max(inputs[unit], 0.0) + np.float64(log1p_unit(decay))
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _masses(row, gradient, bias, free, inverse, logits, masses):
    """masses = exp(d / T - max) where free, else 0; returns (max, sum)."""
    top = _LOW
    for site in range(row.shape[0]):
        sign = _ONE - _TWO * np.float32(row[site])
        value = sign * (bias[site] + gradient[site]) * inverse
        value = value if free[site] != 0 else _LOW
        logits[site] = value
        top = value if value > top else top
    total = 0.0
    for site in range(row.shape[0]):
        value = exp32(logits[site] - top)
        value = value if free[site] != 0 else np.float32(0.0)
        masses[site] = value
        total += np.float64(value)
    return np.float64(top), total


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_index(masses, target):
    """First index whose running sum exceeds ``target``; never an index of weight 0."""
    chosen, size, first = -1, masses.shape[0], 0
    while first < size:
        last, block = min(first + 32, size), 0.0
        for index in range(first, last):
            block += np.float64(masses[index])
        if target < block or last == size:
            for index in range(first, last):
                if masses[index] > 0:
                    chosen = index
                    if target < masses[index]:
                        return chosen
                target -= np.float64(masses[index])
        else:
            target -= block
        first = last
    if chosen < 0:
        for index in range(size):
            chosen = index if masses[index] > 0 else chosen
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(x, bias, hidden_bias, transposed, linear, inputs, active, u):
    """b.x, hidden inputs (float64), their sigmoids and U of the starting states."""
    for chain in range(x.shape[0]):
        linear[chain] = 0.0
        for unit in range(hidden_bias.shape[0]):
            inputs[chain, unit] = hidden_bias[unit]
        for site in range(x.shape[1]):
            if x[chain, site] != 0:
                linear[chain] += np.float64(bias[site])
                for unit in range(hidden_bias.shape[0]):
                    inputs[chain, unit] += np.float64(transposed[site, unit])
        u[chain] = linear[chain] + _units(inputs[chain], active[chain])


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh(x, bias, gradient, free, inverse, masses, totals):
    """masses (chains, sites) and totals (chains, 2) = (max, sum) of the proposal at x."""
    logits = np.empty(x.shape[1], np.float32)
    for chain in range(x.shape[0]):
        totals[chain, 0], totals[chain, 1] = _masses(x[chain], gradient[chain], bias, free, inverse, logits, masses[chain])


@njit(cache=True, nogil=True, error_model="numpy")
def _propose(x, bias, transposed, states, masses, totals, linear, inputs, moved, active, sites, fresh):
    """Draw a site a chain, flip it, and write the new hidden inputs, their sigmoids and U."""
    for chain in range(x.shape[0]):
        site = _draw_index(masses[chain], uniform53(next64(states[chain], 1, 0)) * totals[chain, 1])
        sites[chain] = site
        if site >= 0:
            sign = 1.0 if x[chain, site] == 0 else -1.0
            x[chain, site] ^= 1
            for unit in range(inputs.shape[1]):
                moved[chain, unit] = inputs[chain, unit] + sign * np.float64(transposed[site, unit])
            fresh[chain] = linear[chain] + sign * np.float64(bias[site]) + _units(moved[chain], active[chain])


@njit(cache=True, nogil=True, error_model="numpy")
def _log_mass(masses, totals, site):
    """log q(site | x)."""
    return math.log(np.float64(masses[site])) - math.log(totals[1])


@njit(cache=True, nogil=True, error_model="numpy")
def _decide(x, u, bias, gradient, free, inverse, states, current, linear, inputs, moved, sites, fresh, accepted):
    """Accept or undo every chain's flip; ``current`` is (masses, totals) of the state that stays."""
    masses, totals = current
    reverse, ends = np.empty((1, x.shape[1]), np.float32), np.empty((1, 2), np.float64)
    for chain in range(x.shape[0]):
        site = sites[chain]
        if site < 0:
            continue
        sign = 1.0 if x[chain, site] != 0 else -1.0
        _weigh(x[chain : chain + 1], bias, gradient[chain : chain + 1], free, inverse, reverse, ends)
        back = -sign * np.float64(np.float32(bias[site]) + gradient[chain, site]) * inverse
        back -= ends[0, 0] + math.log(ends[0, 1])
        log_ratio = fresh[chain] - u[chain] + back - _log_mass(masses[chain], totals[chain], site)
        if math.log(uniform53(next64(states[chain], 1, 0)) + _TINY) < log_ratio:
            accepted[chain] += 1
            u[chain] = fresh[chain]
            linear[chain] += sign * np.float64(bias[site])
            masses[chain], totals[chain], inputs[chain] = reverse[0], ends[0], moved[chain]
        else:
            x[chain, site] ^= 1


@njit(cache=True, nogil=True, error_model="numpy")
def _streams(seed, chains):
    states = np.empty((chains, 4), np.uint64)
    for chain in range(chains):
        seed_lanes64(substream(seed, chain), states[chain])
    return states


def rbm_steps(x, u, weights, visible_bias, hidden_bias, free, temperature, seed, steps):
    """As `rbm_draws`, with the last state kept only."""
    kept, kept_u = np.empty((1, *x.shape), np.uint8), np.empty((1, len(x)))
    return rbm_draws(x, u, weights, visible_bias, hidden_bias, free, temperature, seed, steps, kept, kept_u)


def rbm_draws(x, u, weights, visible_bias, hidden_bias, free, temperature, seed, thin, kept, kept_u):
    """``thin`` Gibbs-With-Gradients transitions a chain before each kept state, on an RBM, in place; how many were accepted.

    ``i ~ q(i | x) = exp(d_i(x) / T) / Z(x)``, accepted with ``min(1, exp(U(x') - U(x)) q(i | x') / q(i | x))``.

    Args: x (chains, visible) uint8; u (chains,) float64, overwritten by U(x); weights (hidden, visible) float32;
    visible_bias (visible,), hidden_bias (hidden,) float32; free (visible,) uint8, 0 where a unit is clamped;
    temperature T float; seed uint64; thin int; kept (draws, chains, visible) uint8 and kept_u (draws, chains) are filled.
    Returns: (chains,) int64.
    """
    chains, visible = x.shape
    hidden = weights.shape[0]
    transposed = np.ascontiguousarray(weights.T)
    inputs, moved = np.empty((chains, hidden)), np.zeros((chains, hidden))
    active, gradient = np.empty((chains, hidden), np.float32), np.empty((chains, visible), np.float32)
    masses, totals = np.empty((chains, visible), np.float32), np.empty((chains, 2))
    linear, fresh = np.empty(chains), np.zeros(chains)
    sites, accepted = np.zeros(chains, np.int64), np.zeros(chains, np.int64)
    inverse = np.float32(1.0 / temperature)
    states = _streams(np.uint64(seed), chains)
    _begin(x, visible_bias, hidden_bias, transposed, linear, inputs, active, u)
    multiply(active, weights, out=gradient)
    _weigh(x, visible_bias, gradient, free, inverse, masses, totals)
    for step in range(1, thin * len(kept) + 1):
        _propose(x, visible_bias, transposed, states, masses, totals, linear, inputs, moved, active, sites, fresh)
        multiply(active, weights, out=gradient)
        _decide(
            x, u, visible_bias, gradient, free, inverse, states, (masses, totals), linear, inputs, moved, sites,
            fresh, accepted,
        )  # fmt: skip
        if step % thin == 0:
            kept[step // thin - 1], kept_u[step // thin - 1] = x, u
    return accepted
