"""Sums over all paths of weighted automata in scaled probabilities, one utterance a time, each with a graph of its own.

``alpha'(s) = sum over arcs a into s of w(a) x(label) alpha(source) / c``, ``x = exp(emission - their largest)``, with ``c``
so that they sum to 1; beta alike from the end, over its largest value. What may be lost to underflow has the bound of
`_fast.graph_scaled`; where it exceeds 1e-13 of Z the result is not certain, and logarithms are taken (`_fast.graph`).
"""

import numpy as np
from numba import njit

from gibbsite._fast.graph_scaled import LOG_LOST, TINY

_NONE = -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _slots(label, low, high, labels):
    """The labels that these arcs read, each once, and the place of each arc's label among them."""
    place, used, slot = np.full(labels, -1, np.int64), np.empty(high - low, np.int64), np.empty(high - low, np.int64)
    count = 0
    for a in range(low, high):
        if place[label[a]] < 0:
            place[label[a]], used[count] = count, label[a]
            count += 1
        slot[a - low] = place[label[a]]
    return used[:count], slot


@njit(cache=True, nogil=True, error_model="numpy")
def _likelihoods(emissions, length, used):
    """x (frames, labels used), and the largest emission of each frame among them."""
    x, largest = np.empty((length, len(used))), np.empty(length)
    for t in range(length):
        most = _NONE
        for n in range(len(used)):
            x[t, n] = emissions[t, used[n]]
            most = max(most, x[t, n])
        largest[t] = 0.0 if most == _NONE else most
        for n in range(len(used)):
            x[t, n] = np.exp(x[t, n] - largest[t])
    return x, largest


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _forward(first, source, slot, weight, x, alpha, logs):
    """alpha (frames + 1, states) from its first row; logs[t] = log c of frame t."""
    for t in range(len(x)):
        total = 0.0
        for s in range(alpha.shape[1]):
            value = 0.0
            for a in range(first[s], first[s + 1]):
                value += weight[a] * x[t, slot[a]] * alpha[t, source[a]]
            alpha[t + 1, s] = value
            total += value
        logs[t] = np.log(total)
        scale = 1.0 / total if total > 0 else 0.0
        for s in range(alpha.shape[1]):
            alpha[t + 1, s] *= scale


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _back(first, target, slot, weight, x, alpha, beta, before, loss, scale, counts, arcs):
    """One frame backward into `before`; adds posteriors, times scale, to counts (labels used) and arcs, if they have a size.

    Returns what beta was divided by.
    """
    most = loss
    for s in range(len(before)):
        value, share = 0.0, scale * alpha[s]
        for a in range(first[s], first[s + 1]):
            part = weight[a] * x[slot[a]] * beta[target[a]]
            value += part
            if counts.size:
                counts[slot[a]] += share * part
            if arcs.size:
                arcs[a] += share * part
        before[s] = value
        most = max(most, value)
    for s in range(len(before)):
        before[s] = before[s] / most + loss * (1.0 / most + 1.0)
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(first, target, slot, weight, x, factor, alpha, logs, beta, loss, log_z, counts, arcs):
    """beta before the first frame, the log of its unit, and of the largest unit that alpha and beta had at a frame."""
    before, none, whole, unit, worst = np.empty(len(beta)), np.empty(0), 0.0, 0.0, _NONE
    for t in range(len(x)):
        whole += logs[t] + factor[t]
    for t in range(len(x) - 1, -1, -1):
        whole -= logs[t]
        worst = max(worst, whole + unit)
        scale = np.exp(whole + unit - log_z) if log_z > _NONE else 0.0
        count = counts[t] if counts.size else none
        most = _back(first, target, slot, weight, x[t], alpha[t], beta, before, loss, scale, count, arcs)
        unit += np.log(most) + factor[t]
        whole -= factor[t]
        beta, before = before, beta
    return beta, unit, max(worst, unit)


@njit(cache=True, nogil=True, error_model="numpy")
def utterance(into, out, emissions, length, low, high, start, end, shift, labels, arcs, starts, ends):
    """(log Z, whether it is certain) of one utterance, whose states are low to high; counts are added if starts has a size.

    Args: into: arcs by target (first, source, label, weight, number); out: arcs by source likewise, with targets; weights,
    start and end linear and at most 1, shift what was taken off each log-weight; counts as `_fast.graph.utterance`.
    """
    size, begin, stop = high - low, into[0][low], into[0][high]
    used, slot = _slots(into[2], begin, stop, emissions.shape[1])
    x, largest = _likelihoods(emissions, length, used)
    alpha, logs, factor = np.empty((length + 1, size)), np.empty(length), largest + shift
    alpha[0] = start[low:high]
    _forward(into[0][low : high + 1] - begin, into[1][begin:stop] - low, slot, into[3][begin:stop], x, alpha, logs)
    last = (alpha[length] * end[low:high]).sum()
    log_z = np.log(last) + logs.sum() + factor.sum()
    begin, stop = out[0][low], out[0][high]
    place = np.zeros(emissions.shape[1], np.int64)
    place[used] = np.arange(len(used))
    first, target, weight = out[0][low : high + 1] - begin, out[1][begin:stop] - low, out[3][begin:stop]
    loss, slot = 4 * TINY * (stop - begin + size), place[out[2][begin:stop]]
    counts, shares = np.zeros((length, len(used) if starts.size else 0)), np.zeros(stop - begin if arcs.size else 0)
    beta = end[low:high] + loss
    beta, unit, worst = _backward(first, target, slot, weight, x, factor, alpha, logs, beta, loss, log_z, counts, shares)
    gain = 1.0
    for s in range(size):
        gain = max(gain, weight[first[s] : first[s + 1]].sum())
    if not worst + np.log(4.0 * size * loss * (length + 1) * gain) - log_z <= LOG_LOST:
        return log_z, False
    if starts.size:
        for t in range(length):
            labels[t][used] += counts[t]
        for a in range(len(shares)):
            arcs[out[4][begin + a]] += shares[a]
        starts[low:high] += start[low:high] * beta * np.exp(unit - log_z)
        ends[low:high] += alpha[length] * end[low:high] / last
    return log_z, True
