"""The best label sequence of linear chains (Viterbi), without back pointers.

``v_t(j) = node_t(j) + max_i (v_(t-1)(i) + edge_t(i, j))`` is kept for every position, less its largest, so that differences
are as exact at the end of a long chain as at its start. Backwards from the best last label, the label before j is the i of
the largest ``v_(t-1)(i) + edge_t(i, j)``: K sums a position, where back pointers cost K^2 comparisons. The score is summed
along the path in float64.

Legend: B chains, T positions, K labels, W the length of a row of edges (K, or more with -inf behind).

References:
    A. Viterbi, "Error bounds for convolutional codes and an asymptotically optimum decoding algorithm" (1967).
"""

import numpy as np
from numba import njit

_INDEX = np.uint64  # an unsigned index needs no wrap-around test, which would stop vectorisation
LANES = 16
_1, _2, _3 = _INDEX(1), _INDEX(2), _INDEX(3)


def padded(edge: np.ndarray) -> np.ndarray:
    """edge (K, K) in rows of whole vectors, -inf behind."""
    labels = len(edge)
    out = np.full((labels, -(-labels // LANES) * LANES), -np.inf, edge.dtype)
    out[:, :labels] = edge
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _relax(v, before, edge, table, wide, labels):
    """The row behind ``before`` of v <- max_i (before_i + edge_ij), the table from ``table`` on; four of its rows a pass."""
    w, after, whole = _INDEX(wide), _INDEX(before + wide), labels // 4 * 4
    for j in range(w):
        v[after + j] = -np.inf
    for i in range(0, whole, 4):
        at, r = _INDEX(before + i), _INDEX(table + i * wide)
        a, b, c, d = v[at], v[at + _1], v[at + _2], v[at + _3]
        s, t, u = r + w, r + w + w, r + w + w + w
        for j in range(w):
            x, y = a + edge[r + j], b + edge[s + j]
            z, o = c + edge[t + j], d + edge[u + j]
            x, z = (y if y > x else x), (o if o > z else z)
            x = z if z > x else x
            v[after + j] = x if x > v[after + j] else v[after + j]
    for i in range(whole, labels):
        a, r = v[_INDEX(before + i)], _INDEX(table + i * wide)
        for j in range(w):
            x = a + edge[r + j]
            v[after + j] = x if x > v[after + j] else v[after + j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
def _settle(v, at, wide, node, place, labels, end, last):
    """v, from ``at``, <- v + node (+ end), less its largest, where that is finite; returns the largest."""
    at, place, labels, wide = _INDEX(at), _INDEX(place), _INDEX(labels), _INDEX(wide)
    for j in range(labels):
        v[at + j] += node[place + j]
    if last:
        for j in range(labels):
            v[at + j] += end[j]
    top = v[at]
    for j in range(wide):
        top = v[at + j] if v[at + j] > top else top
    if top > -np.inf:
        for j in range(wide):
            v[at + j] -= top
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _origin(v, at, edge, table, wide, labels, label):
    """The i of the largest v_i + edge_ij, the first of them."""
    best, most = 0, v[at] + edge[table + label]
    for i in range(1, labels):
        value = v[at + i] + edge[table + i * wide + label]
        if value > most:
            best, most = i, value
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _chain(node, place, edge, table, step, start, end, length, v, wide, path):
    """Fills the path of one chain, whose node weights begin at ``place``; returns its score."""
    labels = start.shape[0]
    v[:labels], v[labels:wide] = start, -np.inf
    for t in range(length):
        if t > 0:
            _relax(v, (t - 1) * wide, edge, table + (t - 1) * step, wide, labels)
        top = _settle(v, t * wide, wide, node, place + t * labels, labels, end, t == length - 1)
        if not top > -np.inf:
            return np.float64(top)
    label = np.argmax(v[(length - 1) * wide : (length - 1) * wide + labels])
    path[length - 1] = label
    score = np.float64(node[place + (length - 1) * labels + label]) + np.float64(end[label])
    for t in range(length - 2, -1, -1):
        here = table + t * step
        origin = _origin(v, t * wide, edge, here, wide, labels, label)
        score += np.float64(edge[here + origin * wide + label]) + np.float64(node[place + t * labels + origin])
        label = origin
        path[t] = label
    return score + np.float64(start[label])


@njit(cache=True, nogil=True, error_model="numpy")
def best(node, edge, wide, shift, step, start, end, lengths, scores, paths):
    """The score and the labels of the best sequence of every chain; -inf and zeros where there is none.

    Args: node (B, T, K); edge, flat: the table between t and t + 1 of chain b from ``b shift + t step``, in rows of
    ``wide``; start, end (K,); weights are finite or -inf; lengths (B,) int64; scores (B,) float64 and paths (B, T) int64,
    zeros, are filled.
    """
    chains, positions, labels = node.shape
    v, flat = np.empty(positions * wide, node.dtype), node.reshape(-1)
    for b in range(chains):
        if lengths[b] > 0:
            place, table = b * positions * labels, b * shift
            scores[b] = _chain(flat, place, edge, table, step, start, end, lengths[b], v, wide, paths[b])
