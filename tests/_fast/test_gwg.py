"""Gibbs-With-Gradients on the Ising model against its exact transition matrix, with mutants."""

import numpy as np
import pytest

from gibbsite._fast import gwg

from .small_graphs import Graph, check, index, mixed, states

CHAINS = 60_000
START = np.array([1, 0, 1, 1, 0], np.uint8)


def matrix(graph, free, temperature, reverse=True):
    """Exact transition matrix; ``reverse=False`` is the mutant without the reverse proposal probability."""
    every = states(graph.sites)
    potential = graph.potential(every)
    flipped = np.stack([index(every ^ np.eye(graph.sites, dtype=np.uint8)[i]) for i in range(graph.sites)], 1)
    change = potential[flipped] - potential[:, None]
    log_weight = np.where(np.asarray(free, bool), change / temperature, -np.inf)
    log_proposal = log_weight - np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
    step = np.zeros((len(every), len(every)))
    for here in range(len(every)):
        for site in np.flatnonzero(free):
            there = flipped[here, site]
            back = log_proposal[there, site] - log_proposal[here, site] if reverse else 0.0
            step[here, there] = np.exp(log_proposal[here, site] + min(0.0, change[here, site] + back))
        step[here, here] = 1.0 - step[here].sum()
    return step


def _draw(graph, free, temperature, steps, seed):
    x = np.tile(START, (CHAINS, 1))
    u = graph.potential(x)
    accepted = gwg.steps(x, u, *graph.csr, np.array(free, np.uint8), temperature, np.uint64(seed), steps)
    np.testing.assert_allclose(u, graph.potential(x), atol=1e-12)
    return x, accepted


@pytest.mark.parametrize("free", [[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]], ids=["all", "clamped"])
@pytest.mark.parametrize(("temperature", "steps"), [(2.0, 1), (2.0, 4), (1.3, 3)])
def test_exact_law(free, temperature, steps):
    """False alarm 1e-6; the mutant drops the reverse proposal probability."""
    graph = mixed()
    x, accepted = _draw(graph, free, temperature, steps, seed=7)
    row = index(START[None])[0]
    law, mutant = (np.linalg.matrix_power(matrix(graph, free, temperature, flag), steps)[row] for flag in (True, False))
    check(x, law, mutant)
    if steps == 1:
        assert np.array_equal(accepted == 1, (x != START).any(1))


@pytest.mark.parametrize("scale", [0.05, 400.0])
def test_any_scale_of_couplings(scale):
    """The log-space path (couplings beyond exp) follows the same law; the field decides between tied states."""
    graph = Graph(scale * mixed().couplings, scale * mixed().field)
    x, _ = _draw(graph, np.ones(5), 2.0, 3, seed=3)
    law = np.linalg.matrix_power(matrix(graph, np.ones(5), 2.0), 3)[index(START[None])[0]]
    check(x, law, np.full(32, 1 / 32))


def test_wide_path_equals_the_incremental_path_in_law():
    """Moderate couplings at a tiny temperature force the log-space path (false alarm 1e-6)."""
    graph = Graph(0.3 * mixed().couplings, 0.3 * mixed().field)
    x, _ = _draw(graph, np.ones(5), 0.004, 2, seed=5)
    mutant = np.linalg.matrix_power(matrix(graph, np.ones(5), 0.004, reverse=False), 2)[index(START[None])[0]]
    check(x, np.linalg.matrix_power(matrix(graph, np.ones(5), 0.004), 2)[index(START[None])[0]], mutant)


def test_nothing_free_moves_nothing():
    x, accepted = _draw(mixed(), np.zeros(5), 2.0, 3, seed=1)
    assert np.array_equal(x, np.tile(START, (CHAINS, 1)))
    assert accepted.sum() == 0


def test_many_blocks_keep_the_potential():
    """A ring of 300 sites, several blocks of weights: u follows x, and block sums leave no trace of rejects."""
    size = 300
    couplings = np.zeros((size, size))
    for site in range(size):
        couplings[site, (site + 1) % size] = couplings[(site + 1) % size, site] = 1.5 * (-1) ** (site % 3)
    graph = Graph(couplings, np.linspace(-1, 1, size))
    x = np.random.default_rng(0).integers(0, 2, (5, size)).astype(np.uint8)
    u = graph.potential(x)
    gwg.steps(x, u, *graph.csr, np.ones(size, np.uint8), 2.0, np.uint64(4), 3000)
    np.testing.assert_allclose(u, graph.potential(x), atol=1e-9)
