"""Bit-packed Gibbs against the exact transition probabilities; packing; refusals."""

import numpy as np
import pytest

from gibbsite._fast import packed

from .small_graphs import check, gibbs_matrix, index, uniform

CHAINS = 40_001
ORDER, CLASSES = [0, 2, 4, 1, 3], [0, 3, 5]


def _sweep(graph, coupling, field, order, classes, seed, parallel=False):
    x = np.tile(np.array([1, 0, 1, 1, 0], np.uint8), (CHAINS, 1))
    plan = packed.plan(graph.offsets, graph.neighbours, np.array(order, np.int32), np.array(classes))
    bits = packed.pack(x)
    run = packed.sweep_parallel if parallel else packed.sweep
    run(bits, *plan, packed.thresholds(coupling, field), np.uint64(seed), 1)
    packed.unpack(bits, x)
    return x


def _law(graph, order, factor=2.0):
    matrix = np.eye(32)
    for site in order:
        matrix = matrix @ gibbs_matrix(graph, site, factor)
    return matrix[index(np.array([[1, 0, 1, 1, 0]]))[0]]


@pytest.mark.parametrize(("coupling", "field"), [(0.4, 0.0), (0.7, -0.35), (-0.5, 0.2)])
@pytest.mark.parametrize(("order", "classes"), [(ORDER, CLASSES), ([0, 2, 1], [0, 2, 3])], ids=["all", "clamped"])
def test_one_sweep_has_the_exact_law(coupling, field, order, classes):
    """False alarm 1e-6; the mutant has coupling factor 1.5 in place of 2."""
    graph = uniform(coupling, field)
    x = _sweep(graph, coupling, field, order, classes, seed=3)
    check(x, _law(graph, order), _law(graph, order, factor=1.5))


def test_degree_eight():
    """A star of eight leaves: the centre's law for every count (false alarm 1e-6 over the 9 counts)."""
    from scipy import stats

    leaves = 8
    offsets = np.concatenate([[0], leaves + np.arange(leaves + 1)])
    neighbours = np.concatenate([np.arange(1, 9), np.zeros(leaves)]).astype(np.int32)
    plan = packed.plan(offsets, neighbours, np.array([0], np.int32), np.array([0, 1]))
    for count in range(leaves + 1):
        x = np.zeros((20000, leaves + 1), np.uint8)
        x[:, 1 : count + 1] = 1
        bits = packed.pack(x)
        packed.sweep(bits, *plan, packed.thresholds(0.2, 0.1), np.uint64(count), 1)
        packed.unpack(bits, x)
        chance = 1 / (1 + np.exp(-2 * (0.2 * (2 * count - leaves) + 0.1)))
        assert stats.binomtest(int(x[:, 0].sum()), 20000, chance).pvalue > 1e-6 / 9
        assert np.array_equal(x[:, 1:].sum(1), np.full(20000, count))


def test_more_sites_than_a_chunk_and_independent_bits():
    """Free spins (K = 0) on 100 sites: marginals and neighbouring bits' correlation (false alarm 1e-6 each)."""
    from scipy import stats

    plan = packed.plan(np.zeros(101, int), np.zeros(0, np.int32), np.arange(100, dtype=np.int32), np.array([0, 100]))
    x = np.zeros((6400, 100), np.uint8)
    bits = packed.pack(x)
    packed.sweep(bits, *plan, packed.thresholds(0.0, 0.3), np.uint64(8), 1)
    packed.unpack(bits, x)
    chance = 1 / (1 + np.exp(-0.6))
    assert stats.binomtest(int(x.sum()), x.size, chance).pvalue > 1e-6
    for left, right in ((x[:-1], x[1:]), (x[:, :-1], x[:, 1:]), (x[:, :-16], x[:, 16:])):
        both = int((left & right).sum())
        assert stats.binomtest(both, left.size, chance**2).pvalue > 1e-9


def test_pack_is_a_bijection():
    x = np.random.default_rng(0).integers(0, 2, (131, 7)).astype(np.uint8)
    back = np.empty_like(x)
    packed.unpack(packed.pack(x), back)
    assert np.array_equal(x, back)
    assert packed.pack(x).shape == (3, 7)


def test_parallel_gives_the_same_bits():
    graph = uniform(0.4, 0.1)
    one = _sweep(graph, 0.4, 0.1, ORDER, CLASSES, seed=5)
    assert np.array_equal(one, _sweep(graph, 0.4, 0.1, ORDER, CLASSES, seed=5, parallel=True))


def test_refusals():
    graph = uniform(0.4, 0.0)
    with pytest.raises(ValueError, match="neighbour in its own class"):
        packed.plan(graph.offsets, graph.neighbours, np.arange(5, dtype=np.int32), np.array([0, 5]))
    with pytest.raises(ValueError, match="repeated"):
        packed.plan(graph.offsets, graph.neighbours, np.array([0, 0], np.int32), np.array([0, 2]))
    with pytest.raises(ValueError, match="finite"):
        packed.thresholds(np.nan, 0.0)
