"""Prefix beam search against sums over all alignments; pruned, it claims no more than there is."""

import itertools
import math

import numpy as np
import pytest
import torch

import gibbsite as gb
from gibbsite.exact import beam_language

from .test_label_model import corpus

D, G = gb.distributions, gb.exact
V, T = 4, 6
WIDE = 2000  # more than the 1,093 sequences of at most six of three labels


def frames(batch, seed=0, blank=0, t=T):
    """Random columns in which every third frame repeats the one before: labels that repeat matter."""
    source = torch.Generator().manual_seed(seed)
    x = 2 * torch.randn(batch, t, V, generator=source, dtype=torch.float64)
    x[:, 1::3] = x[:, 0 : t - 1 : 3][:, : x[:, 1::3].shape[1]]
    x[..., blank] += 1
    return x.log_softmax(-1)


def by_alignments(log_probs, blank=0, combined=np.logaddexp.reduce):
    """log of the sum over all alignments of each label sequence, by writing all of them down."""
    sums, rows = {}, log_probs.tolist()
    for a in itertools.product(range(V), repeat=len(rows)):
        labels = tuple(k for k, _ in itertools.groupby(a) if k != blank)
        sums.setdefault(labels, []).append(math.fsum(rows[t][k] for t, k in enumerate(a)))
    return {labels: float(combined(terms)) for labels, terms in sums.items()}


def scored(sums, language=lambda y: 0.0, weight=1.0, bonus=0.0):
    rows = {y: log_ctc + weight * language(y) + bonus * len(y) for y, log_ctc in sums.items()}
    return sorted(rows.items(), key=lambda row: -row[1])


@pytest.fixture(scope="module")
def sums():
    return [by_alignments(row[:length]) for row, length in zip(frames(3), (6, 4, 0))]


@pytest.fixture(scope="module")
def trigram():
    return D.kneser_ney(corpus(30, space=gb.Tokens(T + 1, V, 0)), gb.Tokens(T + 1, V, 0), order=3)


def of(model):
    """log p of labels that end, by the model itself."""
    return lambda y: float(model(torch.tensor([*y, *[0] * (T + 1 - len(y))])).detach())


LENGTHS = torch.tensor([6, 4, 0])


def test_a_wide_beam_is_exact_without_a_language_model(sums, device):
    """Every sequence of every utterance has its sum over alignments; the mutant takes the best one alone."""
    found = G.prefix_beam_search(frames(3).to(device), LENGTHS.to(device), beam=WIDE, n_best=WIDE)
    for list_, expected in zip(found, sums):
        assert {h.labels for h in list_} == set(expected)
        assert all(h.score == h.log_ctc == pytest.approx(expected[h.labels], abs=1e-10) for h in list_)
        assert [h.score for h in list_] == sorted((h.score for h in list_), reverse=True)
    alone = by_alignments(frames(3)[0], combined=max)
    assert any(h.score - alone[h.labels] > 0.1 for h in found[0])


@pytest.mark.parametrize("small", [2**20, 0])
@pytest.mark.parametrize(("weight", "bonus"), [(1.0, 0.0), (0.5, 0.7), (2.0, -1.0), (0.0, 0.5)])
def test_a_wide_beam_is_exact_with_one(weight, bonus, small, sums, trigram, device, monkeypatch):
    """Scores and order by the model's own probabilities, the end included; the mutant leaves the end out.

    Steps are taken before the search, and where the model is not small during it.
    """
    monkeypatch.setattr(beam_language, "_SMALL", small)
    model = trigram.to(device)
    found = G.prefix_beam_search(
        frames(3).to(device),
        LENGTHS.to(device),
        beam=WIDE,
        language_model=model,
        weight=weight,
        bonus=bonus,
        n_best=10,
    )
    language = of(trigram.cpu())
    for list_, total in zip(found, sums):
        expected = scored(total, language, weight, bonus)[:10]
        assert [h.labels for h in list_] == [labels for labels, _ in expected]
        assert [h.score for h in list_] == pytest.approx([score for _, score in expected], abs=1e-10)
        assert all(h.log_language == pytest.approx(language(h.labels), abs=1e-10) for h in list_)
    end = [float(trigram.conditionals(torch.tensor([list_[0].labels], dtype=torch.long))[0, 0]) for list_ in found]
    assert max(abs(value) for value in end) > 0.01


def test_a_function_of_prefixes_is_a_language_model(sums, trigram):
    """The same lists as of the model, asked by prefixes, each once."""
    asked = []

    def scorer(prefixes):
        asked.extend(prefixes)
        return torch.cat([trigram.conditionals(torch.tensor([prefix], dtype=torch.long)) for prefix in prefixes])

    options = {"beam": 30, "weight": 0.8, "bonus": 0.2, "n_best": 30}
    direct = G.prefix_beam_search(frames(3), LENGTHS, language_model=trigram, **options)
    called = G.prefix_beam_search(frames(3), LENGTHS, language_model=scorer, **options)
    assert len(asked) == len(set(asked))
    for one, two in zip(direct, called):
        assert [h.labels for h in one] == [h.labels for h in two]
        assert [h.score for h in one] == pytest.approx([h.score for h in two], abs=1e-10)


def test_a_network_is_a_language_model(sums, device):
    """An LSTM, exactly, by its own probabilities; prefixes of several lengths are read together."""
    network = D.Autoregressive(D.LSTM(V, 5, seed=0).double(), gb.Tokens(T + 1, V, 0))
    found = G.prefix_beam_search(frames(3), LENGTHS, beam=WIDE, language_model=network.to(device), n_best=20)
    for list_, total in zip(found, sums):
        expected = scored(total, of(network.cpu()))[:20]
        assert [h.labels for h in list_] == [labels for labels, _ in expected]
        assert [h.score for h in list_] == pytest.approx([score for _, score in expected], abs=1e-9)


def test_any_column_may_be_the_blank(device):
    log_probs = frames(1, seed=1, blank=2)
    (found,) = G.prefix_beam_search(log_probs.to(device), torch.tensor([T], device=device), beam=WIDE, blank=2, n_best=5)
    expected = scored(by_alignments(log_probs[0], 2))[:5]
    assert [(h.labels, pytest.approx(h.score, abs=1e-10)) for h in found] == expected


@pytest.mark.parametrize("options", [{"beam": 3}, {"beam": 50, "margin": 2.0}, {"beam": 50, "labels": 1}])
def test_what_is_pruned_claims_no_more_than_there_is(options, trigram):
    """Scores are at most the exact ones, every sequence is listed once, and the search without pruning finds more."""
    log_probs, lost = frames(8, seed=2), 0.0
    lists = G.prefix_beam_search(log_probs, torch.full((8,), T), language_model=trigram, n_best=50, **options)
    for found, frames_ in zip(lists, log_probs):
        expected = dict(scored(by_alignments(frames_), of(trigram)))
        assert found and len({h.labels for h in found}) == len(found)
        assert all(h.score <= expected[h.labels] + 1e-10 for h in found)
        lost += sum(expected[h.labels] - h.score for h in found)
    assert lost > 1e-3


@pytest.mark.parametrize(("seed", "scale", "beam"), [(53, 2, 8), (59, 8, 20)])
def test_prefixes_that_return_join_what_grew_from_them(seed, scale, beam):
    """Here a prefix leaves the beam, more of it stays, and it returns: its node is the old one, or a list has one twice."""
    log_probs = scale * torch.randn(1, 8, V, generator=torch.Generator().manual_seed(seed))
    (found,) = G.prefix_beam_search(log_probs.log_softmax(-1), torch.tensor([8]), beam=beam, n_best=beam)
    assert len({h.labels for h in found}) == len(found)


def test_the_best_alignment_is_found_by_every_beam():
    """Columns that are nearly certain: the beam of 1 reads what they say."""
    path = torch.tensor([1, 1, 0, 1, 2, 2, 0, 3, 3, 0])
    log_probs = (20.0 * torch.nn.functional.one_hot(path, V)).log_softmax(-1)[None]
    for beam in (1, 4):
        ((best,),) = G.prefix_beam_search(log_probs, torch.tensor([10]), beam=beam)
        assert best.labels == (1, 1, 2, 3) and best.score == pytest.approx(0, abs=1e-6)


def test_nothing_possible_is_an_empty_list(trigram):
    log_probs = torch.full((1, 2, V), -math.inf)
    assert G.prefix_beam_search(log_probs, torch.tensor([2]), beam=4) == [[]]
    log_probs[0, :, 0] = 0
    assert [h.labels for h in G.prefix_beam_search(log_probs, torch.tensor([2]), beam=4, n_best=4)[0]] == [()]


ROW = {"log_probs": torch.zeros(1, 2, V), "lengths": torch.tensor([2]), "beam": 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"log_probs": torch.zeros(2, V)},
            r"log_probs: expected floats of shape \(batch, frames, vocabulary\), got fl",
        ),
        (
            {"log_probs": torch.full((1, 2, V), math.nan)},
            "log_probs: expected numbers below \\+inf, got NaN or",
        ),
        ({"lengths": torch.tensor([3])}, r"lengths: expected values in \[0, 2\], got 3 to 3"),
        ({"beam": 0}, "beam: expected a positive integer, got 0"),
        ({"blank": 4}, r"blank: expected a column in \[0, 4\), got 4"),
        ({"n_best": 0}, "n_best: expected a positive integer, got 0"),
        ({"labels": 0}, "labels: expected a positive integer, got 0"),
        ({"margin": -1.0}, "margin: expected a non-negative number, got -1.0"),
        ({"weight": math.nan}, "weight: expected a finite number, got nan"),
        ({"language_model": 3}, "language_model: expected an NGram or a function of prefixes, got int"),
        ({"language_model": lambda prefixes: torch.zeros(3)}, r"expected a tensor of shape \(1, 4\), got \(3,\)"),
    ],
)
def test_mistakes_are_named(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        G.prefix_beam_search(**{**ROW, **change})


def test_a_model_of_other_ids_is_named(trigram):
    with pytest.raises(ValueError, match="language_model: expected 4 ids, of which the blank, 1, is the eos; got 4 with"):
        G.prefix_beam_search(**ROW, blank=1, language_model=trigram)
