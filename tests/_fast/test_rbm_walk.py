"""Weights and draws of the compiled annealing of an RBM against double precision and exact laws, with mutants."""

import numpy as np
import pytest

from gibbsite._fast import rbm_walk

from .small_graphs import check, states

CHAINS = 60_000


def inputs(hidden, seed=0):
    rng = np.random.default_rng(seed)
    return (4 * rng.normal(size=(3, hidden))).astype(np.float32), rng.normal(size=hidden).astype(np.float32)


def softplus_difference(z, low, high):
    return (np.logaddexp(0, high * z) - np.logaddexp(0, low * z)).sum(1)


@pytest.mark.parametrize("hidden", [1, 32, 45, 1500])  # part groups, and more groups than are multiplied at once
@pytest.mark.parametrize("ends", [(0.0, 0.001), (0.3, 0.8), (1.0, 0.0)])
def test_weights_are_softplus_differences(hidden, ends):
    """Both factors of a unit are good to 6 roundings of 6e-8 each, and the linear sum to one rounding a group."""
    logits, bias = inputs(hidden)
    low, high = np.float32(ends)
    log_w = np.full(3, 2.5)
    rbm_walk.weigh_and_draw_hidden(logits.copy(), bias, low, high, log_w, np.uint64(0))
    z = (logits + bias).astype(float)
    exact = softplus_difference(z, float(low), float(high))
    tolerance = 7e-7 * hidden + (hidden // 32 + 1) * 6e-8 * abs(high - low) * np.abs(z).sum(1).max()
    assert np.abs(log_w - 2.5 - exact).max() < tolerance
    mutant = softplus_difference(logits.astype(float), float(low), float(high))  # the bias forgotten
    assert np.abs(log_w - 2.5 - mutant).max() > tolerance


def test_what_is_not_finite_is_not_hidden():
    logits = np.array([[0.0, np.nan], [1.0, 2.0]], np.float32)
    log_w = np.zeros(2)
    rbm_walk.weigh_and_draw_hidden(logits, np.zeros(2, np.float32), np.float32(0), np.float32(1), log_w, np.uint64(0))
    assert np.isnan(log_w[0]) and np.isfinite(log_w[1])


def test_one_alternation_at_a_temperature_has_the_exact_law():
    """v' from a fixed v at beta = 0.6 (false alarm 1e-6); the mutant moves at beta = 1. The dots are of the new v."""
    rng, beta = np.random.default_rng(4), np.float32(0.6)
    weights, bias, slope, hidden_bias = (
        a.astype(np.float32)
        for a in (1.5 * rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=4), rng.normal(size=3))
    )
    v = np.tile(np.float32([1, 0, 1, 1]), (CHAINS, 1))
    h, dots = v @ weights.T, np.empty(CHAINS)
    rbm_walk.weigh_and_draw_hidden(h, hidden_bias, np.float32(0.5), beta, np.zeros(CHAINS), np.uint64(7))
    drawn = h @ weights
    rbm_walk.draw_visible(drawn, beta, bias, slope, dots, np.uint64(8))
    assert np.allclose(dots, drawn @ slope, atol=1e-5)

    def law(b):
        every_v, every_h = states(4).astype(float), states(3).astype(float)
        up = 1 / (1 + np.exp(-b * (weights.astype(float) @ [1, 0, 1, 1] + hidden_bias)))
        hidden = np.prod(np.where(every_h == 1, up, 1 - up), 1)
        up = 1 / (1 + np.exp(-(b * (every_h @ weights.astype(float)) + bias)))
        return hidden @ np.prod(np.where(every_v[None] == 1, up[:, None], 1 - up[:, None]), 2)

    check(drawn.astype(np.uint8), law(0.6), law(1.0))
