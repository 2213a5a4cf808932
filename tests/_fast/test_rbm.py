"""Fused Bernoulli draws and block Gibbs of an RBM against exact probabilities, with mutants."""

import numpy as np
from scipy import stats

from gibbsite._fast import rbm

from .small_graphs import check, index, states

CHAINS = 60_000


def test_each_logit_has_its_probability():
    """37 logits from -12 to 12 (a part group of lanes): binomial tests, false alarm 1e-6 / 37 each."""
    logits = np.linspace(-12, 12, 37).astype(np.float32)
    out = np.empty((200_000, 37), np.float32)
    bias = np.full(37, 0.5, np.float32)
    rbm.draw_bernoulli(np.tile(logits - bias, (len(out), 1)), bias, out, np.uint64(3))
    ones = out.sum(0, dtype=np.float64)
    assert set(np.unique(out)) == {0.0, 1.0}
    chances = 1 / (1 + np.exp(-logits.astype(float)))
    p_values = [stats.binomtest(int(n), len(out), p).pvalue for n, p in zip(ones, chances)]
    assert min(p_values) > 1e-6 / 37
    mutant = 1 / (1 + np.exp(-(logits - bias).astype(float)))  # the bias forgotten
    assert min(stats.binomtest(int(n), len(out), p).pvalue for n, p in zip(ones, mutant)) < 1e-6


def test_neighbouring_draws_are_independent():
    out = np.empty((4000, 70), np.float32)
    rbm.draw_bernoulli(np.zeros((4000, 70), np.float32), np.zeros(70, np.float32), out, np.uint64(5))
    correlation = np.abs(np.corrcoef(out.T)[np.triu_indices(70, 1)]).max()
    assert correlation * np.sqrt(4000) < stats.norm.isf(1e-6 / (2 * 2415)) + 0.3
    rows = np.abs((2 * out[:-1] - 1) * (2 * out[1:] - 1)).mean(), ((2 * out[:-1] - 1) * (2 * out[1:] - 1)).sum()
    assert abs(rows[1]) < 5 * np.sqrt(out[1:].size)


def test_in_place_equals_out_of_place_and_extremes():
    logits = np.array([[np.inf, -np.inf, 200, -200, 0.3, np.nan]], np.float32)
    zero, out = np.zeros(6, np.float32), np.empty((1, 6), np.float32)
    rbm.draw_bernoulli(logits, zero, out, np.uint64(1))
    rbm.draw_bernoulli(logits, zero, logits, np.uint64(1))
    assert np.array_equal(out, logits)
    assert out[0, :4].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert out[0, 5] == 0.0


def test_one_alternation_has_the_exact_law():
    """v' from a fixed v (false alarm 1e-6); the mutant leaves the hidden bias out."""
    rng = np.random.default_rng(4)
    weights, bias, hidden_bias = (
        array.astype(np.float32) for array in (1.5 * rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=3))
    )
    v, h = np.tile(np.float32([1, 0, 1, 1]), (CHAINS, 1)), np.empty((CHAINS, 3), np.float32)
    rbm.block_gibbs(v, h, weights, bias, hidden_bias, 7, 1)

    def law(offset):
        every_v, every_h = states(4).astype(float), states(3).astype(float)
        up = 1 / (1 + np.exp(-(weights.astype(float) @ [1, 0, 1, 1] + offset)))
        hidden = np.prod(np.where(every_h == 1, up, 1 - up), 1)
        up = 1 / (1 + np.exp(-(every_h @ weights.astype(float) + bias)))
        return hidden @ np.prod(np.where(every_v[None] == 1, up[:, None], 1 - up[:, None]), 2)

    check(v.astype(np.uint8), law(hidden_bias.astype(float)), law(0.0))
    assert index(v[:1].astype(np.uint8))[0] < 16
