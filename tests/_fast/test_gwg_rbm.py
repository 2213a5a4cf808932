"""Gibbs-With-Gradients on an RBM against its exact transition matrix, with a mutant."""

import numpy as np
import pytest

from gibbsite._fast import gwg_rbm

from .small_graphs import check, index, states

CHAINS = 60_000
START = np.array([1, 0, 1, 1], np.uint8)


def _model():
    rng = np.random.default_rng(2)
    arrays = 1.5 * rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=3)
    return tuple(array.astype(np.float32) for array in arrays)


def _potential(x, weights, bias, hidden_bias):
    return x @ bias.astype(float) + np.logaddexp(0, x @ weights.T.astype(float) + hidden_bias).sum(1)


def _matrix(model, free, temperature, reverse=True):
    weights, bias, hidden_bias = (np.asarray(array, float) for array in model)
    every = states(4)
    potential = _potential(every, *model)
    active = 1 / (1 + np.exp(-(every @ weights.T + hidden_bias)))
    change = (1.0 - 2.0 * every) * (bias + active @ weights)
    weight = np.where(np.asarray(free, bool), np.exp(change / temperature), 0.0)
    proposal = weight / weight.sum(1, keepdims=True)
    step = np.zeros((16, 16))
    for here in range(16):
        for site in np.flatnonzero(free):
            there = here ^ (1 << (3 - site))
            back = proposal[there, site] / proposal[here, site] if reverse else 1.0
            step[here, there] = proposal[here, site] * min(1.0, np.exp(potential[there] - potential[here]) * back)
        step[here, here] = 1.0 - step[here].sum()
    return step


@pytest.mark.parametrize("free", [[1, 1, 1, 1], [1, 0, 1, 1]], ids=["all", "clamped"])
@pytest.mark.parametrize(("temperature", "steps"), [(2.0, 1), (2.0, 4), (1.5, 3)])
def test_exact_law(free, temperature, steps):
    """False alarm 1e-6; the mutant drops the reverse proposal probability."""
    model = _model()
    x, u = np.tile(START, (CHAINS, 1)), np.empty(CHAINS)
    accepted = gwg_rbm.rbm_steps(x, u, *model, np.array(free, np.uint8), temperature, 3, steps)
    np.testing.assert_allclose(u, _potential(x, *model), atol=2e-6)
    row = index(START[None])[0]
    law, mutant = (np.linalg.matrix_power(_matrix(model, free, temperature, flag), steps)[row] for flag in (True, False))
    check(x, law, mutant)
    assert set(np.unique(accepted)) <= set(range(steps + 1))


def test_nothing_free_moves_nothing():
    x, u = np.tile(START, (3, 1)), np.empty(3)
    assert gwg_rbm.rbm_steps(x, u, *_model(), np.zeros(4, np.uint8), 2.0, 1, 5).sum() == 0
    assert np.array_equal(x, np.tile(START, (3, 1)))


def test_many_units_keep_the_potential():
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(50, 70)), rng.normal(size=70), rng.normal(size=50)
    model = tuple(array.astype(np.float32) for array in arrays)
    x, u = rng.integers(0, 2, (9, 70)).astype(np.uint8), np.empty(9)
    accepted = gwg_rbm.rbm_steps(x, u, *model, np.ones(70, np.uint8), 2.0, 5, 500)
    np.testing.assert_allclose(u, _potential(x, *model), atol=1e-4)
    assert accepted.min() > 50
