"""Wolff and Swendsen-Wang on a sparse Ising model with a field and clamped sites.

A bond opens between sites whose edge is satisfied, ``J_ij s_i s_j > 0``, with probability ``1 - exp(-2 |J_ij|)`` (for
ferromagnetic couplings: between aligned spins). Flipping a whole cluster then leaves the coupling part of the law
invariant; the field enters through ``S = sum of h_i s_i over the cluster``: Wolff flips its one cluster with
``min(1, exp(-2 S))``, Swendsen-Wang redraws every cluster, flipping with ``1 / (1 + exp(2 S))``.
A cluster that holds a clamped site never flips.

References:
    R. Swendsen, J.-S. Wang, "Nonuniversal critical dynamics in Monte Carlo simulations" (1987);
    U. Wolff, "Collective Monte Carlo updating for spin systems" (1989).
"""

import math

import numpy as np
from numba import njit

from gibbsite._fast.random import next64, seed_lanes64, substream, uniform53


@njit(cache=True, nogil=True, error_model="numpy")
def _bonds(weights):
    """Opening probability ``1 - exp(-2 |J|)`` of a satisfied edge, (2 edges,) float64."""
    chances = np.empty(weights.shape[0], np.float64)
    for edge in range(weights.shape[0]):
        chances[edge] = -math.expm1(-2.0 * abs(np.float64(weights[edge])))
    return chances


@njit(cache=True, nogil=True, error_model="numpy")
def _satisfied(weight, left, right):
    """Whether ``J s_i s_j > 0``."""
    return weight > 0 if left == right else weight < 0


@njit(cache=True, nogil=True, error_model="numpy")
def _pull(row, field, site):
    """h_i s_i (float64)."""
    return np.float64(field[site]) if row[site] != 0 else -np.float64(field[site])


@njit(cache=True, nogil=True, error_model="numpy")
def _grow(row, site, graph, chances, clamped, state, marks, stamp, stack):
    """Grow the cluster of ``site`` into ``stack``; returns its size, 0 once it touches a clamped site."""
    offsets, neighbours, weights = graph
    marks[site] = stamp
    stack[0] = site
    size, next_one = 1, 0
    while next_one < size:
        here = stack[next_one]
        next_one += 1
        for edge in range(offsets[here], offsets[here + 1]):
            near = neighbours[edge]
            if marks[near] == stamp or not _satisfied(weights[edge], row[here], row[near]):
                continue
            if uniform53(next64(state, 1, 0)) < chances[edge]:
                if clamped[near] != 0:
                    return 0
                marks[near] = stamp
                stack[size] = near
                size += 1
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _index(state, count):
    """Uniform integer in [0, count) from 53 bits (bias below count 2^-53)."""
    return np.int64(uniform53(next64(state, 1, 0)) * count)


@njit(cache=True, nogil=True, error_model="numpy")
def wolff(x, offsets, neighbours, weights, field, clamped, seed, steps):
    """``steps`` single-cluster moves a chain, in place; returns how many of them were accepted, (chains,) int64.

    The cluster of a uniform free site flips with ``min(1, exp(-2 sum_cluster h_i s_i))``.

    Args: x (chains, sites) uint8; offsets (sites + 1,) int; neighbours, weights (2 edges,) int32, float32;
    field (sites,) float32; clamped (sites,) uint8, 1 where a site stays; seed uint64; steps int.
    """
    chains, sites = x.shape
    chances, graph = _bonds(weights), (offsets, neighbours, weights)
    candidates = np.flatnonzero(clamped == 0)
    marks, stack = np.zeros(sites, np.int64), np.empty(sites, np.int64)
    state, accepted, stamp = np.empty(4, np.uint64), np.zeros(chains, np.int64), 0
    if candidates.shape[0] == 0:
        return accepted
    for chain in range(chains):
        seed_lanes64(substream(seed, chain), state)
        row = x[chain]
        for _ in range(steps):
            stamp += 1
            site = candidates[_index(state, candidates.shape[0])]
            size = _grow(row, site, graph, chances, clamped, state, marks, stamp, stack)
            pull = 0.0
            for number in range(size):
                pull += _pull(row, field, stack[number])
            if pull <= 0.0 or uniform53(next64(state, 1, 0)) < math.exp(-2.0 * pull):
                for number in range(size):
                    row[stack[number]] ^= 1
                accepted[chain] += 1
    return accepted


@njit(cache=True, nogil=True, error_model="numpy")
def _root(parents, site):
    while parents[site] != site:
        parents[site] = parents[parents[site]]
        site = parents[site]
    return site


@njit(cache=True, nogil=True, error_model="numpy")
def _join(row, offsets, neighbours, weights, chances, state, parents):
    """Open the bonds and join their ends; the root of a cluster is its smallest site."""
    for site in range(row.shape[0]):
        parents[site] = site
    for site in range(row.shape[0]):
        for edge in range(offsets[site], offsets[site + 1]):
            near = neighbours[edge]
            if near < site or not _satisfied(weights[edge], row[site], row[near]):
                continue
            if uniform53(next64(state, 1, 0)) < chances[edge]:
                one, other = _root(parents, site), _root(parents, near)
                parents[max(one, other)] = min(one, other)


@njit(cache=True, nogil=True, error_model="numpy")
def _redraw(row, field, clamped, state, parents, pulls, fixed, flips):
    """Flip each free cluster with ``1 / (1 + exp(2 S))``; returns the number of clusters."""
    pulls[:] = 0.0
    fixed[:] = 0
    for site in range(row.shape[0]):
        root = _root(parents, site)
        pulls[root] += _pull(row, field, site)
        fixed[root] |= clamped[site]
    clusters = 0
    for site in range(row.shape[0]):
        root = _root(parents, site)
        if root == site:
            clusters += 1
            chance = 1.0 / (1.0 + math.exp(2.0 * pulls[site]))
            flips[site] = fixed[site] == 0 and uniform53(next64(state, 1, 0)) < chance
        if flips[root]:
            row[site] ^= 1
    return clusters


@njit(cache=True, nogil=True, error_model="numpy")
def swendsen_wang(x, offsets, neighbours, weights, field, clamped, seed, steps):
    """``steps`` all-cluster moves a chain, in place; returns the clusters met in all, (chains,) int64.

    Every cluster without a clamped site is redrawn by heat bath: weight ``exp(sum_cluster h_i s_i)``.

    Args: as in `wolff`.
    """
    chains, sites = x.shape
    chances = _bonds(weights)
    parents, pulls = np.empty(sites, np.int64), np.empty(sites, np.float64)
    fixed, flips = np.empty(sites, np.uint8), np.zeros(sites, np.bool_)
    state, clusters = np.empty(4, np.uint64), np.zeros(chains, np.int64)
    for chain in range(chains):
        seed_lanes64(substream(seed, chain), state)
        for _ in range(steps):
            _join(x[chain], offsets, neighbours, weights, chances, state, parents)
            clusters[chain] += _redraw(x[chain], field, clamped, state, parents, pulls, fixed, flips)
    return clusters
