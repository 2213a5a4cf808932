"""Weighted automata: sums over paths, their derivatives, composition and the removal of silent arcs, against enumeration."""

import pytest
import torch

import gibbsite as gb
from gibbsite.exact import EPSILON, Graph, compose, forward, remove_epsilon, trim

from .graphs import paths, random_graph, total

LENGTHS = torch.tensor([4, 0, 3])


def emissions(labels, *, seed=9, batch=3, frames=4):
    x = torch.randn(batch, frames, labels, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x.requires_grad_()


def learnt(graph):
    """The same graph with weights that ask for gradients."""
    fields = list(graph.tensors())
    fields[3:6] = [x.detach().clone().requires_grad_() for x in fields[3:6]]
    return Graph(*fields), fields[3:6]


@pytest.mark.parametrize("own", [False, True], ids=["shared", "one each"])
def test_sums_over_paths_and_their_derivatives(own, device):
    graphs, weights = zip(*(learnt(random_graph(3, 7, 3, seed=seed)) for seed in range(3 if own else 1)))
    e, w = emissions(3), [x for each in weights for x in each]
    slope = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    given = [g.to(device) for g in graphs] if own else graphs[0].to(device)
    got = forward(given, e.to(device), LENGTHS).cpu()
    want = torch.stack([total(graphs[b if own else 0], e[b], int(n)) for b, n in enumerate(LENGTHS)])
    assert torch.allclose(got, want, rtol=0, atol=1e-12)
    found, expected = (torch.autograd.grad(x @ slope, [e, *w], materialize_grads=True) for x in (got, want))
    for a, b in zip(found, expected):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)
    wrong = torch.autograd.grad(forward(given, e.to(device), LENGTHS.clamp(max=3)).cpu() @ slope, e)[0]
    assert not torch.allclose(wrong, expected[0], atol=1e-3)  # the mutant: one frame less


def test_without_frames_the_ends_still_have_gradients(device):
    graph, (_, start, end) = learnt(random_graph(3, 7, 3, seed=0))
    z = forward(graph.to(device), torch.zeros(2, 0, 3, device=device), torch.tensor([0, 0]))
    found = torch.autograd.grad(z.sum().cpu(), [start, end])
    expected = 2 * (start + end).softmax(0)
    assert all(torch.allclose(x, expected, rtol=0, atol=1e-9) and x.any() for x in found)


@pytest.mark.parametrize("own", [False, True], ids=["shared", "one each"])
def test_gradients_are_differentiable(own, device):
    graphs, weights = zip(*(learnt(random_graph(3, 7, 3, seed=seed)) for seed in range(3 if own else 1)))
    e, w = emissions(3), [x for each in weights for x in each]
    given = [g.to(device) for g in graphs] if own else graphs[0].to(device)
    beyond = (torch.arange(4) >= LENGTHS[:, None])[..., None]
    read = e.masked_fill(beyond, torch.nan).to(device)
    got = forward(given, read, LENGTHS).cpu()
    want = torch.stack([total(graphs[b if own else 0], e[b], int(n)) for b, n in enumerate(LENGTHS)])
    squares = []
    for z in (got, want):
        first = torch.autograd.grad(z.sum(), [e, *w], create_graph=True, materialize_grads=True)
        squares.append(torch.autograd.grad(sum(x.square().sum() for x in first), [e, *w], materialize_grads=True))
    for a, b in zip(*squares):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)
    assert squares[0][0].any()  # the mutant: posteriors taken as constants


def test_a_length_that_no_path_has_weighs_nothing_and_has_no_gradient(device):
    line = gb.exact.linear([0, 1]).to(device)
    e = torch.zeros(3, 4, 2, device=device, requires_grad=True)
    z = forward(line, e, torch.tensor([2, 1, 4]))
    assert z.tolist() == [0.0, -torch.inf, -torch.inf]
    (slope,) = torch.autograd.grad(z.sum(), e)
    assert slope[0, :2].tolist() == [[1.0, 0.0], [0.0, 1.0]] and slope[0, 2:].abs().sum() == 0
    assert slope[1:].abs().sum() == 0  # and not NaN


def test_what_lies_beyond_a_length_is_ignored(device):
    graph, e = random_graph(3, 7, 3, seed=0).to(device), emissions(3).detach()
    e[1:, 3:], e[1] = torch.nan, torch.nan
    e = e.to(device).requires_grad_()
    z = forward(graph, e, LENGTHS)
    (slope,) = torch.autograd.grad(z.sum(), e)
    assert z.isfinite().all() and slope[0].all() and not slope[1].any() and not slope[2, 3:].any()


def test_forbidden_labels_have_gradient_zero(device):
    graph, e = random_graph(3, 9, 3, seed=1), emissions(3).detach()
    e[:, :, 1] = -torch.inf
    e = e.requires_grad_()
    got = forward(graph.to(device), e.to(device), LENGTHS).cpu()
    want = torch.stack([total(graph, e[b], int(n)) for b, n in enumerate(LENGTHS)])
    assert torch.allclose(got, want, rtol=0, atol=1e-12)
    (slope,) = torch.autograd.grad(got.sum(), e)
    assert slope.isfinite().all() and not slope[:, :, 1].any()


@pytest.mark.parametrize("seed", range(4))
def test_composition_holds_each_pair_of_paths_once(seed):
    first, second = random_graph(3, 6, 2, seed=seed), random_graph(3, 6, 2, seed=seed + 10, silent=2)
    found = {}
    for weight, read, wrote in (p for frames in (0, 1, 2, 3) for p in paths(compose(first, second), frames)):
        found.setdefault((read, wrote), []).append(float(weight))
    expected = {}
    through = {}
    for frames in range(4):
        for weight, read, wrote in paths(second, frames):
            through.setdefault(read, []).append((float(weight), wrote))
    for frames in range(4):
        for weight, read, wrote in paths(first, frames):
            for more, out in through.get(wrote, []):
                expected.setdefault((read, out), []).append(float(weight) + more)
    assert found.keys() == expected.keys() and len(found) > 5
    for key, weights in expected.items():
        assert sorted(found[key]) == pytest.approx(sorted(weights), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_removing_silent_arcs_keeps_every_sum(seed, device):
    graph, weights = learnt(random_graph(4, 9, 2, seed=seed, silent=4))
    e = emissions(2)
    removed = remove_epsilon(graph)
    assert graph.reads_nothing and not removed.reads_nothing
    got = forward(removed.to(device), e.to(device), LENGTHS).cpu()
    want = torch.stack([total(graph, e[b], int(n)) for b, n in enumerate(LENGTHS)])
    assert torch.allclose(got, want, rtol=0, atol=1e-12)
    for a, b in zip(torch.autograd.grad(got.sum(), weights), torch.autograd.grad(want.sum(), weights)):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)
    loud = graph.label != EPSILON  # the mutant: silent arcs left out
    mutant = Graph(*(x[loud] for x in graph.tensors()[:4]), graph.start, graph.end, graph.output[loud])
    assert not torch.allclose(forward(mutant, e, LENGTHS), want, atol=1e-3)


def test_trimming_leaves_what_lies_on_a_path():
    arcs = [(0, 1, 0, 0.0), (1, 1, 1, -1.0), (0, 2, 0, 0.0), (3, 1, 0, 0.0), (1, 4, 0, -torch.inf)]
    graph = Graph.of(arcs, end={1: 0.5, 4: 0.0})
    kept = trim(graph)
    assert (kept.states, kept.arcs) == (2, 2) and trim(kept) is kept
    e = emissions(2)
    assert torch.allclose(forward(kept, e, LENGTHS), forward(graph, e, LENGTHS))


def test_half_precision_is_read_exactly(device):
    graph, e = random_graph(3, 9, 3, seed=2).to(device), emissions(3).detach().half().to(device).requires_grad_()
    z = forward(graph, e, LENGTHS)
    assert torch.equal(z, forward(graph, e.double(), LENGTHS))
    assert torch.autograd.grad(z.sum(), e)[0].dtype == torch.float16
