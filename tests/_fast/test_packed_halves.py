"""Two sites to a word: the exact transition probabilities, chunks of more than 16 sites, and `split` with `join`."""

import numpy as np
import pytest

from gibbsite._fast import packed, packed_halves

from .small_graphs import check, gibbs_matrix, index, uniform

START = np.array([1, 0, 1, 1, 0], np.uint8)


def _run(x, plan, levels, seed):
    rows = packed_halves.split(packed.pack(x))
    packed_halves.sweep(rows, *plan, levels, np.uint64(seed), 1)
    packed.unpack(packed_halves.join(rows), x)
    return x


def _law(graph, order, factor=2.0):
    matrix = np.eye(32)
    for site in order:
        matrix = matrix @ gibbs_matrix(graph, site, factor)
    return matrix[index(START[None])[0]]


@pytest.mark.parametrize(("coupling", "field"), [(0.4, 0.0), (0.7, -0.35)])
@pytest.mark.parametrize(
    ("order", "classes"), [([0, 2, 4, 1, 3], [0, 3, 5]), ([0, 2, 1], [0, 2, 3])], ids=["all", "clamped"]
)
def test_one_sweep_has_the_exact_law(coupling, field, order, classes):
    """False alarm 1e-6; the mutant has coupling factor 1.5 in place of 2."""
    graph = uniform(coupling, field)
    plan = packed.plan(graph.offsets, graph.neighbours, np.array(order, np.int32), np.array(classes), packed_halves.PAIR)
    x = _run(np.tile(START, (40_001, 1)), plan, packed.thresholds(coupling, field), seed=3)
    check(x, _law(graph, order), _law(graph, order, factor=1.5))


@pytest.mark.parametrize("sites", [10, 16, 21, 32, 100])
def test_free_spins_in_chunks_of_any_size(sites):
    """K = 0: marginals, neighbouring bits, and the two sites of one word (false alarm 1e-6 in all)."""
    from scipy import stats

    order = np.arange(sites, dtype=np.int32)
    plan = packed.plan(np.zeros(sites + 1, int), np.zeros(0, np.int32), order, np.array([0, sites]), packed_halves.PAIR)
    x = _run(np.zeros((6400, sites), np.uint8), plan, packed.thresholds(0.0, 0.3), seed=8)
    chance = 1 / (1 + np.exp(-0.6))
    assert all(stats.binomtest(int(column.sum()), len(column), chance).pvalue > 1e-9 for column in x.T)
    assert not stats.binomtest(int(x.sum()), x.size, 1 / (1 + np.exp(-0.55))).pvalue > 1e-9
    for left, right in ((x[:-1], x[1:]), (x[:, :-1], x[:, 1:]), (x[:, :-16], x[:, 16:])):
        if left.size:
            assert stats.binomtest(int((left & right).sum()), left.size, chance**2).pvalue > 1e-9


def test_a_uniform_torus_agrees_with_the_transition_of_the_other_layout():
    """The mean of neighbours' products after 20 sweeps of 6,400 chains, within 6 standard errors of `packed`'s."""
    from gibbsite.models.graph import compressed_rows, lattice_edges

    edges = lattice_edges((8, 8))
    offsets, neighbours, _ = (part.numpy() for part in compressed_rows(edges, 64))
    colour = np.add(*np.divmod(np.arange(64), 8)) % 2
    order = np.concatenate([np.flatnonzero(colour == c) for c in (0, 1)]).astype(np.int32)
    levels, x = packed.thresholds(0.3, 0.1), np.zeros((6400, 64), np.uint8)
    words, one, two = packed.pack(x), x.copy(), x.copy()
    packed.sweep(words, *packed.plan(offsets, neighbours, order, [0, 32, 64]), levels, np.uint64(1), 20)
    packed.unpack(words, one)
    rows = packed_halves.split(packed.pack(x))
    plan = packed.plan(offsets, neighbours, order, [0, 32, 64], packed_halves.PAIR)
    packed_halves.sweep(rows, *plan, levels, np.uint64(2), 20)
    packed.unpack(packed_halves.join(rows), two)
    a, b = edges.numpy().T
    products = [((2.0 * s[:, a] - 1) * (2.0 * s[:, b] - 1)).mean(1) for s in (one, two)]
    gap = abs(products[0].mean() - products[1].mean())
    error = np.sqrt(sum(p.var() / len(p) for p in products))
    assert gap < 6 * error and error < 0.005


def test_split_and_join_are_inverse():
    words = np.random.default_rng(0).integers(0, 2**63, (3, 7), dtype=np.uint64)
    assert np.array_equal(packed_halves.join(packed_halves.split(words)), words)
    first = packed_halves.split(words)[:1]
    assert np.array_equal(packed_halves.join(first), words[:1] & np.uint64(0xFFFFFFFF))
