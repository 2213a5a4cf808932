"""Features of words as 64-bit hashes: what a word looks like, and templates that combine it with its neighbours.

A word has `len(LOOKS)` looks, each one hash. A template is one or more pairs (look, distance), and its feature at word t
the hash of those looks of the words t + distance; beyond either end of the sentence stands a mark of how far beyond. Two
features share a hash with probability about n^2 / 2^65 for n distinct ones.

References: Weinberger et al. (2009), Feature hashing for large scale multitask learning; Steele et al. (2014), Fast
    splittable pseudorandom number generators (the mixing function).
"""

import numpy as np
from numba import njit

LOOKS = (
    "word", "lower", "shape", "pattern",
    "prefix1", "prefix2", "prefix3", "prefix4", "suffix1", "suffix2", "suffix3", "suffix4",
)  # fmt: skip
_AFFIX, _PREFIX, _SUFFIX = 4, 4, 8  # the longest affix; where the looks of affixes start
_U64 = np.uint64
_GOLDEN, _FIRST, _SECOND = _U64(0x9E3779B97F4A7C15), _U64(0xBF58476D1CE4E5B9), _U64(0x94D049BB133111EB)
_30, _27, _31, _32 = _U64(30), _U64(27), _U64(31), _U64(32)
_BEYOND = _U64(1 << 40)  # no code point comes near


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _mixed(state, value):
    """The hash of a sequence, one value longer."""
    z = (state ^ value) + _GOLDEN
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@njit(cache=True, nogil=True, error_model="numpy")
def looks(codes, lower, kinds, ends):
    """(words, looks) hashes of words whose characters lie one after the other; word i ends before ends[i].

    codes, lower: code points as written and in lower case; kinds: a letter that stands for the character in shapes.
    """
    out = np.empty((ends.size, 12), np.uint64)
    start = 0
    for word in range(ends.size):
        end = ends[word]
        size = end - start
        whole, small, shape, pattern = _U64(1), _U64(2), _U64(3), _U64(4)
        last = -1
        for place in range(start, end):
            whole = _mixed(whole, _U64(codes[place]))
            small = _mixed(small, _U64(lower[place]))
            pattern = _mixed(pattern, _U64(kinds[place]))
            if kinds[place] != last:
                shape = _mixed(shape, _U64(kinds[place]))
                last = kinds[place]
        out[word, 0], out[word, 1], out[word, 2], out[word, 3] = whole, small, shape, pattern
        prefix, suffix = _U64(5), _U64(6)
        for length in range(_AFFIX):
            inside = length < size  # a shorter word has a mark in place of the affix
            prefix = _mixed(prefix, _U64(lower[start + length]) if inside else _BEYOND)
            suffix = _mixed(suffix, _U64(lower[end - 1 - length]) if inside else _BEYOND)
            out[word, _PREFIX + length] = prefix
            out[word, _SUFFIX + length] = suffix
        start = end
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def features(table, sentence_ends, template_ends, look, distance):
    """(words, templates) hashes; template f has the parts template_ends[f - 1], ..., template_ends[f] - 1."""
    words, templates = table.shape[0], template_ends.size
    out = np.empty((words, templates), np.uint64)
    start = 0
    for sentence in range(sentence_ends.size):
        end = sentence_ends[sentence]
        for word in range(start, end):
            part = 0
            for template in range(templates):
                state = _U64(template + 1) << _32
                while part < template_ends[template]:
                    place = word + distance[part]
                    if place < start:
                        value = _BEYOND + _U64(start - place)
                    elif place >= end:
                        value = _BEYOND << _U64(1) | _U64(place - end)
                    else:
                        value = table[place, look[part]]
                    state = _mixed(state, value)
                    part += 1
                out[word, template] = state
        start = end
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def index(keys):
    """An open-addressed table of distinct hashes: slots (2^m,) with the row of a key, or -1."""
    size = 16
    while size < 2 * keys.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    mask = _U64(size - 1)
    for row in range(keys.size):
        slot = keys[row] & mask
        while slots[slot] >= 0:
            slot = (slot + _U64(1)) & mask
        slots[slot] = row
    return slots


@njit(cache=True, nogil=True, error_model="numpy")
def rows(hashes, keys, slots):
    """The row of each hash among the keys, or -1: (words, templates) int32."""
    out = np.empty(hashes.shape, np.int32)
    mask = _U64(slots.size - 1)
    for word in range(hashes.shape[0]):
        for template in range(hashes.shape[1]):
            key = hashes[word, template]
            slot = key & mask
            row = slots[slot]
            while row >= 0 and keys[row] != key:
                slot = (slot + _U64(1)) & mask
                row = slots[slot]
            out[word, template] = row
    return out
