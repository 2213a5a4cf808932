"""Beam search with early updates: against a loop that is the definition, with mutants."""

import pytest
import torch

from gibbsite.apps.tagging.heads import beam, crf_transducer, search, sequence_scores

from .laws import LABELS, every, heads, potential, sentences

TRANSDUCERS = ["rnn-t", "crf-t, sum", "crf-t, separate"]
GLOBAL = TRANSDUCERS[1:]
ROWS = [[1] * n + [0] * (5 - n) for n in (5, 5, 5, 4, 3, 1, 0, 5, 5, 5)]
by_transducer = pytest.mark.parametrize("name", TRANSDUCERS)
by_design = pytest.mark.parametrize("name", GLOBAL)


def slow_loss(head, features, gold, width):
    """-u(gold prefix) + log sum exp u over the beam and it, at the first place where it is not in the beam, or the last."""
    prefixes = [()]
    end = 0
    for t in range(len(gold)):
        grown = [(*p, k) for p in prefixes for k in range(LABELS)]
        grown.sort(key=lambda y: -potential(head, features, torch.tensor(y, dtype=torch.long)).item())
        prefixes, end = grown[:width], t + 1
        if tuple(gold[:end].tolist()) not in prefixes:
            break
    members = {*prefixes, tuple(gold[:end].tolist())}
    u = torch.stack([potential(head, features, torch.tensor(y, dtype=torch.long)) for y in sorted(members)])
    return u.logsumexp(0) - potential(head, features, gold[:end]), end < len(gold)


@by_design
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_loss_is_that_of_beam_search_with_early_updates(name, width):
    head, (features, mask, labels) = heads(width)[name], sentences(ROWS)
    found, early = head.loss(features, mask, labels, source=None).values, 0
    for row, n in enumerate(mask.sum(1).tolist()):
        expected, left = slow_loss(head, features[row], labels[row, :n], width)
        assert torch.allclose(found[row], expected, atol=1e-12), row
        early += left
    assert early > 0, "some gold prefix should leave the beam before its end, or nothing is tested"


@by_design
def test_the_first_place_where_the_gold_prefix_leaves_is_where_it_ends(name, monkeypatch):
    head, (features, mask, labels) = heads(2)[name], sentences(ROWS)
    rows = [(row, n, *slow_loss(head, features[row], labels[row, :n], 2)) for row, n in enumerate(mask.sum(1).tolist())]
    monkeypatch.setattr(crf_transducer, "search", lambda *given, gold, **more: search(*given, **more))
    late = head.loss(features, mask, labels, source=None).values
    assert all(abs(late[row] - u) > 1e-6 for row, _, u, left in rows if left), "the mutant: updates at the end alone"


@by_design
def test_gradients_with_early_updates_are_those_of_the_loop(name):
    head, (features, mask, labels) = heads(2)[name], sentences(ROWS)
    parameters = list(head.parameters())
    lengths = mask.sum(1).tolist()
    slow = sum(slow_loss(head, features[row], labels[row, :n], 2)[0] for row, n in enumerate(lengths))
    found = head.loss(features, mask, labels, source=None).values.sum()
    for one, other in zip(torch.autograd.grad(slow, parameters), torch.autograd.grad(found, parameters)):
        assert torch.allclose(one, other, atol=1e-11)


def _without_gold(gold, found):
    counted = _COUNTED(gold, found)
    counted[:, 0] = False
    return counted


def _gold_twice(gold, found):
    return torch.cat((torch.ones_like(found.scores[:, :1], dtype=torch.bool), found.scores.isfinite()), 1)


_COUNTED = crf_transducer._counted


@by_design
def test_the_loss_is_not_negative_because_the_set_has_the_gold_prefix(name, device, monkeypatch):
    head, (features, mask, labels) = heads(2, device)[name], sentences(ROWS, device)
    assert (head.loss(features, mask, labels, source=None).values >= 0).all()
    monkeypatch.setattr(crf_transducer, "_counted", _without_gold)
    assert (head.loss(features, mask, labels, source=None).values < 0).any(), "the mutant: a beam without the gold prefix"


@by_design
def test_the_gold_prefix_counts_once(name, device, monkeypatch):
    head, (features, mask, labels) = heads(LABELS**5, device)[name], sentences(ROWS[:1], device)
    u = torch.stack([potential(head, features[0], y) for y in every(5).to(device)])
    exact = u.logsumexp(0) - potential(head, features[0], labels[0])
    assert torch.allclose(head.loss(features, mask, labels, source=None).values[0], exact, atol=1e-12)
    monkeypatch.setattr(crf_transducer, "_counted", _gold_twice)
    wrong = head.loss(features, mask, labels, source=None).values[0]
    assert (wrong - exact).abs() > 1e-9, "the mutant: the gold sequence and its copy in the beam"


@by_transducer
@pytest.mark.parametrize("width", [1, 3, 7])
def test_scores_of_the_search_are_those_of_its_sequences(name, width, device, monkeypatch):
    head, (features, mask, _) = heads(width, device)[name], sentences(ROWS, device)
    f, lengths = head.aligned(features, mask)
    keep = torch.bernoulli(torch.full((len(mask), 1, 4), 0.5), generator=torch.Generator().manual_seed(0)).to(f)

    def gap():
        found = search(f, lengths, head.prediction, head.potentials, width, keep=keep)
        given = sequence_scores(f, found.labels, lengths, head.prediction, head.potentials, keep=keep)
        there = found.scores.isfinite()
        return (found.scores - given)[there].abs().max()

    assert gap() < 1e-12
    if width > 1:
        monkeypatch.setattr(beam, "_chosen", lambda memory, rows: memory)
        assert gap() > 1e-6, "the mutant: hypotheses that keep the memory of those they replace"


@by_design
def test_a_beam_gives_a_lower_bound_of_log_z_and_it_grows_with_the_beam(name, device):
    (features, mask, labels) = sentences(ROWS[:3], device)
    log_p = torch.stack([heads(width, device)[name].log_p(features, mask, labels) for width in (1, 4, LABELS**5)])
    assert (log_p[0] > log_p[2]).all() and (log_p[1] > log_p[2]).all()


@by_transducer
def test_hypotheses_are_distinct_and_in_order(name, device):
    head, (features, mask, _) = heads(6, device)[name], sentences(ROWS, device)
    best = head.best(features, mask, 6)
    assert (best.log_p[:, 1:] <= best.log_p[:, :-1]).all()
    for labels, log_p in zip(best.labels.tolist(), best.log_p):
        there = int(log_p.isfinite().sum())
        assert len({tuple(y) for y in labels[:there]}) == there >= 1
