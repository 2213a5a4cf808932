"""Block Gibbs of a binary RBM: two matrix products and two fused sigmoid-and-draw passes an alternation.

``U(v, h) = b.v + c.h + h.W v``: ``P(h_j = 1 | v) = sigmoid(c + W v)_j``, ``P(v_i = 1 | h) = sigmoid(b + W^T h)_i``.

References:
    G. Hinton, "Training products of experts by minimizing contrastive divergence" (2002).
"""

import numpy as np
from numba import njit

from gibbsite._fast.memory import aligned32
from gibbsite._fast.product import multiply
from gibbsite._fast.random import exp_negative, next32, seed_lanes32, substream, uniform32

LANES = 32
_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def draw_bit(logit, uniform):
    """1 (float32) with probability sigmoid(logit) from one uniform; the rare side has 32 bits. NaN gives 0."""
    decay = exp_negative(-abs(logit))
    likely = _ONE if logit > _ZERO else _ZERO
    return _ONE - likely if uniform * (_ONE + decay) < decay else likely


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _draw_groups(groups, state):
    """In place: every entry of ``groups`` (groups, LANES), a logit, becomes its draw."""
    for group in range(groups.shape[0]):
        row = _ROW(group)
        for lane in range(LANES):
            groups[row, lane] = draw_bit(groups[row, lane], uniform32(next32(state, LANES, lane)))


@njit(cache=True, nogil=True, error_model="numpy")
def draw_bernoulli(logits, bias, out, seed):
    """``out[c, i] ~ Bernoulli(sigmoid(logits[c, i] + bias[i]))`` as 0. and 1., in one pass; out may be logits.

    Args: logits (chains, n) float32; bias (n,) float32; out (chains, n) float32; seed uint64.
    """
    state = np.empty(4 * LANES, np.uint32)
    seed_lanes32(np.uint64(seed), state)
    size = logits.shape[1]
    groups = aligned32((size + LANES - 1) // LANES, LANES)
    held = groups.reshape(-1)
    held[:] = _ZERO
    for row in range(logits.shape[0]):
        source, target = logits[row], out[row]
        for index in range(size):
            held[index] = source[index] + bias[index]
        _draw_groups(groups, state)
        for index in range(size):
            target[index] = held[index]


def block_gibbs(v, h, weights, visible_bias, hidden_bias, seed, alternations):
    """``alternations`` times, in place: ``h ~ P(h | v)``, then ``v ~ P(v | h)``.

    Args: v (chains, visible), h (chains, hidden) float32 holding 0. and 1. (h is overwritten); weights (hidden,
    visible) float32; visible_bias (visible,), hidden_bias (hidden,) float32; seed uint64; alternations int.
    """
    for step in range(alternations):
        multiply(v, weights.T, out=h)
        draw_bernoulli(h, hidden_bias, h, np.uint64(substream(np.uint64(seed), np.uint64(2 * step))))
        multiply(h, weights, out=v)
        draw_bernoulli(v, visible_bias, v, np.uint64(substream(np.uint64(seed), np.uint64(2 * step + 1))))
