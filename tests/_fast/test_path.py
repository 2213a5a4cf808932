"""The path-auxiliary sampler on the Ising model against its exact transition matrix, by all paths, with mutants."""

import itertools

import numpy as np
import pytest

from gibbsite._fast import path

from .small_graphs import Graph, check, index, mixed, states

CHAINS = 60_000
START = np.array([1, 0, 1, 1, 0], np.uint8)


def _log_path(table, sites):
    """log q of each site given those before it, summed; a flip turns the sign of its row of the table (states, sites)."""
    table, total = table.copy(), 0.0
    for site in sites:
        total = total + table[:, site] - np.logaddexp.reduce(table, axis=1)
        table[:, site] *= -1
    return total


def matrix(graph, free, length, temperature, reverse=True):
    """Exact transition matrix; ``reverse=False`` is the mutant without the probability of the way back."""
    every = states(graph.sites)
    potential, here = graph.potential(every), np.arange(len(every))
    flipped = np.stack([index(every ^ np.eye(graph.sites, dtype=np.uint8)[i]) for i in range(graph.sites)], 1)
    table = np.where(np.asarray(free, bool), (potential[flipped] - potential[:, None]) / temperature, -np.inf)
    step = np.zeros((len(every), len(every)))
    for sites in itertools.product(np.flatnonzero(free), repeat=length):
        there = here
        for site in sites:
            there = flipped[there, site]
        out = _log_path(table, sites)
        back = _log_path(table[there], sites[::-1]) - out if reverse else 0.0
        np.add.at(step, (here, there), np.exp(out + np.minimum(0.0, potential[there] - potential + back)))
    return step + np.diag(1.0 - step.sum(1))


def _draw(graph, free, length, temperature, steps, seed):
    x = np.tile(START, (CHAINS, 1))
    u = graph.potential(x)
    kept, kept_u = np.empty((1, *x.shape), np.uint8), np.empty((1, CHAINS))
    accepted = path.draws(
        x, u, *graph.csr, np.array(free, np.uint8), length, temperature, np.uint64(seed), steps, kept, kept_u
    )
    np.testing.assert_allclose(u, graph.potential(x), rtol=1e-12, atol=1e-12)
    assert np.array_equal(kept[0], x) and np.array_equal(kept_u[0], u)
    return x, accepted


def _against(graph, free, length, temperature, steps, seed):
    x, accepted = _draw(graph, free, length, temperature, steps, seed)
    row = index(START[None])[0]
    law, mutant = (
        np.linalg.matrix_power(matrix(graph, free, length, temperature, flag), steps)[row] for flag in (True, False)
    )
    check(x, law, mutant)
    assert accepted.min() >= 0 and accepted.max() <= steps


@pytest.mark.parametrize("free", [[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]], ids=["all", "clamped"])
@pytest.mark.parametrize(("length", "temperature", "steps"), [(1, 2.0, 1), (3, 2.0, 1), (3, 2.0, 4), (5, 1.3, 2)])
def test_exact_law(free, length, temperature, steps):
    """False alarm 1e-6; the mutant drops the probability of the path back."""
    _against(mixed(), free, length, temperature, steps, seed=7)


def test_couplings_beyond_exp_follow_the_same_law():
    """A tiny temperature takes all weights relative to the largest; with strong couplings too nothing overflows."""
    weak = Graph(0.3 * mixed().couplings, 0.3 * mixed().field)
    _against(weak, np.ones(5), 3, 0.004, 2, seed=5)
    strong = Graph(400 * mixed().couplings, 400 * mixed().field)
    x, _ = _draw(strong, np.ones(5), 3, 2.0, 3, seed=3)
    law = np.linalg.matrix_power(matrix(strong, np.ones(5), 3, 2.0), 3)[index(START[None])[0]]
    check(x, law, np.full(32, 1 / 32))


def test_a_long_path_over_many_blocks_leaves_no_trace():
    """A ring of 300 sites: u follows x, and rejected paths (about half here) leave the table of the state that stays."""
    size = 300
    couplings = np.zeros((size, size))
    for site in range(size):
        couplings[site, (site + 1) % size] = couplings[(site + 1) % size, site] = 0.4 * (-1) ** (site % 3)
    graph = Graph(couplings, np.linspace(-1, 1, size))
    x = np.random.default_rng(0).integers(0, 2, (5, size)).astype(np.uint8)
    u, once, free = graph.potential(x), x.copy(), np.ones(size, np.uint8)
    kept, kept_u = np.empty((40, *x.shape), np.uint8), np.empty((40, 5))
    accepted = path.draws(x, u, *graph.csr, free, 31, 2.0, np.uint64(4), 50, kept, kept_u)
    np.testing.assert_allclose(u, graph.potential(x), atol=1e-9)
    np.testing.assert_allclose(kept_u, [graph.potential(states) for states in kept], atol=1e-9)
    assert accepted.min() > 0 and accepted.max() < 2000
    # one kept state of 2,000 steps makes the same draws: what 40 calls of the inner loop leave is what one leaves
    v = graph.potential(once)
    path.draws(once, v, *graph.csr, free, 31, 2.0, np.uint64(4), 2000, kept[:1], kept_u[:1])
    assert np.array_equal(once, x)
