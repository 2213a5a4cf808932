"""OpenFst's text: what is written is read again, and its weights are -log."""

import torch

from gibbsite.exact import EPSILON, Graph, forward, from_openfst, remove_epsilon, to_openfst

from .graphs import random_graph

TEXT = """0 1 3 0 0.5
0 2 0 4
1 2 1 1 -2
2 2 2 2 Infinity

2
1 1.5
"""


def test_a_text_of_fstprint_is_read():
    graph = from_openfst(TEXT)
    assert graph.source.tolist() == [0, 0, 1, 2] and graph.target.tolist() == [1, 2, 2, 2]
    assert graph.label.tolist() == [2, EPSILON, 0, 1] and graph.output.tolist() == [EPSILON, 3, 0, 1]
    assert graph.weight.tolist() == [-0.5, 0.0, 2.0, -torch.inf]
    assert graph.start.tolist() == [0, -torch.inf, -torch.inf] and graph.end.tolist() == [-torch.inf, -1.5, 0]
    again = from_openfst(to_openfst(graph))  # without the arc that nothing can take
    assert (again.states, again.arcs) == (3, 3) and again.weight.tolist() == [-0.5, 0.0, 2.0]


def test_a_graph_of_several_starts_keeps_every_sum():
    graph = random_graph(4, 9, 3, seed=0)
    graph = Graph(*graph.tensors()[:6], graph.output)
    again = from_openfst(to_openfst(graph))
    assert again.states == graph.states + 1 and int((again.start > -torch.inf).sum()) == 1
    e = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([4, 2])
    want = forward(graph, e, lengths)
    assert torch.allclose(forward(remove_epsilon(again), e, lengths), want, rtol=0, atol=1e-12)
    negated = Graph(*again.tensors()[:3], -again.weight, *again.tensors()[4:])  # the mutant: log for -log
    assert not torch.allclose(forward(remove_epsilon(negated), e, lengths), want, atol=1e-3)


def test_one_start_without_a_weight_stays_as_it_is():
    graph = Graph.of([(0, 1, 0, -0.1), (2, 0, 1, 1 / 3), (1, 2, 2, -7.0, EPSILON)], start=2, end={1: -0.7, 2: 0.0})
    again = from_openfst(to_openfst(graph))
    order = again.source.argsort(stable=True), graph.source.argsort(stable=True)
    for a, b in zip(again.tensors()[:4], graph.tensors()[:4]):
        assert torch.equal(a[order[0]], b[order[1]])
    assert torch.equal(again.start, graph.start) and torch.equal(again.end, graph.end)


def test_a_start_that_can_only_end_is_the_first_line():
    assert to_openfst(Graph.of([(1, 0, 0, 0.0)], start=0, end={0: -1.0})).splitlines() == ["0\t1.0", "1\t0\t1\t1\t0.0"]
