"""A linear-chain CRF on sparse binary features: scores of words, and passes of AdaGrad over sentences.

node[t, k] = sum over features f of word t of weights[f, k]; edge, start and end are dense. The gradient of
-log p(labels | words) is p(label of t is k) - [label of t is k] at each feature of t, by forward-backward on
probabilities that are scaled at each word, in float64. A feature that occurs c times in the corpus bears 1/c of its
penalty at each, so that the penalties of a whole pass add up to l1 |w|_1 + l2 |w|^2 / 2.

References: Lafferty et al. (2001), Conditional random fields; Duchi et al. (2011), Adaptive subgradient methods; Niu et
    al. (2011), Hogwild! (the penalty's share).
"""

import numpy as np
from numba import njit

_SMALL = 1e-6


@njit(cache=True, nogil=True, error_model="numpy")
def scores(rows, weights, out):
    """out[t, k] = the sum of weights[f, k] over the features f of word t; row -1 is a feature without weights."""
    labels = weights.shape[1]
    for word in range(rows.shape[0]):
        for k in range(labels):
            out[word, k] = 0.0
        for place in range(rows.shape[1]):
            row = rows[word, place]
            if row >= 0:
                for k in range(labels):
                    out[word, k] += weights[row, k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _forward(node, edge, gold, alpha):
    """-log p(gold) of scores node (T, K); node becomes exp(node) over the scales of alpha."""
    words, labels = node.shape
    loss = 0.0
    for t in range(words):
        top = node[t].max()
        loss += top - node[t, gold[t]]
        for k in range(labels):
            node[t, k] = np.exp(node[t, k] - top)
        if t:
            loss -= np.log(edge[gold[t - 1], gold[t]])
            alpha[t] = 0.0
            for i in range(labels):
                a = alpha[t - 1, i]
                for j in range(labels):
                    alpha[t, j] += a * edge[i, j]
            alpha[t] *= node[t]
        else:
            alpha[0] = node[0]
        total = alpha[t].sum()
        loss += np.log(total)
        alpha[t] /= total
        node[t] /= total  # so that alpha * beta sums to one
    return loss


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def slopes(node, edge, gold, alpha, beta, pair):
    """-log p(gold); node becomes p(label) - [label is gold], and pair the same for neighbouring labels, summed.

    node (T, K) scores with start and end in them; edge (K, K) as exp(weights); alpha, beta (T, K), pair (K, K) are room.
    """
    words, labels = node.shape
    loss = _forward(node, edge, gold, alpha)
    pair[:] = 0.0
    beta[words - 1] = 1.0
    for t in range(words - 2, -1, -1):
        node[t + 1] *= beta[t + 1]
        for i in range(labels):
            b, a = 0.0, alpha[t, i]
            for j in range(labels):
                b += edge[i, j] * node[t + 1, j]
                pair[i, j] += a * node[t + 1, j]
            beta[t, i] = b
    pair *= edge
    for t in range(words):
        node[t] = alpha[t] * beta[t]
        node[t, gold[t]] -= 1.0
        if t:
            pair[gold[t - 1], gold[t]] -= 1.0
    return loss


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _stepped(weight, gradient, squares, rate, l1):
    """AdaGrad's step of one weight and the shrinkage of l1; squares is the sum so far, this gradient's included."""
    step = rate / (np.sqrt(squares) + _SMALL)
    weight -= step * gradient
    return weight if l1 == 0.0 else np.sign(weight) * max(abs(weight) - step * l1, 0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def _learn_word(rows, gradient, weights, share, rate, l1, l2):
    """A step of the weights of one word's features; weights (features, 2, labels) has AdaGrad's sums beside them."""
    labels = gradient.size
    for place in range(rows.size):
        row = rows[place]
        if row < 0:
            continue
        keep, shrink = np.float32(l2 * share[row]), np.float32(l1 * share[row])
        for k in range(labels):
            w = weights[row, 0, k]
            g = gradient[k] + keep * w
            squares = weights[row, 1, k] + g * g
            weights[row, 1, k] = squares
            weights[row, 0, k] = _stepped(w, g, squares, rate, shrink)


@njit(cache=True, nogil=True, error_model="numpy")
def _learn_dense(weights, squares, gradient, rate, l1, l2):
    for i in range(weights.size):
        g = gradient[i] + l2 * weights[i]
        squares[i] += g * g
        weights[i] = _stepped(weights[i], g, squares[i], rate, l1)


@njit(cache=True, nogil=True, error_model="numpy")
def learn(rows, gold, ends, order, share, weights, dense, squares, rate, l1, l2):
    """One pass over the sentences in an order; returns the sum of -log p(labels), each before its sentence's step.

    rows (words, templates) of features; gold (words,) labels; sentence s ends before word ends[s] and none is empty;
    weights (features, 2, labels) float32; share (features,) is 1 / count; dense (K K + 2 K,) edge, start, end.
    """
    labels = weights.shape[2]
    longest = 1
    for s in range(ends.size):
        longest = max(longest, ends[s] - (ends[s - 1] if s else 0))
    node, alpha, beta = np.empty((longest, labels)), np.empty((longest, labels)), np.empty((longest, labels))
    pair, edge = np.empty((labels, labels)), np.empty((labels, labels))
    gradient, slope = np.empty(dense.size), np.empty(labels, np.float32)
    square, few, total = labels * labels, 1.0 / order.size, 0.0
    rate32 = np.float32(rate)
    for s in order:
        first, last = ends[s - 1] if s else 0, ends[s]
        size = last - first
        scores(rows[first:last], weights[:, 0], node[:size])
        for i in range(labels):
            for j in range(labels):
                edge[i, j] = np.exp(dense[i * labels + j])
        start, end = dense[square : square + labels], dense[square + labels :]
        node[0] += start
        node[size - 1] += end
        total += slopes(node[:size], edge, gold[first:last], alpha, beta, pair)
        gradient[:square] = pair.ravel()
        gradient[square : square + labels] = node[0]
        gradient[square + labels :] = node[size - 1]
        for t in range(size):
            for k in range(labels):
                slope[k] = node[t, k]
            _learn_word(rows[first + t], slope, weights, share, rate32, l1, l2)
        _learn_dense(dense, squares, gradient, rate, l1 * few, l2 * few)
    return total
