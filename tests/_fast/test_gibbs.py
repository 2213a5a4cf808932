"""`gibbs.sweep` and `gibbs.random_scan` against the exact transition probabilities, with mutants."""

import numpy as np
import pytest

from gibbsite._fast import gibbs

from .small_graphs import Graph, check, gibbs_matrix, hub, index, mixed

CHAINS = 40_007  # not a multiple of 32: the remainder lanes are tested too


def _product(graph, order, factor=2.0):
    matrix = np.eye(2**graph.sites)
    for site in order:
        matrix = matrix @ gibbs_matrix(graph, site, factor)
    return matrix


def _start(graph):
    start = np.array([1, 0, 1, 1, 0], np.uint8)
    return np.tile(start, (CHAINS, 1)), index(start[None])[0]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 1, 3]], ids=["all", "clamped"])
def test_one_sweep_has_the_exact_law(order):
    """False alarm 1e-6; the mutant has coupling factor 1 in place of 2."""
    graph = mixed()
    x, row = _start(graph)
    gibbs.sweep(x, *graph.csr, np.array(order, np.int32), np.uint64(1), 1)
    check(x, _product(graph, order)[row], _product(graph, order, factor=1.0)[row])


def test_sites_with_many_neighbours_or_none_have_the_exact_law():
    """One sweep on the hub, from its first site to the lone one (false alarm 1e-6); the mutant has coupling factor 1.5."""
    graph, order = hub(), [3, 0, 6, 2]
    x = np.tile(np.array([1, 0, 1, 1, 0, 1, 0], np.uint8), (CHAINS, 1))
    row = index(x[:1])[0]
    gibbs.sweep(x, *graph.csr, np.array(order, np.int32), np.uint64(3), 1)
    check(x, _product(graph, order)[row], _product(graph, order, factor=1.5)[row])


def test_updates_of_the_same_or_of_coupled_sites_keep_their_order():
    """Whatever else is moved, so that the kernel is the same; a sort by site is the mutant."""
    rng, size = np.random.default_rng(0), 40
    pairs = np.triu(rng.random((size, size)) < 0.1, 1)
    graph = Graph(pairs + pairs.T, np.zeros(size))
    order = rng.integers(size, size=200).astype(np.int32)

    def kept(new):
        pairs = [(i, j) for i in range(size) for j in range(size) if graph.couplings[i, j] or i == j]
        return all(np.array_equal(order[np.isin(order, pair)], new[np.isin(new, pair)]) for pair in pairs)

    new = gibbs._side_by_side(order, graph.offsets, graph.neighbours)
    assert kept(new) and not kept(np.sort(order))
    assert not np.array_equal(new, order)


def test_every_kept_state_of_one_call_has_the_exact_law():
    """Both of two kept states, a sweep each (false alarm 1e-6); the mutant is the law of the other."""
    graph, order = mixed(), [2, 0, 4, 3, 1]
    x, row = _start(graph)
    kept = np.empty((2, *x.shape), np.uint8)
    gibbs.sweep_draws(x, *graph.csr, np.array(order, np.int32), np.uint64(4), 1, kept)
    assert np.array_equal(kept[1], x)
    once = _product(graph, order)
    for draw in (0, 1):
        check(kept[draw], np.linalg.matrix_power(once, draw + 1)[row], np.linalg.matrix_power(once, 2 - draw)[row])


def test_two_sweeps_and_the_last_lanes():
    """The chains of the last, partly filled block follow the law too (false alarm 1e-6)."""
    graph, order = mixed(), [2, 0, 4, 3, 1]
    drawn = []
    for seed in range(3000):
        x = _start(graph)[0][:7]
        gibbs.sweep(x, *graph.csr, np.array(order, np.int32), np.uint64(seed), 2)
        drawn.append(x)
    row = _start(graph)[1]
    law = np.linalg.matrix_power(_product(graph, order), 2)[row]
    check(np.concatenate(drawn), law, _product(graph, order, factor=1.5)[row])


def test_parallel_gives_the_same_bits():
    graph, order = mixed(), np.arange(5, dtype=np.int32)
    one, two = _start(graph)[0][:100], _start(graph)[0][:100]
    gibbs.sweep(one, *graph.csr, order, np.uint64(9), 3)
    gibbs.sweep_parallel(two, *graph.csr, order, np.uint64(9), 3)
    assert np.array_equal(one, two)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 1, 3]], ids=["all", "clamped"])
def test_random_scan_has_the_exact_law(order):
    """Two steps from a fixed start (false alarm 1e-6); the mutant has coupling factor 1."""
    graph = mixed()
    x, row = _start(graph)
    gibbs.random_scan(x, *graph.csr, np.array(order, np.int32), np.uint64(2), 2)
    step = sum(gibbs_matrix(graph, site) for site in order) / len(order)
    mutant = sum(gibbs_matrix(graph, site, factor=1.0) for site in order) / len(order)
    check(x, (step @ step)[row], (mutant @ mutant)[row])


def test_strong_fields_are_certain_and_rare_events_are_resolved():
    """P = sigmoid(-2 * 8) = 1.1e-7 is below the 2^-24 grid of a 24-bit uniform on one side: it must still occur."""
    x = np.ones((32, 1000), np.uint8)
    offsets, none = np.zeros(1001, np.int32), np.zeros(0, np.int32)
    field = np.full(1000, 7.0, np.float32)
    order = np.arange(1000, dtype=np.int32)
    seen = 0
    for seed in range(20):
        for _ in range(20):
            gibbs.sweep(x, offsets, none, none.astype(np.float32), field, order, np.uint64(seed * 100 + _), 1)
            seen += int((x == 0).sum())
    expected = 20 * 20 * 32000 / (1 + np.exp(14.0))
    assert abs(seen - expected) < 5.5 * np.sqrt(expected) + 5
    field[:] = 1e4
    gibbs.sweep(x, offsets, none, none.astype(np.float32), field, order, np.uint64(0), 5)
    assert x.all()
