"""Truncated and continued laws: they sum to 1, they are what their definition says, and draws have them."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import autoregressive

from ..statistics import fits
from .test_autoregressive import table
from .test_incremental import Plain, wide

D = gb.distributions
TRUNCATIONS = [
    {"temperature": 0.5},
    {"top_k": 2},
    {"top_p": 0.6},
    {"temperature": 1.5, "top_k": 3, "top_p": 0.8},
    {"top_k": 1},
]
by_truncation = pytest.mark.parametrize("how", TRUNCATIONS, ids=str)


def ngram():
    return D.NGramConditional(D.kneser_ney(torch.tensor([[2, 3, 0, 1], [2, 0, 1, 1], [3, 3, 2, 1]]), gb.Tokens(4, 4, 1)))


def transformer(vocabulary=4):
    return wide(D.Transformer(vocabulary, length=4, width=8, heads=2, seed=0))


def by_definition(p, temperature=1.0, top_k=None, top_p=None):
    """The truncated law of one token, in a loop: likeliest first, no ties here."""
    p = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
    order = p.argsort(descending=True).tolist()[:top_k]
    p = torch.where(torch.isin(torch.arange(len(p)), torch.tensor(order)), p, 0)
    p, kept, total = p / p.sum(), [], 0.0
    for k in order:
        kept.append(k)
        total += float(p[k])
        if total >= (top_p or 1):
            break
    p = torch.where(torch.isin(torch.arange(len(p)), torch.tensor(kept)), p, 0)
    return p / p.sum()


@by_truncation
def test_is_its_definition(how, double, device):
    """The mutant cuts before it sharpens: another order where top_p is asked for with a temperature."""
    logits = 2 * torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
    expected = torch.stack([by_definition(p, **how) for p in logits.softmax(-1)])
    found = D.Truncation(**how)(logits.to(device)).softmax(-1).cpu()
    assert torch.allclose(found, expected, atol=1e-12)
    if {"temperature", "top_p"} <= how.keys():
        cut = D.Truncation(top_p=how["top_p"])(logits)
        assert not torch.allclose((cut / how["temperature"]).softmax(-1), expected, atol=1e-3)


def test_what_is_as_likely_as_the_last_one_is_kept():
    logits = torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert D.Truncation(top_k=1)(logits).isfinite().tolist() == [True, False, True, False]
    assert D.Truncation(top_p=0.5)(logits).isfinite().tolist() == [True, False, True, False]
    assert torch.equal(D.Truncation(top_k=9, top_p=1)(logits), logits)


@by_truncation
@pytest.mark.parametrize("make", [lambda: table(1, vocabulary=4), lambda: wide(D.LSTM(4, 5, 2, seed=0)), transformer, ngram])
@torch.no_grad()
def test_sums_to_one(make, how, double):
    """Over all sequences of 4 of 4 tokens, and over what follows a prefix; the mutant cuts and does not normalise anew."""
    plain = D.Autoregressive(make().double(), gb.Tokens(4, 4, 1))
    q = plain.truncated(**how)
    for law in (plain, q, q.after([2]), q.after([3, 0]), plain.after([0, 0, 2])):
        assert abs(float(law(gb.exact.states(law.space)).logsumexp(0))) < 1e-12
    every = gb.exact.states(q.space)
    if how.keys() != {"temperature"}:
        assert float(plain(every)[q(every).isfinite()].logsumexp(0)) < -0.01


@pytest.mark.parametrize("make", [lambda: table(2, vocabulary=5), lambda: D.LSTM(5, 5, 2, seed=0), Plain])
@torch.no_grad()
def test_a_prefix_factors_out(make, double):
    """q(prefix, x) = q(prefix) q.after(prefix)(x), and after(a).after(b) = after(ab)."""
    q, prefix = D.Autoregressive(make().double(), gb.Tokens(5, 5, 0)), torch.tensor([3, 1])
    law = q.after(prefix)
    x = gb.exact.states(law.space)
    whole = torch.cat((prefix.expand(len(x), -1), x), 1)
    each = q.logits(whole).log_softmax(-1)
    first = each[:, 0, 3] + each[:, 1, 1]
    assert torch.allclose(q(whole), first + law(x), atol=1e-12)
    assert torch.allclose(q.after([3]).after([1])(x), law(x), atol=1e-12)
    assert not torch.allclose(q.after([1, 3])(x), law(x), atol=1e-3)
    assert q.after([]) is q


def frequencies(space, x):
    """How often each state occurs."""
    every = gb.exact.states(space)
    codes = space.vocabulary ** torch.arange(space.length)
    place = {code: number for number, code in enumerate((every * codes).sum(1).tolist())}
    found = [place[code] for code in (space.check(x.cpu()) * codes).sum(1).tolist()]
    return torch.bincount(torch.tensor(found), minlength=len(every))


@pytest.mark.parametrize("make", [lambda: wide(D.LSTM(4, 5, seed=0)), transformer], ids=["lstm", "transformer"])
@torch.no_grad()
def test_draws_have_the_law(make, device):
    """20,000 draws a law, chi-square at 1e-6; many end early, so that batches shrink. The mutant is the law not cut."""
    q = D.Autoregressive(make(), gb.Tokens(4, 4, 1))
    cut = q.truncated(temperature=1.3, top_p=0.9)
    for law, other in [(cut, q), (cut.after([2]), q.after([2]))]:
        p, wrong = (gb.exact.probabilities(each.cpu()) for each in (law, other))
        counts = frequencies(law.space, law.to(device).sample(20_000, seed=0))
        assert fits(counts[None], p[None])
        assert not fits(counts[None], wrong[None])


@torch.no_grad()
@pytest.mark.parametrize("most", [4, 1 << 20], ids=["prefixes in pieces", "prefixes at once"])
def test_rows_are_completed_each_from_its_own_prefix(most, device, monkeypatch):
    monkeypatch.setattr(autoregressive, "_AT_ONCE", {device.type: most})
    q = D.Autoregressive(wide(D.LSTM(4, 5, seed=0)), gb.Tokens(4, 4, 1)).to(device)
    prefix = torch.tensor([[2, 0], [3, 3]]).repeat(10_000, 1)
    x = q.complete(prefix, seed=0).cpu()
    assert torch.equal(x[:, :2], prefix)
    for row in range(2):
        law = q.after(prefix[row]).cpu()
        assert fits(frequencies(law.space, x[row::2, 2:])[None], gb.exact.probabilities(law)[None])
    assert not fits(frequencies(law.space, x[0::2, 2:])[None], gb.exact.probabilities(law)[None])


def test_errors():
    q = D.Autoregressive(table(1), gb.Tokens(3, 3, 0))
    with pytest.raises(ValueError, match="prefix: expected fewer tokens than the space's length=3, got 3"):
        q.after([1, 2, 1])
    with pytest.raises(ValueError, match="prefix: expected tokens other than eos=0"):
        q.after([1, 0])
    with pytest.raises(ValueError, match=r"prefix: expected .* in \[0, 3\)"):
        q.after([3])
    with pytest.raises(ValueError, match=r"top_p: expected a number above 0 and at most 1, got 1\.5"):
        q.truncated(top_p=1.5)
    with pytest.raises(ValueError, match="temperature: expected a positive number, got 0"):
        q.truncated(temperature=0)
