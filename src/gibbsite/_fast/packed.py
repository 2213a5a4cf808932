"""Bit-packed Gibbs for one coupling K and one field h: 64 chains a word, a colour class at a time.

With m of its d neighbours up, a site has ``f = K (2m - d) + h`` and is redrawn from ``P(x_i = 1) = 1 / (1 + exp(-2f))``.
Neighbours are counted by bit-sliced adders; the Bernoulli draw compares, bit by bit from the top, a random 32-bit
number with the threshold ``round(2^32 P)`` of its count, and stops when every chain of the chunk is decided.

Layout: ``packed`` (words, sites) uint64, chain 64 w + b is bit b of row w. A chunk of 16 sites of equal degree within a
colour class is one vector; sites of a class must not be neighbours (`plan` checks it).

References:
    L. Jacobs, C. Rebbi, "Multi-spin coding" (1981); M. Block, P. Virnau, T. Preis, "Multi-GPU accelerated multi-spin
    Monte Carlo simulations of the 2D Ising model" (2010).
"""

from itertools import pairwise

import numpy as np
from numba import njit, prange

from gibbsite._fast.random import next64, seed_lanes64, substream

CHUNK = 16
DEGREES = 8
_BITS = 32
_UNCHECKED = 9  # rounds before the first test for an early exit: 1024 chains need about 11
_ROW = np.uint32
_U64 = np.uint64
_ZERO = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def thresholds(coupling, field):
    """Table (DEGREES + 1, DEGREES + 1) uint64: ``round(2^32 P(x = 1))`` for degree d and m neighbours up.

    ``P = 1 / (1 + exp(-2 (K (2m - d) + h)))``, clipped to [0, 2^32 - 1].
    """
    degree, count = np.arange(DEGREES + 1)[:, None], np.arange(DEGREES + 1)[None, :]
    total = float(coupling) * (2 * count - degree) + float(field)
    if not np.isfinite(total).all():
        raise ValueError(f"coupling, field: expected finite numbers, got {coupling}, {field}; check the parameters")
    probability = np.exp(-np.logaddexp(0.0, -2.0 * total))
    return np.minimum(np.rint(probability * 2.0**32), 2.0**32 - 1).astype(np.uint64)


def plan(offsets, neighbours, order, class_offsets, width=CHUNK):
    """Chunks of at most ``width`` sites of one colour class and one degree, in the order of the classes.

    Args: offsets (sites + 1,), neighbours (2 edges,); order (updates,) the sites class after class;
    class_offsets (classes + 1,), where each class starts in ``order``.
    Returns: (chunks, DEGREES, width) int32 neighbour table, (chunks, width) int32 sites (short chunks repeat their
    first site), (chunks,) int32 sizes, (chunks,) int32 degrees. Raises ValueError for a class with two neighbours,
    a repeated site, or a degree above 8.
    """
    offsets, order = np.asarray(offsets, np.int64), np.asarray(order, np.int64)
    degrees = np.diff(offsets)
    if order.size and degrees[order].max() > DEGREES:
        raise ValueError(f"degree: expected at most {DEGREES}, got {degrees[order].max()}; use gibbs.sweep instead")
    chunks = []
    for first, last in pairwise(class_offsets):
        members = order[first:last]
        _check_class(offsets, neighbours, members)
        for degree in np.unique(degrees[members]):
            same = members[degrees[members] == degree]
            chunks += [(same[start : start + width], int(degree)) for start in range(0, same.size, width)]
    table = np.zeros((len(chunks), DEGREES, width), np.int32)
    sites = np.zeros((len(chunks), width), np.int32)
    for number, (members, degree) in enumerate(chunks):
        sites[number] = members[0]
        sites[number, : members.size] = members
        for slot in range(degree):
            table[number, slot] = neighbours[offsets[sites[number]] + slot]
    sizes = np.array([members.size for members, _ in chunks], np.int32)
    return table, sites, sizes, np.array([degree for _, degree in chunks], np.int32)


def _check_class(offsets, neighbours, members):
    inside = np.zeros(offsets.size - 1, bool)
    inside[members] = True
    if inside.sum() != members.size:
        raise ValueError("colours: expected each site once in a class, got a repeated site; remove it")
    for site in members:
        adjacent = neighbours[offsets[site] : offsets[site + 1]]
        if inside[adjacent].any():
            raise ValueError(f"colours: site {site} has a neighbour in its own class; colour the graph again")


@njit(cache=True, nogil=True, error_model="numpy")
def pack(x):
    """Bits of ``x`` (chains, sites) uint8 as (ceil(chains / 64), sites) uint64; absent chains are 0."""
    chains, sites = x.shape
    packed = np.zeros(((chains + 63) // 64, sites), np.uint64)
    for chain in range(chains):
        word, bit = chain // 64, _U64(chain % 64)
        for site in range(sites):
            packed[word, site] |= _U64(x[chain, site] != 0) << bit
    return packed


@njit(cache=True, nogil=True, error_model="numpy")
def unpack(packed, x):
    """The inverse of `pack`, written into ``x`` (chains, sites) uint8."""
    chains, sites = x.shape
    for chain in range(chains):
        word, bit = chain // 64, _U64(chain % 64)
        for site in range(sites):
            x[chain, site] = np.uint8((packed[word, site] >> bit) & _U64(1))


@njit(cache=True, nogil=True, error_model="numpy")
def _count(row, table, degree, planes):
    """Bit-sliced number of neighbours up: plane k of lane l at ``k * CHUNK + l``."""
    for index in range(4 * CHUNK):
        planes[index] = _ZERO
    for slot in range(degree):
        for lane in range(CHUNK):
            carry = row[_ROW(table[slot, lane])]
            one, two, four = planes[lane], planes[CHUNK + lane], planes[2 * CHUNK + lane]
            planes[lane] = one ^ carry
            carry &= one
            planes[CHUNK + lane] = two ^ carry
            carry &= two
            planes[2 * CHUNK + lane] = four ^ carry
            planes[3 * CHUNK + lane] |= four & carry


@njit(cache=True, nogil=True, error_model="numpy")
def _select(planes, degree, masks):
    """masks[m * CHUNK + lane] = the chains whose count is m; none for m above the degree."""
    for count in range(DEGREES + 1):
        if count > degree:
            masks[count * CHUNK : (count + 1) * CHUNK] = _ZERO
            continue
        one = _ZERO if count & 1 else _ONES
        two = _ZERO if count & 2 else _ONES
        four = _ZERO if count & 4 else _ONES
        eight = _ZERO if count & 8 else _ONES
        chosen = masks[count * CHUNK : (count + 1) * CHUNK]
        for lane in range(CHUNK):
            low = (planes[lane] ^ one) & (planes[CHUNK + lane] ^ two)
            chosen[lane] = low & (planes[2 * CHUNK + lane] ^ four) & (planes[3 * CHUNK + lane] ^ eight)


@njit(cache=True, nogil=True, error_model="numpy")
def _bit(levels, count, bit):
    """All ones where bit ``bit`` of the threshold of ``count`` is set, else zero."""
    return _U64(_ZERO - ((levels[count] >> _U64(bit)) & _U64(1)))


@njit(cache=True, nogil=True, error_model="numpy")
def _high_counts(masks, degree, levels, bit, work):
    """The threshold bits of the counts above 4, in the third row of ``work``."""
    for lane in range(CHUNK):
        work[2 * CHUNK + lane] = _ZERO
    for count in range(5, degree + 1):
        if _bit(levels, count, bit) != _ZERO:
            chosen = masks[count * CHUNK : (count + 1) * CHUNK]
            for lane in range(CHUNK):
                work[2 * CHUNK + lane] |= chosen[lane]


@njit(cache=True, nogil=True, error_model="numpy")
def _round(masks, levels, bit, state, work):
    """One bit of the comparison: ``work`` is (decided up, undecided, bits of counts above 4) by lane."""
    c0, c1, c2 = _bit(levels, 0, bit), _bit(levels, 1, bit), _bit(levels, 2, bit)
    c3, c4 = _bit(levels, 3, bit), _bit(levels, 4, bit)
    for lane in range(CHUNK):
        target = work[2 * CHUNK + lane] | (masks[lane] & c0) | (masks[CHUNK + lane] & c1)
        target |= (masks[2 * CHUNK + lane] & c2) | (masks[3 * CHUNK + lane] & c3) | (masks[4 * CHUNK + lane] & c4)
        random = next64(state, CHUNK, lane)
        undecided = work[CHUNK + lane]
        work[lane] |= undecided & target & ~random
        work[CHUNK + lane] = undecided & ~(random ^ target)


@njit(cache=True, nogil=True, error_model="numpy")
def _bernoulli(masks, degree, levels, state, work):
    """work[lane] = bits with probability levels[count] / 2^32, count read from ``masks``."""
    for lane in range(CHUNK):
        work[lane] = _ZERO
        work[CHUNK + lane] = _ONES
        work[2 * CHUNK + lane] = _ZERO
    for step in range(_BITS):
        bit = _BITS - 1 - step
        if degree > 4:
            _high_counts(masks, degree, levels, bit, work)
        _round(masks, levels, bit, state, work)
        if step >= _UNCHECKED:
            undecided = _ZERO
            for lane in range(CHUNK):
                undecided |= work[CHUNK + lane]
            if undecided == _ZERO:
                return


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep_word(row, table, sites, sizes, degrees, levels, seed, sweeps):
    planes, work = np.empty(4 * CHUNK, np.uint64), np.empty(3 * CHUNK, np.uint64)
    masks = np.empty((DEGREES + 1) * CHUNK, np.uint64)
    state = np.empty(4 * CHUNK, np.uint64)
    seed_lanes64(seed, state)
    for _ in range(sweeps):
        for chunk in range(sizes.shape[0]):
            degree = degrees[chunk]
            _count(row, table[chunk], degree, planes)
            _select(planes, degree, masks)
            _bernoulli(masks, degree, levels[degree], state, work)
            for lane in range(sizes[chunk]):
                row[sites[chunk, lane]] = work[lane]


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(packed, table, sites, sizes, degrees, levels, seed, sweeps):
    """Systematic-scan Gibbs, in place, for a uniform coupling and field; each sweep visits every chunk of the plan.

    ``P(x_i = 1 | rest) = levels[d_i, m_i] / 2^32``, m_i of the d_i neighbours of site i being up.

    Args: packed (words, sites) uint64 from `pack`; table, sites, sizes, degrees from `plan`; levels from
    `thresholds`; seed uint64; sweeps int.
    """
    for word in range(packed.shape[0]):
        _sweep_word(packed[word], table, sites, sizes, degrees, levels, substream(seed, word), sweeps)


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def sweep_parallel(packed, table, sites, sizes, degrees, levels, seed, sweeps):
    """The same bits as `sweep`, with the words of 64 chains spread over numba's threads."""
    for word in prange(packed.shape[0]):
        _sweep_word(packed[word], table, sites, sizes, degrees, levels, substream(seed, word), sweeps)
