"""Sums over all paths of weighted automata, in logarithms, forward and backward: any graph, one utterance a time.

``alpha_t(s) = log sum over arcs a into s of exp(alpha_(t-1)(source) + weight(a) + emission_t(label))``, beta from the end;
the posterior of an arc at t is ``exp(alpha_(t-1)(source) + weight + emission_t(label) + beta_t(target) - log Z)``.
"""

import numpy as np
from numba import njit

_NONE = -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(into, emission, given, low, size, found, scores):
    """found(s) = log sum over the arcs into s of exp(given(source) + weight + emission(label))."""
    first, other, label, weight, _ = into
    for s in range(size):
        begin, end = first[low + s], first[low + s + 1]
        most = _NONE
        for a in range(begin, end):
            score = given[other[a] - low] + weight[a] + np.float64(emission[label[a]])
            scores[a - begin] = score
            most = max(most, score)
        if most == _NONE:
            found[s] = _NONE
            continue
        total = 0.0
        for n in range(end - begin):
            total += np.exp(scores[n] - most)
        found[s] = most + np.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _back(out, emission, alpha, beta, low, size, log_z, labels, arcs, found, scores):
    """`_gather` from the end, which also adds the posteriors of a frame to their labels and, if they have a size, arcs."""
    first, other, label, weight, number = out
    for s in range(size):
        begin, end = first[low + s], first[low + s + 1]
        most = _NONE
        for a in range(begin, end):
            score = beta[other[a] - low] + weight[a] + np.float64(emission[label[a]])
            scores[a - begin] = score
            most = max(most, score)
        if most == _NONE:
            found[s] = _NONE
            continue
        scale, total = np.exp(alpha[s] + most - log_z), 0.0
        for a in range(begin, end):
            part = np.exp(scores[a - begin] - most)
            total += part
            labels[label[a]] += scale * part
            if arcs.size:
                arcs[number[a]] += scale * part
        found[s] = most + np.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_sum(x, y):
    most = _NONE
    for n in range(len(x)):
        most = max(most, x[n] + y[n])
    if most == _NONE:
        return _NONE
    total = 0.0
    for n in range(len(x)):
        total += np.exp(x[n] + y[n] - most)
    return most + np.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def utterance(into, out, emissions, length, low, high, start, end, labels, arcs, starts, ends):
    """log Z of one utterance, whose states are low to high; its expected counts are added if `starts` has a size.

    Args: into: arcs by target (first, source, label, weight, number); out: arcs by source likewise, with targets;
    emissions (frames, labels); labels as emissions; arcs (arcs,), or of no size: not wanted; starts, ends (states,).
    """
    size, wanted = high - low, starts.size > 0
    rows = length + 1 if wanted else 2
    most = 0
    for s in range(low, high):
        most = max(most, into[0][s + 1] - into[0][s], out[0][s + 1] - out[0][s])
    scores, alpha = np.empty(most), np.empty((rows, size))
    alpha[0] = start[low:high]
    for t in range(length):
        _gather(into, emissions[t], alpha[t % rows], low, size, alpha[(t + 1) % rows], scores)
    log_z = _log_sum(alpha[length % rows], end[low:high])
    if not wanted or log_z == _NONE:
        return log_z
    beta, before = end[low:high].copy(), np.empty(size)
    for t in range(length - 1, -1, -1):
        _back(out, emissions[t], alpha[t], beta, low, size, log_z, labels[t], arcs, before, scores)
        beta, before = before, beta
    for s in range(size):
        starts[low + s] += np.exp(alpha[0, s] + beta[s] - log_z)
        ends[low + s] += np.exp(alpha[length, s] + end[low + s] - log_z)
    return log_z
