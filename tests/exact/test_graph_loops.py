"""The compiled loops give what torch gives, and know when scaled numbers would not do."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gibbsite._fast import graph_scaled
from gibbsite.exact import Graph, GraphBatch, compose, ctc_topology, graph_loops, graph_torch, linear
from gibbsite.exact.graph_plan import layout
from gibbsite.exact.graph_plan import linear as linear_weights

from .graphs import bigram, random_graph

LENGTHS = torch.tensor([9, 0, 12, 5, 12, 1, 7, 3, 12, 4])


def emissions(labels, *, scale=1.0, dtype=torch.float64):
    x = torch.randn(10, 12, labels, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return (scale * x).to(dtype)


def alike(a, b, tolerance):
    return torch.allclose(a.nan_to_num(0), b.nan_to_num(0), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weights", [False, True], ids=["emissions", "weights too"])
@pytest.mark.parametrize("scale", [1.0, 30.0, 400.0])
@pytest.mark.parametrize("kind", ["one graph", "one each", "ctc-crf", "a line"])
def test_loops_and_torch_agree(kind, scale, weights, dtype):
    graph = {
        "one graph": lambda: random_graph(5, 14, 4, seed=0).batch,
        "one each": lambda: GraphBatch.of([random_graph(4, 9, 4, seed=seed) for seed in range(10)]),
        "ctc-crf": lambda: compose(ctc_topology(4), bigram([1, 2, 3], seed=0)[0]).batch,
        "a line": lambda: linear([1, 2, 0, 3, 1]).batch,
    }[kind]()
    if (graph.label < 0).any():
        pytest.fail("a case must read a label an arc")
    e = emissions(4, scale=scale, dtype=dtype)
    z, counts = graph_loops.log_partition(graph, e, LENGTHS, posteriors=True, weights=weights)
    want, expected = graph_torch.log_partition(graph, e, LENGTHS, posteriors=True)
    assert alike(z, want, 1e-12) and torch.equal(z.isfinite(), want.isfinite())
    assert alike(counts.emissions.double(), expected.emissions, 1e-10 if dtype == torch.float64 else 1e-6)
    for a, b in list(zip(counts, expected))[1:] if weights else []:
        assert alike(a, b, 1e-10)
    only, _ = graph_loops.log_partition(graph, e, LENGTHS, posteriors=False, weights=False)
    assert alike(only, want, 1e-12)


def lanes(graph, e, lengths):
    """log Z by scaled numbers alone, 8 utterances side by side, and whether they vouch for it."""
    z, sure = np.empty(len(e)), np.zeros(len(e), bool)
    for begin in range(0, len(e), graph_scaled.LANES):
        graph_loops._lanes(layout(graph), e.numpy(), lengths.numpy(), begin, z, sure, np.zeros((0, 0, 0), e.numpy().dtype))
    return torch.from_numpy(z), torch.from_numpy(sure)


def one_by_one(graph, e, lengths):
    """The same, one utterance a time, in their order whatever threads there are."""
    found, called = [], graph_loops.alone.utterance

    def listen(*arguments):
        found.append(called(*arguments))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_loops, "alone", SimpleNamespace(utterance=listen))
        patch.setattr(graph_loops, "in_shares", lambda work, do: [do(b) for b in work])
        graph_loops.log_partition(graph, e, lengths, posteriors=True, weights=True)
    z, sure = zip(*found)
    return torch.tensor(z, dtype=torch.float64) + linear_weights(graph).ends, torch.tensor(sure)


both = pytest.mark.parametrize("certain", [lanes, one_by_one])


@both
def test_what_scaled_numbers_vouch_for_is_true(certain):
    """From weak to strong emissions: all that is vouched for is right, and it fails to vouch for what is wrong."""
    graph = compose(ctc_topology(4), bigram([1, 2, 3], seed=0)[0]).batch
    line = linear([1, 2, 0, 3, 1, 2, 2, 1, 3, 0, 1, 2]).batch
    vouched = wrong = 0
    for each in (graph, line):
        for scale in (1.0, 10.0, 60.0, 100.0, 200.0, 400.0, 1000.0):
            e = emissions(4, scale=scale)
            z, sure = certain(each, e, LENGTHS)
            want, _ = graph_torch.log_partition(each, e, LENGTHS, posteriors=False)
            right = (z - want).abs() <= 1e-12 * want.abs() + 1e-12
            assert right[sure].all()
            vouched, wrong = vouched + int(sure.sum()), wrong + int((~right & want.isfinite()).sum())
    assert vouched > 50 and wrong > 0
    mild, sure = certain(graph, emissions(4), LENGTHS)
    assert sure[mild.isfinite()].all()  # it is not that nothing is vouched for


@both
def test_a_path_that_falls_far_behind_is_not_lost(certain):
    """Two lines from the start: the one that is far ahead at half time cannot end."""
    arcs = [(0, 1, 0, 0.0), (1, 1, 0, 0.0), (0, 2, 1, 0.0), (2, 2, 1, 0.0)]
    graph = Graph.of(arcs, end={2: 0.0}).batch
    e = torch.zeros(10, 12, 2, dtype=torch.float64)
    e[:, :, 1] = -100.0
    z, sure = certain(graph, e, LENGTHS.clamp(min=1))
    assert not sure[LENGTHS > 8].any() and not z[2].isfinite()  # the mutant: scaled numbers alone
    got, _ = graph_loops.log_partition(graph, e, LENGTHS.clamp(min=1), posteriors=True, weights=False)
    assert torch.equal(got, -100.0 * LENGTHS.clamp(min=1).double())


@both
def test_a_path_that_underflows_from_both_ends_is_not_lost(certain):
    """Far behind after the first frame and before the last, far ahead between: alpha beta alone would not miss it."""
    graph = Graph.of([(0, 1, 0, 0.0), (1, 1, 0, 0.0), (0, 2, 1, 0.0), (2, 2, 1, 0.0)], end={1: 0.0, 2: 0.0}).batch
    e = torch.zeros(1, 7, 2, dtype=torch.float64)
    e[0, [0, -1], 1], e[0, 1:-1, 0] = -800.0, -600.0  # the first path weighs -3000, the second -1600
    z, sure = certain(graph, e, torch.tensor([7]))
    assert not sure[0] and not z[0] > -2999  # the mutant: scaled numbers alone
    got, counts = graph_loops.log_partition(graph, e, torch.tensor([7]), posteriors=True, weights=False)
    assert float(got[0]) == -1600.0 and counts.emissions[0, :, 1].tolist() == [1.0] * 7


def test_frames_computed_again_for_lack_of_memory_change_nothing(monkeypatch):
    graph, e = random_graph(5, 14, 4, seed=1).batch, emissions(4)
    whole, counts = graph_loops.log_partition(graph, e, LENGTHS, posteriors=True, weights=False)
    monkeypatch.setattr(graph_loops, "_HELD", 1)
    again, parts = graph_loops.log_partition(graph, e, LENGTHS, posteriors=True, weights=False)
    assert torch.equal(whole, again) and torch.equal(counts.emissions, parts.emissions)


def test_weights_changed_in_place_are_seen_and_inference_is_no_hindrance():
    e = emissions(4)
    graph = ctc_topology(4)
    before = graph_loops.log_partition(graph.batch, e, LENGTHS, posteriors=False, weights=False)[0]
    for changed, more in ((graph.weight, LENGTHS), (graph.start, LENGTHS + 1), (graph.end, LENGTHS + 2)):
        changed.add_(1.0)
        after = graph_loops.log_partition(graph.batch, e, LENGTHS, posteriors=False, weights=False)[0]
        assert torch.allclose(after, before + more)
    with torch.inference_mode():
        again = ctc_topology(4)
        assert torch.equal(graph_loops.log_partition(again.batch, e, LENGTHS, posteriors=False, weights=False)[0], before)


def test_two_threads_give_what_one_gives():
    graph, e, before = random_graph(5, 14, 4, seed=1).batch, emissions(4), torch.get_num_threads()
    one = graph_loops.log_partition(graph, e, LENGTHS, posteriors=True, weights=False)
    try:
        torch.set_num_threads(2)
        two = graph_loops.log_partition(graph, e, LENGTHS, posteriors=True, weights=False)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one[0], two[0]) and torch.equal(one[1].emissions, two[1].emissions)


@pytest.mark.parametrize(("graph", "most"), [("ctc", 0.15), ("bigram", 0.55), ("any", 1)])
def test_bundles_save_work_and_change_nothing(graph, most):
    made = {
        "ctc": lambda: ctc_topology(40),
        "bigram": lambda: compose(ctc_topology(40), bigram(list(range(1, 40)), seed=0)[0]),
        "any": lambda: random_graph(5, 14, 4, seed=0),
    }[graph]().batch
    plan = layout(made)
    assert len(plan.arcs[1]) + len(plan.arcs[8]) <= most * len(made.label)
    e, lengths = emissions(40), LENGTHS
    z, _ = graph_loops.log_partition(made, e, lengths, posteriors=False, weights=False)
    want, _ = graph_torch.log_partition(made, e, lengths, posteriors=False)
    assert alike(z, want, 1e-12)
