"""Kneser-Ney: the probabilities of the formulas written out, of KenLM, and what small corpora do."""

from collections import Counter

import pytest
import torch

import gibbsite as gb

D = gb.distributions
SPACE = gb.Tokens(7, 5, 0)
SMALL = (0.5, 1.0, 1.5)


def sequences(n, seed=0, space=SPACE, scale=1.5):
    """Draws of one lopsided bigram chain, so that counts of counts are as in language."""
    v = space.vocabulary
    logits = scale * torch.randn(v + 1, v, generator=torch.Generator().manual_seed(1))
    logits[:, space.eos] -= 0.5
    return D.Autoregressive(D.NGramTable(v, 1, logits), space).sample(n, seed=seed)


def sentences(x, space=SPACE):
    """Lists with a start, `space.vocabulary`, before and with eos after what ended."""
    ended = [row.tolist()[: int(n) + 1] for row, n in zip(x, space.lengths(x))]
    return [[space.vocabulary, *row] for row in ended]


class Direct:
    """The equations of `kneser_ney`, one probability at a time, from dictionaries."""

    def __init__(self, x, order, space=SPACE, left=True, fallback=SMALL):
        self.order, self.v = order, space.vocabulary
        lists, self.counts = sentences(x, space), {}
        for n in range(1, order + 1):
            grams = [tuple(s[i : i + n]) for s in lists for i in range(len(s) - n + 1)]
            longer = {tuple(s[i : i + n + 1]) for s in lists for i in range(len(s) - n)}
            raw, before = Counter(grams), Counter(gram[1:] for gram in longer)
            own = n == order or not left
            a = {gram: raw[gram] if own or gram[0] == self.v else before[gram] for gram in raw}
            a.pop((self.v,), None)
            self.counts[n] = a
        self.discounts = {n: self.of(Counter(a.values()), fallback) for n, a in self.counts.items()}

    def of(self, t, fallback):
        try:
            d = [k - (k + 1) * t[k + 1] * t[1] / ((t[1] + 2 * t[2]) * t[k]) for k in (1, 2, 3)]
        except ZeroDivisionError:
            return fallback
        return d if t[4] and all(0 < value <= k for k, value in enumerate(d, 1)) else fallback

    def p(self, context, token):
        context = tuple(context)[len(context) - min(len(context), self.order - 1) :]
        n = len(context) + 1
        a = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == context}
        below = self.p(context[1:], token) if context else 1 / self.v
        if not a:
            return below
        total, d = sum(a.values()), [0, *self.discounts[n]]
        kept = max(a.get(token, 0) - d[min(a.get(token, 0), 3)], 0)
        return kept / total + sum(d[min(count, 3)] for count in a.values()) / total * below

    def log_p(self, x, space=SPACE):
        rows = sentences(x, space)
        steps = [[self.p(row[:i], row[i]) for i in range(1, len(row))] for row in rows]
        return torch.stack([torch.tensor(row, dtype=torch.float64).log().sum() for row in steps])


@pytest.mark.parametrize(("order", "n"), [(1, 40), (2, 40), (3, 400), (4, 40), (5, 3)])
def test_probabilities_are_those_of_the_equations(order, n, device):
    """On sequences it saw and on others; 1e-12 is rounding. Mutants: raw counts below the highest order, other discounts."""
    x = sequences(n)
    model, others = D.kneser_ney(x, SPACE, order=order).to(device), torch.cat((x[:20], sequences(30, seed=1)))
    found = model(others.to(device)).cpu()
    assert torch.allclose(found, Direct(x, order).log_p(others), atol=1e-12, rtol=1e-12)
    if order > 1:
        assert (found - Direct(x, order, left=False).log_p(others)).abs().max() > 1e-3
    if n == 3:
        assert (found - Direct(x, order, fallback=(0.5, 1, 1.4)).log_p(others)).abs().max() > 1e-4


def test_corpora_that_are_large_enough_have_discounts_of_their_own(device):
    """Every order of these 300 sequences does; the mutant falls back."""
    space = gb.Tokens(12, 500, 0)
    x = sequences(300, space=space, scale=3)
    slow, model = Direct(x, 3, space), D.kneser_ney(x, space, order=3).to(device)
    assert all(discounts != SMALL for discounts in slow.discounts.values())
    found, expected = model(x[:30].to(device)).cpu(), slow.log_p(x[:30], space)
    assert torch.allclose(found, expected, atol=1e-12, rtol=1e-12)
    slow.discounts[2] = SMALL
    assert (found - slow.log_p(x[:30], space)).abs().max() > 1e-3


def test_discounts_given_are_used():
    x = sequences(40)
    model, slow = D.kneser_ney(x, SPACE, order=3, discounts=(0.7, 0.7, 0.7)), Direct(x, 3)
    slow.discounts = dict.fromkeys((1, 2, 3), (0.7, 0.7, 0.7))
    assert torch.allclose(model(x), slow.log_p(x), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("eos", [0, 2])
@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_sums_to_one_over_all_sequences(order, eos, device):
    """V = 3, length 5; the mutant backs off for 1e-3 too much."""
    space = gb.Tokens(5, 3, eos)
    model = D.kneser_ney(sequences(3, space=space), space, order=order)
    assert abs(float(gb.exact.log_z(model.to(device)))) < 1e-12
    if order > 1:
        model.log_backoff[model.log_backoff != 0] += 1e-3
        assert abs(float(gb.exact.log_z(model))) > 1e-6


def test_a_sequence_that_fills_the_length_is_not_ended():
    """Counted and scored without an eos: p(eos | 1 1) is only that of other sequences."""
    space = gb.Tokens(2, 3, 0)
    model = D.kneser_ney(torch.tensor([[1, 1], [1, 1], [2, 0]]), space, order=2, discounts=(0.5, 0.5, 0.5))
    found = model.conditionals(torch.tensor([[1], [2]])).exp()
    unigram = model.conditionals_at(torch.tensor([0])).exp()[0]
    assert torch.allclose(unigram, torch.tensor([0.5, 1.5, 0.5], dtype=torch.float64) / 4 + 1.5 / 4 / 3)
    assert torch.allclose(found[0], torch.tensor([0, 1.5, 0], dtype=torch.float64) / 2 + 0.5 / 2 * unigram)
    assert torch.allclose(found[1], torch.tensor([0.5, 0, 0], dtype=torch.float64) + 0.5 * unigram)
