"""Sums over label sequences of one linear chain in logarithms: for weights of any size, and edges that change with t.

    ``a_t(j) = node_t(j) + log sum_i exp(a_(t-1)(i) + edge_t(i, j))``;
    ``P(y_(t-1) = i | y_t = j) = exp(a_(t-1)(i) + edge_t(i, j) - (a_t(j) - node_t(j)))``, which takes P(y_t) to P(y_(t-1)).

Logarithms and sums are float64; exponentials are of differences below 0, in the precision of the weights.

Legend: T positions, K labels.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

from gibbsite._fast.random import exp64, exp_negative

_LOW = -700.0
_LOW_SINGLE = np.float32(-87.33)
_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _exp_double(x):
    """float64 ``exp(x)`` for x <= 700; below -700 it is 0. NaN is kept."""
    value = exp64(x if x > _LOW else _LOW)
    value = 0.0 if x < _LOW else value
    return value if x == x else x


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _exp_single(x):
    """float32 ``exp(x)`` for x <= 0, up to rounding; below -87.3 it is 0. NaN is kept."""
    value = exp_negative(x)
    value = _ZERO if x < _LOW_SINGLE else value
    return value if x == x else x


def exp_of(x):
    """exp(x) for x <= 0, up to rounding, in x's own precision, in compiled code; 0 and NaN are kept."""
    raise NotImplementedError("compiled code only")


@overload(exp_of)
def _exp_of(x):
    return (lambda x: _exp_single(x)) if x == types.float32 else (lambda x: _exp_double(x))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _meet(before, edge, high, total):
    """high <- max_i (before_i + edge_ij), 0 where that is -inf; total <- sum_i exp(before_i + edge_ij - high_j)."""
    high[:], total[:] = -np.inf, 0
    for i in range(edge.shape[0]):
        start = before[i]
        for j in range(edge.shape[1]):
            value = start + edge[i, j]
            high[j] = value if value > high[j] else high[j]
    for j in range(edge.shape[1]):
        high[j] = high[j] if high[j] > -np.inf else 0.0
    for i in range(edge.shape[0]):
        start = before[i]
        for j in range(edge.shape[1]):
            total[j] += exp_of(edge.dtype.type(start + edge[i, j] - high[j]))


@njit(cache=True, nogil=True, error_model="numpy")
def forward(node, edge, start, end, length, alpha):
    """log Z of a chain, in float64, and its logarithms a.

    Args: node (T, K); edge (T - 1, K, K), or (1, K, K) that all positions share; start, end (K,); length int, at least 1;
    alpha (length, K) float64 is filled.
    """
    labels, step = node.shape[1], 0 if edge.shape[0] == 1 else 1
    high, total = np.empty(labels), np.empty(labels, node.dtype)
    for t in range(length):
        if t > 0:
            _meet(alpha[t - 1], edge[step * (t - 1)], high, total)
        for j in range(labels):
            value = np.float64(node[t, j])
            value += (high[j] + math.log(total[j])) if t > 0 else np.float64(start[j])
            alpha[t, j] = value + np.float64(end[j]) if t == length - 1 else value
    peak = alpha[length - 1].max()
    if not np.isfinite(peak):
        return peak
    mass = 0.0
    for j in range(labels):
        mass += math.exp(alpha[length - 1, j] - peak)
    return peak + math.log(mass)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _back(before, edge, sums, p, weight, slope):
    """In place p <- sum_j P(i | j) p_j, P(i | j) = exp(before_i + edge_ij - sums_j); ``slope`` += weight P(i | j) p_j."""
    earlier = np.empty(p.shape[0], p.dtype)
    for i in range(p.shape[0]):
        start, mass = before[i], p.dtype.type(0)
        for j in range(p.shape[0]):
            pair = p[j] * exp_of(edge.dtype.type(start + edge[i, j] - sums[j]))
            mass += pair
            slope[i, j] += weight * pair
        earlier[i] = mass
    p[:] = earlier


@njit(cache=True, nogil=True, error_model="numpy")
def backward(node, edge, end, length, alpha, log_z, weight, marginal, slope):
    """P(y_t) times weight, and the same of pairs, for a chain with a finite log Z.

    Args: as `forward` took and left them; weight float; marginal (T, K) is filled up to ``length``; slope, of the shape of
    edge, is added to.
    """
    labels, step = node.shape[1], 0 if edge.shape[0] == 1 else 1
    p, sums = np.empty(labels, node.dtype), np.empty(labels)
    for j in range(labels):
        p[j] = math.exp(alpha[length - 1, j] - log_z)
    for t in range(length - 1, -1, -1):
        p /= p.sum()
        for j in range(labels):
            marginal[t, j] = weight * p[j]
            own = np.float64(node[t, j]) + (np.float64(end[j]) if t == length - 1 else 0.0)
            sums[j] = alpha[t, j] - own if p[j] > 0 else np.inf  # nothing leads to an impossible label
        if t > 0:
            _back(alpha[t - 1], edge[step * (t - 1)], sums, p, weight, slope[step * (t - 1)])
