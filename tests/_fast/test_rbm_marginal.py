"""The hidden units summed out in one pass, against double precision, with mutants."""

import numpy as np
import pytest

from gibbsite._fast.rbm_marginal import marginalise


def exactly(z):
    """sum_j log(1 + exp(z_j)) and sigmoid(z_j) in double precision."""
    return np.logaddexp(0, z).sum(1), np.exp(-np.logaddexp(0, -z))


@pytest.mark.parametrize("hidden", [1, 31, 32, 33, 500, 1100])
def test_sums_and_probabilities_are_those_of_double_precision(hidden):
    """A factor of a product has a relative error below 4e-7 (the exponential's 2e-7, two roundings), so that its logarithm
    is off by less than 4e-7 a unit, padding among them; a sum of at most 32 z in float32 is rounded at each.
    """
    rng = np.random.default_rng(hidden)
    inputs = (6 * rng.normal(size=(20, hidden))).astype(np.float32)
    bias, start = rng.normal(size=hidden).astype(np.float32), rng.normal(size=20)
    z = (inputs + bias).astype(float)
    total, probability = exactly(z)
    u, made = start.copy(), inputs.copy()
    marginalise(made, bias, u)
    units = 32 * -(-hidden // 32)
    bound = 4e-7 * units + 32 * 6e-8 * np.abs(z).sum(1)
    assert (np.abs(u - start - total) < bound).all()
    assert np.abs(made - probability).max() < 4e-7
    forgotten, _ = exactly(inputs.astype(float))  # the mutant: no bias
    assert (np.abs(u - start - forgotten) > bound).any()
    if units > hidden:  # the mutant: padding counted in
        assert (np.abs(u - start - total - (units - hidden) * np.log(2)) > bound).all()


def test_extremes_and_what_is_no_number():
    inputs = np.array([[200.0, -200.0, 0.0], [np.nan, 1.0, 1.0], [np.inf, 0.0, 0.0]], np.float32)
    u = np.zeros(3)
    marginalise(inputs, np.zeros(3, np.float32), u)
    assert abs(u[0] - 200 - np.log(2)) < 1e-4 and np.isnan(u[1]) and u[2] == np.inf
    assert inputs[0].tolist() == [1.0, inputs[0, 1], 0.5] and 0 <= inputs[0, 1] < 1e-37
