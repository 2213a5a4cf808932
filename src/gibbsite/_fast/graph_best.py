"""The best paths of weighted automata, with back pointers: at each frame and state the k best ways to come there.

If `distinct`, ways that wrote the same labels are one, the best of them: then the k best of the end are of k different label
sequences, exactly, for whatever follows a state follows all that was written before it. What was written is known by a hash
of 64 bits.
"""

import numpy as np
from numba import njit

_NONE = -np.inf
_START = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


@njit(cache=True, nogil=True)
def _written(text, label):
    """The hash of a text with one label more."""
    mixed = (text ^ np.uint64(label + 1)) * _MIX
    return (mixed ^ (mixed >> _SHIFT)) * _START


@njit(cache=True, nogil=True)
def _insert(values, texts, arcs, ranks, value, text, arc, rank, distinct):
    """Puts one way among the best of a state, in order; of equal ones the first stays first."""
    last = len(values) - 1
    if distinct:
        for n in range(len(values)):
            if values[n] > _NONE and texts[n] == text:
                if values[n] >= value:
                    return
                last = n
                break
    place = last
    while place > 0 and values[place - 1] < value:
        values[place], texts[place] = values[place - 1], texts[place - 1]
        arcs[place], ranks[place] = arcs[place - 1], ranks[place - 1]
        place -= 1
    values[place], texts[place], arcs[place], ranks[place] = value, text, arc, rank


@njit(cache=True, nogil=True, error_model="numpy")
def utterance(into, output, emissions, length, low, high, start, end, distinct, scores, arcs):
    """The len(scores) best paths of one utterance, best first: their scores, and the arcs at each frame, (paths, frames).

    Args: into: arcs by target (first, source, label, weight, number); output (arcs,) in that order; start, end (states,).
    """
    first, source, label, weight, number = into
    size, k = high - low, len(scores)
    values, texts = np.full((2, size, k), _NONE), np.empty((2, size, k), np.uint64)
    arc, rank = np.empty((length, size, k), np.int64), np.empty((length, size, k), np.int32)
    values[0, :, 0], texts[0, :, 0] = start[low:high], _START
    for t in range(length):
        old, new, old_texts, new_texts = values[t % 2], values[(t + 1) % 2], texts[t % 2], texts[(t + 1) % 2]
        new[:] = _NONE
        for s in range(size):
            for a in range(first[low + s], first[low + s + 1]):
                step, place = weight[a] + np.float64(emissions[t, label[a]]), source[a] - low
                for r in range(k):
                    value = old[place, r] + step
                    if not value > new[s, k - 1]:  # the others are no better
                        break
                    text = old_texts[place, r] if output[a] < 0 else _written(old_texts[place, r], output[a])
                    _insert(new[s], new_texts[s], arc[t, s], rank[t, s], value, text, a, r, distinct)
    last, last_texts = values[length % 2], texts[length % 2]
    scores[:] = _NONE
    best, state, place = np.empty(k, np.uint64), np.empty(k, np.int64), np.empty(k, np.int32)
    for s in range(size):
        for r in range(k):
            value = last[s, r] + end[low + s]
            if not value > scores[k - 1]:
                break
            _insert(scores, best, state, place, value, last_texts[s, r], s, r, distinct)
    for n in range(k):
        s, r = state[n], place[n]
        for t in range(length - 1, -1, -1):
            if scores[n] > _NONE:
                a, r = arc[t, s, r], rank[t, s, r]
                arcs[n, t] = number[a]
                s = source[a] - low
