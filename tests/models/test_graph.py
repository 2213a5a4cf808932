"""Lattices, edge checks, colour classes and neighbour tables."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.models.graph import check_edges, check_independent, colour_classes, lattice_edges, neighbour_table


@pytest.mark.parametrize("sides", [(4,), (3, 4), (2, 2), (2, 3), (1, 5), (3, 3, 3)])
@pytest.mark.parametrize("periodic", [True, False])
def test_lattice_edges_are_the_pairs_one_step_apart(sides, periodic):
    place = torch.stack([p.flatten() for p in torch.meshgrid(*[torch.arange(s) for s in sides], indexing="ij")], -1)
    size = torch.tensor(sides)
    wanted = set()
    for i in range(len(place)):
        for j in range(i):
            gap = (place[i] - place[j]).abs()
            gap = torch.minimum(gap, size - gap) if periodic else gap
            if gap.sum() == 1:
                wanted.add((j, i))
    edges = lattice_edges(sides, periodic)
    assert len(edges) == len(wanted)
    assert {tuple(e) for e in edges.tolist()} == wanted


def test_lattice_refuses_an_empty_side():
    with pytest.raises(ValueError, match="positive sizes"):
        lattice_edges((3, 0))


def test_check_edges_orders_pairs():
    assert check_edges(torch.tensor([[2, 0], [1, 2]]), 3).tolist() == [[0, 2], [1, 2]]


@pytest.mark.parametrize(
    ("edges", "message"),
    [([[0, 3]], "sites in"), ([[-1, 1]], "sites in"), ([[1, 1]], "itself"), ([[0, 1], [1, 0]], "each pair once")],
)
def test_check_edges_refuses(edges, message):
    with pytest.raises(ValueError, match=message):
        check_edges(torch.tensor(edges), 3)


graphs = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]))
    )
)


@given(graphs)
@settings(deadline=None)
def test_colour_classes_partition_into_independent_sets(graph):
    sites, pairs = graph
    edges = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2)
    classes = colour_classes(edges, sites)
    assert sorted(torch.cat(classes).tolist()) == list(range(sites))
    check_independent([c.tolist() for c in classes], edges, sites)


@given(graphs)
@settings(deadline=None)
def test_neighbour_table_lists_each_neighbour_with_its_edge(graph):
    sites, pairs = graph
    edges = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2)
    neighbour, edge = neighbour_table(edges, sites)
    for i in range(sites):
        found = {(int(j), int(e)) for j, e in zip(neighbour[i], edge[i], strict=True) if j < sites}
        assert found == {(sum(p) - i, e) for e, p in enumerate(sorted(pairs)) if i in p}
        assert bool((edge[i][neighbour[i] == sites] == len(edges)).all())


def test_an_even_lattice_has_two_classes():
    assert len(colour_classes(lattice_edges((6, 6)), 36)) == 2


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([[0, 2], [1]], "site 3 is in none"),
        ([[0, 2], [1, 3, 1]], "block 1 breaks"),
        ([[0, 2], [1, 3, 0]], "block 1 breaks"),
        ([[0, 2], [1, 4]], "block 1 breaks"),
        ([[0, 2], [], [1, 3]], "block 1 breaks"),
        ([[0, 1], [2, 3]], "sites 0 and 1 are coupled and both in block 0"),
        ([[0, 3], [1], [2]], "sites 0 and 3 are coupled"),
    ],
)
def test_check_independent_names_the_fault(blocks, message):
    with pytest.raises(ValueError, match=message):
        check_independent(blocks, lattice_edges((4,)), 4)
