"""Bit-packed Gibbs for at most 32 chains a row: a 64-bit word holds two sites, so that no half of it is idle.

The law, the counting and the draw are those of `packed`; only what a word means differs. Lane l of a chunk is the pair of
sites l and l + 16 of a chunk of 32: the first in the low half of the word, the second in the high half.
"""

import numpy as np
from numba import njit

from gibbsite._fast.packed import _ROW, _U64, _ZERO, CHUNK, DEGREES, _bernoulli, _select
from gibbsite._fast.random import seed_lanes64, substream

PAIR = 2 * CHUNK
_HALF = np.uint64(32)


def split(words):
    """(words, sites) uint64 of `packed.pack` as (2 words, sites) uint32: chains 32 w + b are bit b of row w."""
    low, high = words.astype(np.uint32), (words >> _HALF).astype(np.uint32)
    return np.ascontiguousarray(np.stack((low, high), 1).reshape(-1, words.shape[1]))


def join(rows):
    """The inverse of `split`; an odd last row gets a high half of 0."""
    rows = np.pad(rows, ((0, len(rows) % 2), (0, 0))).astype(np.uint64)
    return np.ascontiguousarray(rows[0::2] | (rows[1::2] << _HALF))


@njit(cache=True, nogil=True, error_model="numpy")
def _count_pairs(row, table, degree, planes):
    """As `packed._count`, the neighbours' bits of the two sites of a lane put into one word."""
    for index in range(4 * CHUNK):
        planes[index] = _ZERO
    for slot in range(degree):
        for lane in range(CHUNK):
            carry = _U64(row[_ROW(table[slot, lane])]) | (_U64(row[_ROW(table[slot, CHUNK + lane])]) << _HALF)
            one, two, four = planes[lane], planes[CHUNK + lane], planes[2 * CHUNK + lane]
            planes[lane] = one ^ carry
            carry &= one
            planes[CHUNK + lane] = two ^ carry
            carry &= two
            planes[2 * CHUNK + lane] = four ^ carry
            planes[3 * CHUNK + lane] |= four & carry


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep_row(row, table, sites, sizes, degrees, levels, seed, sweeps):
    planes, work = np.empty(4 * CHUNK, np.uint64), np.empty(3 * CHUNK, np.uint64)
    masks = np.empty((DEGREES + 1) * CHUNK, np.uint64)
    state = np.empty(4 * CHUNK, np.uint64)
    seed_lanes64(seed, state)
    for _ in range(sweeps):
        for chunk in range(sizes.shape[0]):
            degree, size = degrees[chunk], sizes[chunk]
            _count_pairs(row, table[chunk], degree, planes)
            _select(planes, degree, masks)
            _bernoulli(masks, degree, levels[degree], state, work)
            for lane in range(min(CHUNK, size)):
                row[sites[chunk, lane]] = np.uint32(work[lane] & _U64(0xFFFFFFFF))
            for lane in range(size - CHUNK):
                row[sites[chunk, CHUNK + lane]] = np.uint32(work[lane] >> _HALF)


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(rows, table, sites, sizes, degrees, levels, seed, sweeps):
    """As `packed.sweep` for ``rows`` (rows, sites) uint32 of `split`, with a plan in chunks of `PAIR` sites."""
    for number in range(rows.shape[0]):
        _sweep_row(rows[number], table, sites, sizes, degrees, levels, substream(seed, number), sweeps)
