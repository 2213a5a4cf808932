"""Normalisers: what they are where they are known, and learned by NCE."""

import math

import pytest
import torch

import gibbsite as gb

from .asymptotics import minimise

L = gb.learn


class Words(gb.Model):
    """A weight a word and a weight a pair of neighbours, over the words before the eos (which it does not read)."""

    def __init__(self, space, seed=0):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.space = space
        self.word = torch.nn.Parameter(torch.randn(space.vocabulary, generator=g))
        self.pair = torch.nn.Parameter(torch.randn(space.vocabulary, space.vocabulary, generator=g))

    def forward(self, x):
        inside = torch.arange(self.space.length, device=x.device) < self.space.lengths(x)[..., None]
        singles = (self.word[x] * inside).sum(-1)
        return singles + (self.pair[x[..., :-1], x[..., 1:]] * inside[..., 1:]).sum(-1)


def test_per_length_sums_to_one_with_each_lengths_normaliser(double):
    """Sum over l and x of p is 1 once zeta_l = log Z_l - in the gauge of `first` - and pi_l is each length's share."""
    space = gb.Tokens(length=4, vocabulary=3, eos=1)
    model, pi = Words(space), torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4])
    every = gb.exact.states(space)
    lengths, u = space.lengths(every), Words(space)(every).detach()
    exact = torch.stack([u[lengths == length].logsumexp(0) for length in range(5)])
    log_z = L.PerLength(space, pi, first=float(exact[1]))
    with torch.no_grad():
        log_z.zeta.copy_(exact[2:])
    p = (model(every) - log_z(every)).exp().detach()
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    shares = torch.stack([p[lengths == length].sum() for length in range(5)])
    assert torch.allclose(shares, pi, atol=1e-12)
    with torch.no_grad():
        log_z.zeta += 0.1  # mutant
    assert abs(float((model(every) - log_z(every)).exp().sum().detach()) - 1) > 0.05


def test_per_length_starts_where_a_flat_potential_is_normalised(double):
    space = gb.Tokens(length=3, vocabulary=5, eos=2)
    log_z = L.PerLength(space, torch.full((4,), 0.25))
    every = gb.exact.states(space)
    lengths = space.lengths(every)
    flat_z = torch.stack([(-log_z(every))[lengths == length].logsumexp(0) for length in range(4)])
    assert torch.allclose(flat_z.exp(), torch.full((4,), 4 * 0.25), atol=1e-12)  # Z_1 = 4 is the gauge
    assert float(log_z.by_length[1].detach()) == 0 and "first" not in dict(log_z.named_parameters())


def test_a_random_field_of_several_lengths_is_learned_with_its_normalisers(double):
    """NCE with exact probabilities of data and noise, minimised: log p of every sequence is the true one to 1e-3.

    (The gradient is below 1e-5 where the minimiser stops, and the loss's curvature in log p, p q / (p + q), above 0.01.)

    zeta_1 stays 0, for the weight of a word has a constant to spare at every length; the mutant forgets log pi.
    """
    space = gb.Tokens(length=3, vocabulary=3, eos=0)
    every, pi = gb.exact.states(space), torch.tensor([0.0, 0.2, 0.5, 0.3])
    kept = every[space.lengths(every) > 0]
    lengths, true = space.lengths(kept), Words(space, seed=1)(kept).detach()
    log_p = torch.empty_like(true)
    for length in (1, 2, 3):
        at = lengths == length
        log_p[at] = pi[length].log() + true[at].log_softmax(0)
    q = torch.full_like(log_p, 1 / len(kept))

    def learned(log_z):
        model = Words(space, seed=2)
        parameters = [*model.parameters(), log_z.zeta]

        def loss():
            told = model(kept) - log_z(kept) - q.log()
            plus, minus = torch.nn.functional.softplus(-told), torch.nn.functional.softplus(told)
            return (log_p.exp() * plus + q * minus).sum()

        minimise(loss, parameters, steps=2000)
        return (model(kept) - log_z(kept)).detach()

    assert float((learned(L.PerLength(space, pi)) - log_p).abs().max()) < 1e-3
    pairs_only = L.PerLength(space, pi, first=0.0)
    pairs_only.forward = lambda x: pairs_only.by_length[1] + 0 * pairs_only.zeta.sum()  # mutant: one zeta for all lengths
    assert float((learned(pairs_only) - log_p).abs().max()) > 1e-2


def test_data_of_an_impossible_length_are_told():
    space = gb.Tokens(length=2, vocabulary=3, eos=0)

    class Uniform(gb.Distribution):
        def __init__(self):
            super().__init__()
            self.space = space

        def forward(self, x):
            return torch.full(x.shape[:-1], -math.log(len(gb.exact.states(space))))

        def sample(self, n, *, seed):
            every = gb.exact.states(space)
            return every[gb.random.integers(len(every), (n,), gb.random.generator(seed))]

    log_z = L.PerLength(space, torch.tensor([0.0, 0.0, 1.0]))
    objective = L.NCE(Words(space), Uniform(), log_z=log_z)
    assert bool(objective(torch.tensor([[1, 2]]), seed=0).loss.isfinite())
    with pytest.raises(ValueError, match="the data have a length that is impossible to PerLength"):
        objective(torch.tensor([[1, 0]]), seed=0)
