"""n-gram models: scores by loop, by steps and from conditionals agree; draws have the law; the interface holds."""

import pytest
import torch

import gibbsite as gb

from ..statistics import fits
from .test_kneser_ney import sequences

D = gb.distributions
SPACE = gb.Tokens(7, 5, 0)


@pytest.fixture
def model(device):
    return D.kneser_ney(sequences(60), SPACE, order=3).to(device)


def test_the_loop_gives_what_the_steps_give(model, device):
    """The loop runs on the CPU only, `_by_steps` anywhere; rounding apart. The mutant goes on past the end."""
    x = sequences(100, seed=3)
    loop, steps = model.cpu()._by_loop(x), model.to(device)._by_steps(x.to(device)).cpu()
    assert torch.allclose(loop, steps, atol=1e-12, rtol=0)
    later = model.of_length(8)._by_steps(torch.nn.functional.pad(x, (0, 1), value=1).to(device)).cpu()
    assert not torch.allclose(loop, later, atol=1e-3, rtol=0)


def test_steps_by_the_loop_are_those_of_searches(model, device):
    """From every state by every token."""
    pairs = torch.cartesian_prod(torch.arange(model.states), torch.arange(5))
    state, log_p = model.cpu().step(*pairs.T.contiguous())
    state_too, log_p_too = model.to(device)._search(*pairs.T.contiguous().to(device))
    assert torch.equal(state, state_too.cpu()) and torch.allclose(log_p, log_p_too.cpu(), atol=1e-14, rtol=0)


def test_conditionals_are_the_factors_of_the_score(model, device):
    x = sequences(50, seed=4).to(device)
    space = model.space
    total = torch.zeros(len(x), dtype=torch.float64, device=device)
    for t in range(space.length):
        rows = model.conditionals(x[:, :t])
        assert torch.allclose(rows.exp().sum(1), torch.ones_like(total), atol=1e-12)
        running = (x[:, :t] != space.eos).all(1)
        total = total + torch.where(running, rows.gather(1, x[:, t, None])[:, 0], 0)
    assert torch.allclose(model(x), total, atol=1e-12, rtol=0)


def test_draws_have_the_law(device):
    """20,000 sequences against the enumerated probabilities, chi-square at 1e-6; the mutant forgets the older token."""
    space = gb.Tokens(3, 3, 1)
    x = sequences(30, space=space)
    model, bigrams = (D.kneser_ney(x, space, order=order) for order in (3, 2))
    every, p = gb.exact.states(space), gb.exact.probabilities(model)
    drawn = space.check(model.to(device).sample(20_000, seed=0).cpu())
    codes = torch.tensor([9, 3, 1])
    place = {code: number for number, code in enumerate((every * codes).sum(1).tolist())}
    counts = torch.bincount(torch.tensor([place[code] for code in (drawn * codes).sum(1).tolist()]), minlength=len(every))
    assert fits(counts[None], p[None])
    assert not fits(counts[None], gb.exact.probabilities(bigrams)[None])


def test_other_lengths_share_the_model(model):
    longer = model.of_length(9)
    x = sequences(20).to(model.key.device)
    ended = x[(x == 0).any(1)]
    assert len(ended) and longer.log_p.data_ptr() == model.log_p.data_ptr()
    assert torch.equal(longer(torch.nn.functional.pad(ended, (0, 2))), model(ended))


def test_scores_follow_weights_that_are_loaded_and_types(model):
    """The loop keeps where arcs begin: other keys of the same number are seen."""
    x = sequences(20).to(model.key.device)
    before = model(x)
    assert torch.allclose(model.float()(x).double(), before, atol=1e-4)
    swap = torch.tensor([0, 2, 1, 3, 4])
    other = D.kneser_ney(swap[sequences(60)], SPACE, order=3).to(model.key.device).float()
    model.load_state_dict(other.state_dict())
    assert torch.equal(model(x), other(x)) and not torch.allclose(model(x).double(), before, atol=1e-3)


def test_order_and_states_are_those_of_the_corpus(model):
    """Contexts: none, each token that goes on and the start, each pair of these; five tokens and two places suffice."""
    assert model.order == 3
    rows = [row[: int(n) + 1].tolist() for row, n in zip(sequences(60), SPACE.lengths(sequences(60)))]
    rows = [[5, *row] for row in rows]
    contexts = {tuple(row[i - n : i]) for row in rows for i in range(1, len(row)) for n in range(3) if i >= n}
    assert model.states == len(contexts)


def test_perplexity_counts_the_end_and_no_padding():
    q = D.Autoregressive(D.NGramTable(4), gb.Tokens(3, 4, eos=0))
    x = torch.tensor([[0, 0, 0], [2, 3, 1]])
    assert D.perplexity(q, x) == pytest.approx(4.0, rel=1e-6)
    model = D.kneser_ney(sequences(60), SPACE)
    rows = sequences(10, seed=2)
    tokens = sum(min(int(n) + 1, 7) for n in SPACE.lengths(rows))
    assert D.perplexity(model, rows) == pytest.approx(float((-model(rows).sum() / tokens).exp()), rel=1e-12)
