"""Metropolis-adjusted discrete Langevin on the Ising model against its exact transition matrix, with mutants."""

import numpy as np
import pytest

from gibbsite._fast import discrete_langevin

from .small_graphs import Graph, check, hub, index, mixed, states

CHAINS = 60_010  # the last block of lanes is not full


def rounding(graph):
    """U is float32 over groups of 96 sites: 101 roundings (and those of a field) of at most 2^-24 of the sum of sizes."""
    return 101 * 2.0**-24 * (np.abs(graph.couplings).sum() / 2 + np.abs(graph.field).sum())


def matrix(graph, free, step_size, temperature, reverse=True):
    """Exact transition matrix; ``reverse=False`` is the mutant without the reverse proposal probability."""
    every = states(graph.sites)
    potential = graph.potential(every)
    flipped = np.stack([index(every ^ np.eye(graph.sites, dtype=np.uint8)[i]) for i in range(graph.sites)], 1)
    logit = (potential[flipped] - potential[:, None]) / temperature - 0.5 / step_size
    logit = np.where(np.asarray(free, bool), logit, -np.inf)
    differ = every[:, None] != every  # (from, to, site)
    with np.errstate(invalid="ignore"):
        terms = np.where(differ, -np.logaddexp(0, -logit[:, None]), -np.logaddexp(0, logit[:, None]))
    log_q = terms.sum(-1)
    back = np.where(np.isfinite(log_q), log_q.T - np.where(np.isfinite(log_q), log_q, 0.0), 0.0) if reverse else 0.0
    step = np.exp(log_q + np.minimum(0.0, potential - potential[:, None] + back))
    return step + np.diag(1.0 - step.sum(1))


def _against(graph, free, step_size, temperature, steps, seed):
    start = (np.arange(graph.sites) % 3 != 1).astype(np.uint8)
    x = np.tile(start, (CHAINS, 1))
    u = graph.potential(x) + 3.0  # a constant, as other terms of a sum may add
    kept, kept_u = np.empty((2, *x.shape), np.uint8), np.empty((2, CHAINS))
    accepted = discrete_langevin.draws(
        x, u, *graph.csr, np.array(free, np.uint8), step_size, temperature, np.uint64(seed), steps, kept, kept_u
    )
    np.testing.assert_allclose(kept_u, [graph.potential(k) + 3.0 for k in kept], atol=rounding(graph))
    assert np.array_equal(kept[1], x) and np.array_equal(kept_u[1], u)
    assert accepted.min() >= 0 and accepted.max() <= 2 * steps
    law, mutant = (matrix(graph, free, step_size, temperature, flag) for flag in (True, False))
    row = index(start[None])[0]
    for draw in range(2):
        power = (draw + 1) * steps
        check(kept[draw], np.linalg.matrix_power(law, power)[row], np.linalg.matrix_power(mutant, power)[row])


@pytest.mark.parametrize("free", [[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]], ids=["all", "clamped"])
@pytest.mark.parametrize(("step_size", "temperature", "steps"), [(0.5, 2.0, 1), (0.3, 2.0, 3), (2.0, 1.3, 2)])
def test_exact_law(free, step_size, temperature, steps):
    """False alarm 1e-6; the mutant drops the reverse proposal probability."""
    _against(mixed(), free, step_size, temperature, steps, seed=7)


def test_sites_of_any_degree():
    """No neighbour, and more than one pass over the edges takes."""
    _against(hub(), np.ones(7), 0.7, 2.0, 1, seed=2)


def test_couplings_beyond_exp_follow_the_same_law():
    """At a tiny temperature exp(-|l|) ends below float32, and log q holds |l| itself."""
    graph = Graph(0.5 * mixed().couplings, 0.5 * mixed().field)
    _against(graph, np.ones(5), 0.5, 0.004, 2, seed=3)


def test_many_sites_keep_the_potential():
    """A ring of 300 sites, several groups of factors: u is that of x."""
    size = 300
    couplings = np.zeros((size, size))
    for site in range(size):
        couplings[site, (site + 1) % size] = couplings[(site + 1) % size, site] = 0.7 * (-1) ** (site % 3)
    graph = Graph(couplings, np.linspace(-1, 1, size))
    x = np.random.default_rng(0).integers(0, 2, (5, size)).astype(np.uint8)
    u, kept, kept_u = graph.potential(x), np.empty((10, 5, size), np.uint8), np.empty((10, 5))
    accepted = discrete_langevin.draws(x, u, *graph.csr, np.ones(size, np.uint8), 0.25, 2.0, np.uint64(4), 20, kept, kept_u)
    np.testing.assert_allclose(kept_u, [graph.potential(states) for states in kept], atol=rounding(graph))
    assert accepted.min() > 0 and accepted.max() < 200
