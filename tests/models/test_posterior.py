"""The posterior is the prior times the likelihood, and its mini-batch score is unbiased with the known variance."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.models import Posterior


def regression(batch_size=4):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(10, 2, dtype=torch.float64, generator=generator)
    y = x @ torch.tensor([1.0, -1.0], dtype=torch.float64) + torch.randn(10, dtype=torch.float64, generator=generator)
    prior = Normal.standard(2, dtype=torch.float64)
    return x, y, Posterior(prior, lambda w, x, y: -0.5 * (y - w @ x.T).square(), (x, y), batch_size)


def test_potential_and_score():
    x, y, model = regression()
    w = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    u, gradient = gb.score(model, w)
    assert torch.allclose(u, model.prior(w) - 0.5 * (y - w @ x.T).square().sum(-1))
    assert torch.allclose(gradient, -w + (y - w @ x.T) @ x)


def test_estimates_are_unbiased_with_the_known_variance():
    """20,000 mini-batches; 5.1 standard errors are passed at 4e-7. The mutant forgets the factor N / B."""
    x, y, model = regression()
    w, generator = torch.tensor([[0.5, 0.2]], dtype=torch.float64), torch.Generator().manual_seed(2)
    pairs = [model.stochastic_score(w, generator) for _ in range(20_000)]
    u, g = torch.cat([u for u, _ in pairs]), torch.cat([g for _, g in pairs])
    exact_u, exact = gb.score(model, w)

    def z(values, mean):
        return ((values.mean(0) - mean) / values.std(0) * len(values) ** 0.5).abs().max().item()

    assert z(g, exact[0]) < 5.1 and z(u, exact_u[0]) < 5.1
    assert z((g + w) * 0.4 - w, exact[0]) > 5.1
    each = ((y - w @ x.T).T * x).T.cov(correction=0).diagonal()
    square = (g - exact).square()
    assert z(square, 10**2 / 4 * each) < 5.1 and z(square, 10**2 / 10 * each) > 5.1
    assert model.fraction == 0.4


def test_data_is_saved_with_the_model():
    _, _, model = regression()
    assert {"data_0", "data_1"} <= set(model.state_dict())


def test_errors():
    prior, data = Normal.standard(1), torch.zeros(4)
    with pytest.raises(ValueError, match="batch_size: expected 1 to 4"):
        Posterior(prior, lambda t, d: d - t, data, 5)
    with pytest.raises(ValueError, match="same number of rows"):
        Posterior(prior, lambda t, d, e: d - t, (data, torch.zeros(3)), 2)
    with pytest.raises(TypeError, match="Real"):
        Posterior(gb.Binary(3).uniform(), lambda t, d: d - t, data, 2)
    with pytest.raises(ValueError, match=r"log_likelihood: expected shape \(2, 4\)"):
        Posterior(prior, lambda t, d: (t - d).sum(-1), data, 2)(torch.zeros(2, 1))
