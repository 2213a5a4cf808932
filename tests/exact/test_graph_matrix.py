"""Scaled probabilities by sparse products give what logarithms give, and leave to these what underflow could change."""

import pytest
import torch

import gibbsite as gb
from gibbsite.exact import Graph, graph_matrix, graph_torch

T, COLUMNS = 7, 5


def random_graph(seed, states=6, arcs=20, spread=3.0):
    """Arcs between any states, several of one target and label among them; some states cannot begin or end."""
    g = torch.Generator().manual_seed(seed)
    source, target, label = (torch.randint(n, (arcs,), generator=g) for n in (states, states, COLUMNS - 1))
    weight, start, end = (spread * torch.randn(n, generator=g, dtype=torch.float64) for n in (arcs, states, states))
    start[2:4], end[1] = -torch.inf, -torch.inf
    return Graph(source, target, label, weight, start, end, label)


def emissions(seed, device, spread=3.0):
    x = spread * torch.randn(3, T, COLUMNS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[1, 2, :2] = -torch.inf
    return x.to(device), torch.tensor([T, 4, 1])


def both(graph, x, lengths, **options):
    scaled = graph_matrix.log_partition(graph, x, lengths, posteriors=True, weights=False, **options)
    return scaled, graph_torch.log_partition(graph, x, lengths, posteriors=True)


@pytest.mark.parametrize("seed", range(6))
def test_scaled_sums_are_those_of_logarithms(seed, device):
    graph, (x, lengths) = random_graph(seed).to(device).batch, emissions(seed, device)
    (z, counts), (expected, known) = both(graph, x, lengths)
    assert torch.allclose(z, expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(counts.emissions, known.emissions, rtol=1e-10, atol=1e-12)
    assert not counts.emissions[1, 4:].any() and not counts.emissions[..., -1].any()
    assert graph_matrix._scaled(graph, x, lengths) is not None
    shifted = graph_matrix._scaled(graph, x + 1, lengths)
    assert torch.allclose(shifted[0], z + lengths.to(device)) and not torch.allclose(shifted[0], z)


def test_gradients_are_posteriors(device):
    graph, (x, lengths) = random_graph(0).to(device), emissions(1, device)
    x = x.masked_fill(x == -torch.inf, -3).requires_grad_(True)
    slope = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, device=device)
    found = torch.autograd.grad((slope * gb.exact.forward(graph, x, lengths)).sum(), x)[0]
    known = graph_torch.log_partition(graph.batch, x.detach(), lengths, posteriors=True)[1].emissions
    assert torch.allclose(found, slope[:, None, None] * known, atol=1e-12)


def underflowing(device):
    """The paths that can end weigh less than the smallest normal number beside the one that cannot."""
    graph = Graph.of([(0, 0, 0, 0.0), (0, 1, 1, 0.0), (1, 2, 1, 0.0)], end={2: 0.0})
    x = torch.zeros(1, 3, 2, dtype=torch.float64)
    x[0, :, 1] = -372.45
    return graph.to(device).batch, x.to(device), torch.tensor([3])


def test_underflow_is_seen_and_logarithms_are_taken(device):
    graph, x, lengths = underflowing(device)
    assert graph_matrix._scaled(graph, x, lengths) is None
    (z, counts), (expected, known) = both(graph, x, lengths)
    assert float(z) == float(expected) == pytest.approx(-744.9) and torch.equal(counts.emissions, known.emissions)


def test_a_path_that_underflows_from_both_ends_is_not_lost(device):
    """Far behind after the first frame and before the last, far ahead between: alpha beta alone would not miss it."""
    graph = Graph.of([(0, 1, 0, 0.0), (1, 1, 0, 0.0), (0, 2, 1, 0.0), (2, 2, 1, 0.0)], end={1: 0.0, 2: 0.0})
    x = torch.zeros(1, 7, 2, dtype=torch.float64)
    x[0, [0, -1], 1], x[0, 1:-1, 0] = -800.0, -600.0  # the first path weighs -3000, the second -1600
    graph, x, lengths = graph.to(device).batch, x.to(device), torch.tensor([7])
    assert graph_matrix._scaled(graph, x, lengths) is None
    (z, counts), _ = both(graph, x, lengths)
    assert float(z) == pytest.approx(-1600.0) and counts.emissions[0, :, 1].tolist() == [1.0] * 7


def test_mutant_underflow_that_is_not_seen(device, monkeypatch):
    graph, x, lengths = underflowing(device)
    monkeypatch.setattr(graph_matrix, "_LOST", 1e300)  # a bound that nothing exceeds
    assert abs(float(graph_matrix._scaled(graph, x, lengths)[0]) + 744.9) > 0.1


def test_no_path_and_no_frame_are_left_to_logarithms(device):
    graph, (x, _) = random_graph(0).to(device).batch, emissions(0, device)
    lengths = torch.tensor([0, 3, 2])
    for case in (x, torch.full_like(x, -torch.inf), x[:, :0]):
        shorter = lengths.clamp(max=case.shape[1])
        (z, counts), (expected, known) = both(graph, case, shorter)
        assert torch.allclose(z, expected) and torch.allclose(counts.emissions, known.emissions)


def test_a_graph_of_each_utterance_and_gradients_of_weights_are_left_to_logarithms(device):
    graph, (x, lengths) = random_graph(3).to(device), emissions(2, device)
    own = gb.exact.GraphBatch.of([graph] * 3)
    found = graph_matrix.log_partition(own, x, lengths, posteriors=True, weights=False)
    shared = graph_matrix.log_partition(graph.batch, x, lengths, posteriors=True, weights=True)
    expected = graph_torch.log_partition(graph.batch, x, lengths, posteriors=True)
    assert torch.allclose(found[0], expected[0]) and torch.equal(shared[1].weight, expected[1].weight)
    assert graph_matrix.log_partition(graph.batch, x, lengths, posteriors=False, weights=False)[1] is None


@pytest.mark.parametrize("name", ["weight", "start", "end"])
def test_weights_changed_in_place_are_seen(name, device):
    given, (x, lengths) = random_graph(0), emissions(0, device)
    graph = given.to(device)
    before = both(graph.batch, x, lengths)[0][0]
    getattr(graph, name).sub_(1.0)
    (after, _), (expected, _) = both(graph.batch, x, lengths)
    assert torch.allclose(after, expected) and not torch.allclose(after, before)
    getattr(given, name).sub_(2.0)
    assert torch.equal(getattr(given.to(device), name).cpu(), getattr(given, name))


def test_a_graph_without_arcs_reads_nothing(device):
    graph = gb.exact.linear([]).to(device)
    x, lengths = torch.zeros(2, 1, 3, device=device), torch.tensor([0, 1])
    z, _ = graph_matrix.log_partition(graph.batch, x, lengths, posteriors=True, weights=False)
    assert z.tolist() == [0.0, -torch.inf]
