"""The best paths and label sequences of graphs against all of them, written out."""

import math

import pytest
import torch

from gibbsite.exact import best_paths, compose, ctc_topology, decode, forward, semirings

from .graphs import bigram, paths, random_graph, total

LENGTHS = torch.tensor([4, 0, 3])


def emissions(labels, *, batch=3, frames=4, seed=9):
    return torch.randn(batch, frames, labels, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def ranked(graph, e, frames):
    """All paths as (score, labels written), best first."""
    found = [(float(w + sum(e[t, k] for t, k in enumerate(read))), out) for w, read, out in paths(graph, frames)]
    return sorted(found, reverse=True)


@pytest.mark.parametrize("own", [False, True], ids=["shared", "one each"])
@pytest.mark.parametrize("n", [1, 3, 100])
def test_the_best_paths_are_those_of_all(n, own, device):
    graphs = [random_graph(3, 7, 3, seed=seed) for seed in range(3 if own else 1)]
    e = emissions(3)
    found = best_paths([g.to(device) for g in graphs] if own else graphs[0].to(device), e.to(device), LENGTHS, n)
    for b, frames in enumerate(LENGTHS.tolist()):
        graph = graphs[b if own else 0]
        want = [score for score, _ in ranked(graph, e[b], frames)][:n]
        assert found.score[b, : len(want)].tolist() == pytest.approx(want, abs=1e-12)
        assert (found.score[b, len(want) :] == -torch.inf).all()
        assert (found.arcs[b, :, frames:] == -1).all() and (found.arcs[b, len(want) :] == -1).all()
        before = sum(g.arcs for g in graphs[:b]) if own else 0
        for score, row in zip(want, found.arcs[b, :, :frames] - before):  # each is a path, and has its score
            value = e[b, torch.arange(frames), graph.label[row]].sum() + graph.weight[row].sum()
            assert (graph.target[row[:-1]] == graph.source[row[1:]]).all()
            if frames:
                value += graph.start[graph.source[row[0]]] + graph.end[graph.target[row[-1]]]
                assert float(value) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1, 4, 500])
def test_decoded_sequences_are_the_best_of_all_and_have_their_exact_probabilities(n, seed, device):
    graph = compose(ctc_topology(3), bigram([1, 2], seed=seed)[0])
    e = emissions(3, seed=seed)
    lists = decode(graph.to(device), e.to(device), LENGTHS, n)
    assert [y.labels for y in lists[1]] == [()] and lists[1][0].log_p == pytest.approx(0, abs=1e-12)
    for b in (0, 2):
        frames, best = int(LENGTHS[b]), {}
        for score, written in ranked(graph, e[b], frames):
            best.setdefault(written, score)
        want = dict(list(best.items())[:n])  # the n sequences of the best paths
        assert {y.labels: y.score for y in lists[b]} == pytest.approx(want, abs=1e-12)
        for y in lists[b]:
            exact = total(graph, e[b], frames, y.labels) - total(graph, e[b], frames)
            assert y.log_p == pytest.approx(float(exact), abs=1e-12)
        assert [y.log_p for y in lists[b]] == sorted((y.log_p for y in lists[b]), reverse=True)
        if n == 500:
            assert sum(math.exp(y.log_p) for y in lists[b]) == pytest.approx(1, abs=1e-12)


def test_paths_alone_would_repeat_one_sequence():
    """The mutant of distinct sequences: the four best paths write fewer than four."""
    graph = compose(ctc_topology(3), bigram([1, 2], seed=0)[0])
    arcs = best_paths(graph, emissions(3), LENGTHS, 4).arcs[0]
    written = {tuple(k for k in graph.output[row].tolist() if k >= 0) for row in arcs}
    assert len(written) < 4 == len(decode(graph, emissions(3), LENGTHS, 4)[0])


def test_the_best_path_is_no_better_than_all(device):
    graph, e = compose(ctc_topology(3), bigram([1, 2], seed=0)[0]).to(device), emissions(3).to(device)
    assert (best_paths(graph, e, LENGTHS).score[:, 0] <= forward(graph, e, LENGTHS).cpu()).all()


def test_no_path_of_that_length_gives_an_empty_list():
    from gibbsite.exact import linear

    assert decode(linear([0, 1]), emissions(2), torch.tensor([2, 1, 4]), 2)[1:] == [[], []]


@pytest.mark.parametrize("own", [False, True], ids=["shared", "one each"])
def test_totals_in_other_semirings(own, device):
    """Max and KBest give the scores of the best paths; the gradient of Max is the best path; Sample sums as Log does."""
    graphs = [random_graph(3, 7, 3, seed=seed) for seed in range(3 if own else 1)]
    given = [g.to(device) for g in graphs] if own else graphs[0].to(device)
    e = emissions(3).to(device).requires_grad_()
    best = best_paths(given, e, LENGTHS, 3)
    z = forward(given, e, LENGTHS, semirings.Max())
    assert torch.allclose(z.detach().cpu(), best.score[:, 0])
    assert torch.allclose(forward(given, e, LENGTHS, semirings.KBest(3)).detach().cpu(), best.score.T)
    (slope,) = torch.autograd.grad(z.sum(), e)
    label = torch.cat([g.label for g in graphs])[best.arcs[:, 0]]
    want = torch.nn.functional.one_hot(label, 3) * (best.arcs[:, 0] >= 0)[..., None]
    assert torch.equal(slope.cpu(), want.double())
    drawn = forward(given, e, LENGTHS, semirings.Sample(torch.Generator(device).manual_seed(0)))
    assert torch.allclose(drawn, forward(given, e, LENGTHS))
    (slope,) = torch.autograd.grad(drawn.sum(), e)
    assert torch.equal(slope.sum(2).cpu(), (torch.arange(4) < LENGTHS[:, None]).double())  # one label a frame
    assert not torch.allclose(z, drawn)  # the mutant: one semiring for another
