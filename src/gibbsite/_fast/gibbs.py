"""Single-site Gibbs on a sparse Ising model, arbitrary couplings, chains innermost.

``U(x) = sum_(i<j) J_ij s_i s_j + sum_i h_i s_i``, s = 2x - 1. With ``f_i = h_i + sum_j J_ij s_j`` a site is redrawn
from ``P(s_i = +1 | rest) = 1 / (1 + exp(-2 f_i))``. Written as: take the sign of f_i, except with probability
``e / (1 + e)``, ``e = exp(-2 |f_i|)``, so that the rare side always has 32 bits of resolution.

Chains are treated in blocks of 32 lanes; a block does all its sweeps while its spins (sites, 32) float32 are in cache.

References:
    S. Geman, D. Geman, "Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images" (1984).
"""

import numpy as np
from numba import njit, prange

from gibbsite._fast.memory import aligned32
from gibbsite._fast.random import below, exp2_negative, next32, seed_lanes32, substream, uniform32

LANES = 32
_AHEAD = 64  # sites whose uniforms are drawn together
_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation
_ONE = np.float32(1.0)
_TWICE_IN_BITS = np.float32(-2 / np.log(2))  # exp(-2 |f|) = 2^(-2 |f| / ln 2)
_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _load(x, block, spins):
    """Spins (sites, LANES) float32 +-1 of one block of chains; missing lanes are +1."""
    chains, sites = x.shape
    for lane in range(LANES):
        chain = block * LANES + lane
        for site in range(sites):
            up = chain >= chains or x[min(chain, chains - 1), site] != 0
            spins[site, lane] = _ONE if up else -_ONE


@njit(cache=True, nogil=True, error_model="numpy")
def _store(x, block, spins):
    chains, sites = x.shape
    for lane in range(min(LANES, chains - block * LANES)):
        chain = block * LANES + lane
        for site in range(sites):
            x[chain, site] = np.uint8(spins[site, lane] > _ZERO)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _sum_field(site, offsets, neighbours, weights, field, spins, total):
    """total[lane] = h_i + sum_j J_ij s_j, four edges a pass (the last pass is padded by zero weights)."""
    edge, end = np.int64(offsets[site]), np.int64(offsets[site + 1])
    base = field[site]
    for lane in range(LANES):
        total[lane] = base
    while edge < end:
        later, third_edge, fourth_edge = min(edge + 1, end - 1), min(edge + 2, end - 1), min(edge + 3, end - 1)
        first, second = _ROW(neighbours[edge]), _ROW(neighbours[later])
        third, fourth = _ROW(neighbours[third_edge]), _ROW(neighbours[fourth_edge])
        a = weights[edge]
        b = weights[later] if edge + 1 < end else _ZERO
        c = weights[third_edge] if edge + 2 < end else _ZERO
        d = weights[fourth_edge] if edge + 3 < end else _ZERO
        for lane in range(LANES):
            left = a * spins[first, lane] + b * spins[second, lane]
            total[lane] += left + (c * spins[third, lane] + d * spins[fourth, lane])
        edge += 4


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def draw_spin(total, uniform):
    """+-1 (float32) with P(+1) = 1 / (1 + exp(-2 total)) from one uniform; a NaN field gives -1."""
    decay = exp2_negative(_TWICE_IN_BITS * abs(total))
    sign = _ONE if total > _ZERO else -_ONE
    return -sign if uniform * (_ONE + decay) < decay else sign


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _draw_near(update, sites, numbers, spins, ahead, noise):
    """A site with at most four neighbours: its field and its draw in one pass, which spares a trip through memory."""
    first, second, third, fourth = sites[update, 0], sites[update, 1], sites[update, 2], sites[update, 3]
    a, b, c, d = numbers[update, 0], numbers[update, 1], numbers[update, 2], numbers[update, 3]
    row, base = sites[update, 4], numbers[update, 4]
    for lane in range(LANES):
        left = base + a * spins[first, lane] + b * spins[second, lane]
        total = left + (c * spins[third, lane] + d * spins[fourth, lane])
        spins[row, lane] = draw_spin(total, noise[ahead, lane])


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(site, total, ahead, noise, spins):
    row = _ROW(site)
    for lane in range(LANES):
        spins[row, lane] = draw_spin(total[lane], noise[ahead, lane])


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_noise(noise, state):
    """Uniforms for a few sites ahead: apart from the draws, both loops keep what they need in registers."""
    for index in range(noise.shape[0]):
        row = _ROW(index)
        for lane in range(LANES):
            noise[row, lane] = uniform32(next32(state, LANES, lane))


@njit(cache=True, nogil=True, error_model="numpy")
def _side_by_side(order, offsets, neighbours):
    """The same updates, with those that don't touch each other next to each other, so that the processor overlaps them.

    Updates of sites that are not coupled commute: whatever keeps the order of the coupled ones is the same kernel. Here by
    level, one above those of the updates before it that it comes after: of the same site, and of its neighbours.
    """
    levels, last = np.empty(order.shape[0], np.int64), np.zeros(offsets.shape[0] - 1, np.int64)
    ends, by_level = np.zeros(order.shape[0] + 2, np.int64), np.empty_like(order)
    for update in range(order.shape[0]):
        site = order[update]
        level = last[site]
        for edge in range(offsets[site], offsets[site + 1]):
            level = max(level, last[neighbours[edge]])
        levels[update], last[site] = level, level + 1
        ends[level + 2] += 1
    for level in range(order.shape[0]):
        ends[level + 2] += ends[level + 1]
    for update in range(order.shape[0]):
        by_level[ends[levels[update] + 1]] = order[update]
        ends[levels[update] + 1] += 1
    return by_level


@njit(cache=True, nogil=True, error_model="numpy")
def _table(order, offsets, neighbours, weights, field):
    """Four neighbours (the next site where there are fewer) and the site; their couplings (then 0) and the field.

    Never the site itself, where there is another: a row that is read and written by one loop would not be vectorised.
    """
    sites, numbers = np.empty((order.shape[0], 5), _ROW), np.zeros((order.shape[0], 5), np.float32)
    for update in range(order.shape[0]):
        site = order[update]
        edge, end = offsets[site], offsets[site + 1]
        for slot in range(4):
            sites[update, slot] = neighbours[edge + slot] if edge + slot < end else (site + 1) % field.shape[0]
            numbers[update, slot] = weights[edge + slot] if edge + slot < end else _ZERO
        sites[update, 4], numbers[update, 4] = site, field[site]
    return sites, numbers


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(spins, graph, order, table, state, noise, total):
    offsets, neighbours, weights, field = graph
    sites, numbers = table
    for first in range(0, order.shape[0], _AHEAD):
        count = min(_AHEAD, order.shape[0] - first)
        _fill_noise(noise[:count], state)
        for ahead in range(count):
            site = np.int64(order[first + ahead])
            if offsets[site + 1] - offsets[site] <= 4:
                _draw_near(_ROW(first + ahead), sites, numbers, spins, _ROW(ahead), noise)
            else:
                _sum_field(site, offsets, neighbours, weights, field, spins, total)
                _draw(site, total, _ROW(ahead), noise, spins)


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep_block(x, block, graph, order, table, seed, thin, kept):
    spins, noise, total = aligned32(x.shape[1], LANES), aligned32(_AHEAD, LANES), np.empty(LANES, np.float32)
    state = aligned32(4, LANES).reshape(4 * LANES).view(np.uint32)
    seed_lanes32(substream(seed, block), state)
    _load(x, block, spins)
    for draw in range(kept.shape[0]):
        for _ in range(thin):
            _sweep(spins, graph, order, table, state, noise, total)
        _store(kept[draw], block, spins)
    _store(x, block, spins)


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(x, offsets, neighbours, weights, field, order, seed, sweeps):
    """As `sweep_draws`, with the last state kept only."""
    sweep_draws(x, offsets, neighbours, weights, field, order, seed, sweeps, np.empty((1, *x.shape), np.uint8))


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_draws(x, offsets, neighbours, weights, field, order, seed, thin, kept):
    """Systematic-scan Gibbs, in place: ``thin`` times before each kept state, redraw the sites of ``order`` one by one.

    ``x_i ~ P(x_i | rest)``, ``P(s_i = +1) = 1 / (1 + exp(-2 (h_i + sum_j J_ij s_j)))``.

    Args: x (chains, sites) uint8; offsets (sites + 1,) int; neighbours, weights (2 edges,) int32, float32;
    field (sites,) float32; order (updates,) int32, the sites to visit; seed uint64; thin int; kept (draws, chains, sites)
    uint8 is filled.
    """
    graph, order = (offsets, neighbours, weights, field), _side_by_side(order, offsets, neighbours)
    table = _table(order, offsets, neighbours, weights, field)
    for block in range((x.shape[0] + LANES - 1) // LANES):
        _sweep_block(x, block, graph, order, table, seed, thin, kept)


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def sweep_parallel(x, offsets, neighbours, weights, field, order, seed, sweeps):
    """The same numbers as `sweep`, bit for bit, with the blocks of 32 chains spread over numba's threads."""
    graph, order = (offsets, neighbours, weights, field), _side_by_side(order, offsets, neighbours)
    table, kept = _table(order, offsets, neighbours, weights, field), np.empty((1, *x.shape), np.uint8)
    for block in prange((x.shape[0] + LANES - 1) // LANES):
        _sweep_block(x, block, graph, order, table, seed, sweeps, kept)


@njit(cache=True, nogil=True, error_model="numpy")
def random_scan(x, offsets, neighbours, weights, field, order, seed, steps):
    """As `random_scan_draws`, with the last state kept only."""
    kept, kept_u = np.empty((1, *x.shape), np.uint8), np.empty((1, x.shape[0]))
    random_scan_draws(x, np.zeros(x.shape[0]), offsets, neighbours, weights, field, order, seed, steps, kept, kept_u)


@njit(cache=True, nogil=True, error_model="numpy")
def random_scan_draws(x, u, offsets, neighbours, weights, field, order, seed, thin, kept, kept_u):
    """Random-scan Gibbs, in place: ``thin`` times before each kept state every chain redraws its own site of ``order``.

    Transition: ``mean over i in order of P(x_i' | rest)``. Arguments as in `sweep`; u (chains,) float64, U(x), is
    moved along; kept (draws, chains, sites) uint8 and kept_u (draws, chains) float64 are filled.
    """
    state = np.empty(4, np.uint32)
    for chain in range(x.shape[0]):
        seed_lanes32(substream(seed, chain), state)
        row = x[chain]
        for draw in range(kept.shape[0]):
            for _ in range(thin):
                site = np.int64(order[below(state, 1, 0, order.shape[0])])
                total = field[site]
                for edge in range(offsets[site], offsets[site + 1]):
                    weight = weights[edge]
                    total += weight if row[neighbours[edge]] != 0 else -weight
                value = np.uint8(draw_spin(total, uniform32(next32(state, 1, 0))) > _ZERO)
                if value != row[site]:
                    u[chain] += 2.0 * np.float64(total) * (1.0 if value != 0 else -1.0)
                    row[site] = value
            kept[draw, chain], kept_u[draw, chain] = row, u[chain]
