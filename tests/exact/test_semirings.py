"""The laws of semirings, and what their gradients are."""

import pytest
import torch

from gibbsite.exact.semirings import Expectation, KBest, Log, Max, Sample, log_sum_exp

INF = torch.inf
SEMIRINGS = [Log(), Max(), KBest(1), KBest(3), Expectation(), Sample(torch.Generator().manual_seed(0))]
every = pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda semiring: type(semiring).__name__)


def scores(semiring, *shape, seed=0):
    """Random scores, some -inf; for Expectation with a value each."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=g, dtype=torch.float64)
    x = x.masked_fill(torch.rand(shape, generator=g) < 0.3, -INF)
    pairs = torch.stack((x, torch.randn(shape, generator=g, dtype=torch.float64)))
    return pairs if isinstance(semiring, Expectation) else x


def elements(semiring, *shape, seed=0):
    """Sums of a few scores: what comes up inside an algorithm."""
    return semiring.sum(semiring.lift(scores(semiring, *shape, 4, seed=seed)))


def same(semiring, x, y):
    """Whether they are equal; the value beside a weight of 0 says nothing."""
    if isinstance(semiring, Expectation):
        x, y = (torch.stack((z[0], z[1].masked_fill(z[0] == -INF, 0))) for z in (x, y))
    return torch.allclose(x, y, atol=1e-12)


@every
def test_sums_and_products(semiring):
    a, b, c = (elements(semiring, 5, seed=seed) for seed in range(3))

    def add(*x):
        return semiring.sum(torch.stack(x, -1))

    times = semiring.times
    assert same(semiring, add(a, b), add(b, a)) and same(semiring, times(a, b), times(b, a))
    assert same(semiring, add(add(a, b), c), add(a, b, c)) and same(semiring, times(times(a, b), c), times(a, times(b, c)))
    assert same(semiring, times(a, add(b, c)), add(times(a, b), times(a, c)))


@every
def test_a_score_is_an_element_and_scales(semiring):
    x, score = elements(semiring, 5), scores(semiring, 5, seed=3)
    assert same(semiring, semiring.scale(x, score), semiring.times(x, semiring.lift(score)))
    level = semiring.level(x)
    top = semiring.scale(x, -level[..., None])
    top = top[0] if isinstance(semiring, KBest | Expectation) else top
    assert float(top.max()) == 0


@every
def test_sums_are_taken_along_any_dimension(semiring):
    x = semiring.lift(scores(semiring, 3, 4))
    assert same(semiring, semiring.sum(x, -2), semiring.sum(x.transpose(-1, -2)))


def test_gradients():
    """Shares in Log, one of several equals in Max, in KBest the n-th; in Sample a draw: a quarter each, to 6 deviations."""
    x = torch.tensor([1.0, 2.0, 2.0, -INF], dtype=torch.float64, requires_grad=True)

    def gradient(value):
        return torch.autograd.grad(value, x)[0]

    assert torch.allclose(gradient(Log().sum(x)), x.detach().softmax(0))
    assert sorted(gradient(Max().sum(x)).tolist()) == [0, 0, 0, 1] and gradient(Max().sum(x))[1:3].sum() == 1
    best = KBest(3)
    assert gradient(best.sum(best.lift(x))[2]).tolist() == [1, 0, 0, 0]
    assert gradient(best.sum(best.lift(x))[:2].sum()).tolist() == [0, 1, 1, 0]
    flat = torch.zeros(4000, 4, dtype=torch.float64, requires_grad=True)
    (drawn,) = torch.autograd.grad(Sample(torch.Generator().manual_seed(0)).sum(flat).sum(), flat)
    assert bool((drawn.sum(1) == 1).all()) and bool((drawn.sum(0) - 1000).abs().max() < 6 * (4000 * 0.25 * 0.75) ** 0.5)


def test_a_sum_of_nothing_has_no_gradient_and_no_nan():
    """The mutant is torch's logsumexp: its gradient is NaN, even where the result is not used."""
    gradients = []
    for function in (log_sum_exp, torch.logsumexp):
        x = torch.tensor([[-INF, -INF], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
        y = function(x, -1)
        (first,) = torch.autograd.grad(torch.where(y > -INF, y, 0).sum(), x, create_graph=True)
        gradients.append(torch.autograd.grad(first.square().sum(), x)[0])
    assert gradients[0].isfinite().all() and bool((gradients[0][0] == 0).all())
    assert torch.allclose(gradients[0][1], gradients[1][1]) and not gradients[1].isfinite().all()
