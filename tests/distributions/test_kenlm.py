"""Files that KenLM reads: its scores are those of our own reader, and it steps, draws and decodes like an NGram."""

import builtins
import math

import pytest
import torch

import gibbsite as gb

from ..statistics import fits
from .test_kneser_ney import sequences

D = gb.distributions
SPACE = gb.Tokens(7, 5, 0)
WORDS = ["</s>", "<unk>", "a", "b", "c"]
BOUND = 7 * 4 * 10 * 2**-24 * math.log(10)  # float32: each of at most 7 tokens is a sum of up to 4 numbers below 10


@pytest.fixture
def both(tmp_path):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    model = D.kneser_ney(sequences(60), SPACE, order=3)
    D.write_arpa(model, WORDS, tmp_path / "model.arpa")
    return model, D.KenLM(tmp_path / "model.arpa", WORDS, 7)


def test_scores_are_those_of_our_reader(both):
    """Rounding apart, of whole sequences and of each next token; the mutant has two words exchanged."""
    ours, theirs = both
    x = sequences(100, seed=2)
    assert torch.allclose(theirs(x), ours(x), atol=BOUND, rtol=0) and theirs(x[:, None]).shape == (100, 1)
    assert torch.allclose(theirs.conditionals(x[:, :2]), ours.conditionals(x[:, :2]), atol=BOUND, rtol=0)
    swap = torch.tensor([0, 1, 3, 2, 4])
    assert not torch.allclose(theirs(swap[x]), ours(x), atol=0.1, rtol=0)


def test_draws_have_the_law(both):
    """First tokens of 4,000 draws against exact ones, chi-square at 1e-6; the mutant is the law of the second."""
    ours, theirs = both
    x = SPACE.check(theirs.sample(4000, seed=0))
    p = ours.conditionals(torch.zeros(1, 0, dtype=torch.long)).exp()
    second = (p[0, 1:, None] * ours.conditionals(torch.arange(1, 5)[:, None]).exp()).sum(0)
    counts = torch.bincount(x[:, 0], minlength=5)
    assert fits(counts[None], p) and not fits(counts[None], (second / second.sum())[None])


def test_it_decodes_as_our_reader_does(both):
    ours, theirs = both
    log_probs = torch.randn(2, 8, 5, generator=torch.Generator().manual_seed(0)).double().log_softmax(-1)
    lists = [
        gb.exact.prefix_beam_search(log_probs, torch.tensor([8, 5]), beam=200, language_model=model, n_best=5)
        for model in (ours, theirs)
    ]
    assert [[h.labels for h in found] for found in lists[0]] == [[h.labels for h in found] for found in lists[1]]
    assert lists[0][0][0].score == pytest.approx(lists[1][0][0].score, abs=BOUND)


def test_the_extra_and_the_words_are_named(monkeypatch):
    with pytest.raises(ValueError, match="words: expected '</s>' among them"):
        D.KenLM("model.arpa", ["a", "b"], 7)

    plain = builtins.__import__

    def without(name, *rest):
        if name == "kenlm":
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'gibbsite\[kenlm\]'"):
        D.KenLM("model.arpa", WORDS, 7)
