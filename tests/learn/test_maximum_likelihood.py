"""Maximum likelihood: its gradient is 0 at the truth, networks learn a law by it, padding changes nothing."""

import pytest
import torch

import gibbsite as gb

D, L = gb.distributions, gb.learn
SPACE = gb.Tokens(3, 3, 0)
_TABLE = torch.tensor([[1.0, 1, 2], [2, 1, 1], [1, 2, 1], [1, 1, 2]], dtype=torch.float64).log()


def bigram():
    """A law whose conditionals are a quarter, a quarter and a half."""
    return D.Autoregressive(D.NGramTable(3, 1, _TABLE), SPACE)


def deck(q):
    """64 sequences whose frequencies are q's law."""
    every = gb.exact.states(SPACE)
    counts = (64 * gb.exact.probabilities(q)).round().long()
    assert counts.sum() == 64
    return every.repeat_interleave(counts, 0)


def test_the_truth_has_no_gradient(double, device):
    """The mutant counts the padding after the end too."""
    q = bigram().double()
    x = deck(q).to(device)
    q = q.to(device)
    L.MaximumLikelihood(q)(x, seed=0).loss.backward()
    assert q.conditional.logits.grad.abs().max() < 1e-12
    padded = -q.logits(x).log_softmax(-1).gather(-1, x[..., None]).sum((1, 2)).mean()
    assert torch.autograd.grad(padded, q.conditional.logits)[0].abs().max() > 0.01


@pytest.mark.parametrize(
    "make",
    [lambda: D.LSTM(3, 16, 2, seed=0), lambda: D.Transformer(3, 3, width=16, seed=0), lambda: D.NGramTable(3)],
    ids=["lstm", "transformer", "table"],
)
def test_learns_a_law(make, device, double):
    """The law itself is the optimum on a deck of it: KL(truth || learned), exact, falls to a twentieth at least."""
    truth = bigram()
    q = D.Autoregressive(make(), SPACE).to(device)
    p = gb.exact.probabilities(truth).detach()

    def divergence():
        log_q = q(gb.exact.states(SPACE).to(device)).detach().cpu()
        return float((p * (truth(gb.exact.states(SPACE)).detach() - log_q)).sum())

    before, objective = divergence(), L.MaximumLikelihood(q)
    optimiser = torch.optim.Adam(objective.parameters(), 0.03)
    L.fit(objective, deck(truth).to(device), optimiser=optimiser, steps=150, batch=64, seed=0, progress=False)
    assert -1e-12 < divergence() < before / 20


def test_padding_changes_nothing(device, double):
    network = D.LSTM(3, 6, seed=0).double()
    short, long = (D.Autoregressive(network, gb.Tokens(length, 3, 0)).to(device) for length in (4, 9))
    x = torch.tensor([[1, 2, 0, 0], [2, 0, 0, 0]], device=device)
    padded = torch.nn.functional.pad(x, (0, 5))
    assert torch.equal(L.MaximumLikelihood(short)(x, seed=0).loss, L.MaximumLikelihood(long)(padded, seed=0).loss)


def test_components_are_dropped_by_the_seed(device):
    q = D.Autoregressive(D.LSTM(3, 8, dropout=0.5, seed=0), SPACE).to(device)
    objective, x = L.MaximumLikelihood(q), torch.tensor([[1, 2, 1], [2, 2, 0]], device=device)
    loss = lambda seed: objective(x, seed=torch.Generator(device).manual_seed(seed)).loss  # noqa: E731
    assert torch.equal(loss(0), loss(0)) and not torch.equal(loss(0), loss(1)) and not torch.equal(loss(0), -q(x).mean())
