"""Autoregressive distributions: they sum to 1 under one convention for the end, and draw from their law."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import autoregressive

from ..statistics import fits

D = gb.distributions


def table(history, seed=0, vocabulary=3):
    shape = (*[vocabulary + 1] * history, vocabulary)
    return D.NGramTable(vocabulary, history, torch.randn(shape, generator=torch.Generator().manual_seed(seed)))


@pytest.mark.parametrize("eos", [0, 2])
@pytest.mark.parametrize("make", [lambda: table(0), lambda: table(1), lambda: table(2), lambda: D.LSTM(3, 5, seed=0)])
def test_sums_to_one_over_all_sequences(make, eos, double):
    """V = 3, length 4; the mutant counts the padding after the end as tokens that were drawn."""
    q = D.Autoregressive(make().double(), gb.Tokens(4, 3, eos))
    assert abs(float(gb.exact.log_z(q))) < 1e-12
    every = gb.exact.states(q.space)
    padded = q.logits(every).log_softmax(-1).gather(-1, every[..., None]).sum((1, 2))
    assert abs(float(padded.logsumexp(0).detach())) > 0.01


def test_probability_by_hand(double):
    q = D.Autoregressive(table(1), gb.Tokens(3, 3, 0))
    steps = q.conditional.logits.log_softmax(-1).detach()
    expected = [steps[3, 2] + steps[2, 1] + steps[1, 1], steps[3, 2] + steps[2, 0], steps[3, 0]]
    found = q(torch.tensor([[2, 1, 1], [2, 0, 0], [0, 0, 0]])).detach()
    assert torch.allclose(found, torch.stack(expected), atol=1e-12)
    assert q(torch.tensor([[[2, 1, 1]], [[2, 0, 0]]])).shape == (2, 1)


def test_history_reads_the_oldest_token_first(double):
    ngram = table(2)
    logits = ngram(torch.tensor([[3, 1, 2]]))
    expected = [ngram.logits[3, 3], ngram.logits[3, 1], ngram.logits[1, 2]]
    assert torch.equal(logits[0], torch.stack(expected))


def test_draws_have_the_law(device):
    """20,000 sequences against the enumerated probabilities, chi-square at 1e-6; the mutant never ends early."""
    space = gb.Tokens(3, 3, 1)
    q = D.Autoregressive(table(2), space)
    every, p = gb.exact.states(space), gb.exact.probabilities(q)
    q = q.to(device)
    x = space.check(q.sample(20_000, seed=0).cpu())
    codes = torch.tensor([9, 3, 1])
    place = {code: number for number, code in enumerate((every * codes).sum(1).tolist())}
    counts = torch.bincount(torch.tensor([place[code] for code in (x * codes).sum(1).tolist()]), minlength=len(every))
    assert fits(counts[None], p[None])
    late = torch.where(space.lengths(every) == 3, p, 0)
    assert not fits(counts[None], 0.9 * p[None] + 0.1 * late / late.sum())


def test_the_same_seed_draws_the_same(device):
    q = D.Autoregressive(D.LSTM(4, 6, seed=0), gb.Tokens(5, 4, 0)).to(device)
    draw = lambda seed: q.sample(50, seed=torch.Generator(device).manual_seed(seed))  # noqa: E731
    assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))
    assert q.sample(0, seed=0).shape == (0, 5)
    a, b = D.LSTM(4, 6, seed=3).state_dict(), D.LSTM(4, 6, seed=3).state_dict()
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_rows_are_read_in_shares(device, monkeypatch):
    """Shares of at most 24 logits, rows of one length together: what comes out has the order of what went in."""
    q = D.Autoregressive(D.LSTM(4, 6, seed=0), gb.Tokens(5, 4, 0)).to(device)
    every = gb.exact.states(q.space)
    every = every[q.space.lengths(every) <= 3]
    x = every[torch.randperm(len(every), generator=torch.Generator().manual_seed(0))].to(device)
    whole, read = q(x), []
    monkeypatch.setattr(autoregressive, "_AT_ONCE", {device.type: 24})
    q.conditional.embedding.register_forward_pre_hook(lambda module, args: read.append(args[0].shape))
    assert torch.allclose(q(x), whole, atol=1e-6)
    assert max(rows * places for rows, places in read) == 6 and sum(rows for rows, _ in read) == len(x)
    drawn = int((q.space.lengths(x) + 1).clamp(max=5).sum())
    assert sum(rows * places for rows, places in read) < 1.1 * drawn < 0.9 * x.numel()
    assert q(x[:0]).shape == (0,)


def test_padding_that_is_no_padding_is_refused():
    q = D.Autoregressive(table(1), gb.Tokens(3, 3, 0))
    with pytest.raises(ValueError, match="expected only eos=0 after the first eos"):
        q(torch.tensor([[1, 0, 2]]))
    with pytest.raises(ValueError, match=r"conditional: expected logits of shape \(1, 3, 4\), got \(1, 3, 3\)"):
        D.Autoregressive(table(0), gb.Tokens(3, 4, 0))(torch.tensor([[1, 2, 2]]))
