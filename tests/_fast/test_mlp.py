"""U and dU/dx of a multilayer perceptron against plain numpy in float64, with a mutant."""

from itertools import pairwise

import numpy as np
import pytest

from gibbsite._fast import mlp

ACTIVATIONS = {
    mlp.SILU: lambda z: (z / (1 + np.exp(-z)), (1 + np.exp(-z) + z * np.exp(-z)) / (1 + np.exp(-z)) ** 2),
    mlp.TANH: lambda z: (np.tanh(z), 1 - np.tanh(z) ** 2),
    mlp.SOFTPLUS: lambda z: (np.logaddexp(0, z), 1 / (1 + np.exp(-z))),
    mlp.RELU: lambda z: (np.maximum(z, 0), (z > 0).astype(float)),
}


def _network(widths, seed=0):
    rng = np.random.default_rng(seed)
    matrices = [rng.normal(size=(b, a)).astype(np.float32) / np.float32(np.sqrt(a)) for a, b in pairwise(widths)]
    biases = [rng.normal(size=width).astype(np.float32) for width in widths[1:]]
    return matrices, biases, rng.normal(size=widths[-1]).astype(np.float32)


def _reference(x, matrices, biases, weight, kind):
    below, slopes = x.astype(float), []
    for matrix, bias in zip(matrices, biases):
        below, slope = ACTIVATIONS[kind](below @ matrix.T.astype(float) + bias)
        slopes.append(slope)
    signal = weight.astype(float) * slopes[-1]
    for matrix, slope in zip(matrices[:0:-1], slopes[-2::-1]):
        signal = (signal @ matrix.astype(float)) * slope
    return below @ weight.astype(float), signal @ matrices[0].astype(float)


@pytest.mark.parametrize("kind", list(ACTIVATIONS))
@pytest.mark.parametrize("widths", [(2, 33), (3, 40, 17), (2, 16, 24, 8)])
def test_potential_and_score(kind, widths):
    """Float32 rounding only: 2e-6 of the scale; 300 chains are one full block of 128 twice and a part."""
    network = _network(widths)
    x = 2 * np.random.default_rng(1).normal(size=(300, widths[0])).astype(np.float32)
    u, score = np.empty(300, np.float32), np.empty_like(x)
    mlp.potential_and_score(x, u, score, mlp.Workspace(*network, kind, block=128))
    want_u, want_score = _reference(x, *network, kind)
    assert np.abs(u - want_u).max() < 2e-6 * np.abs(want_u).max()
    assert np.abs(score - want_score).max() < 2e-6 * np.abs(want_score).max()
    mutant = _reference(x, *network, (kind + 1) % 4)  # another activation
    assert np.abs(score - mutant[1]).max() > 1e-2


def test_slopes_at_the_extremes():
    z = np.array([[-np.inf, -100, -20, 0, 20, 100, np.inf, np.nan]], np.float32)
    for kind, last in ((mlp.TANH, 1.0), (mlp.SOFTPLUS, np.inf), (mlp.RELU, np.inf)):
        value, slope = z.copy(), np.empty_like(z)
        mlp.activate(kind, np.zeros(8, np.float32), value, slope)
        assert value[0, 6] == last
        assert np.isnan(value[0, 7])
        assert not np.isnan(value[0, :7]).any()
        assert not np.isnan(slope[0, :7]).any()
    value, slope = z.copy(), np.empty_like(z)
    mlp.activate(mlp.SILU, np.zeros(8, np.float32), value, slope)
    assert np.isnan(value[0, 7])
    assert np.abs(value[0, [1, 5]] - [0, 100]).max() < 1e-35
    assert np.abs(slope[0, [1, 5]] - [0, 1]).max() < 1e-35
