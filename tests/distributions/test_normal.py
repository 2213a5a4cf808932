"""Normal laws against torch's densities and their own moments."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal

COVARIANCE = torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]], dtype=torch.float64)
MEAN = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def test_density_is_that_of_torch(device):
    q = Normal(MEAN, COVARIANCE).to(device)
    x = q.sample(64, seed=0)
    peer = torch.distributions.MultivariateNormal(MEAN.to(device), COVARIANCE.to(device))
    assert torch.allclose(q(x), peer.log_prob(x), atol=1e-12)
    assert torch.allclose(q.covariance, COVARIANCE.to(device), atol=1e-14)


def test_diagonal_on_images(device):
    mean, scale = torch.arange(6.0).view(2, 3).to(device), (1 + torch.arange(6.0).view(2, 3)).to(device)
    q = Normal.diagonal(mean, scale)
    x = q.sample(5, seed=torch.Generator(device=device).manual_seed(0))
    assert torch.allclose(q(x), torch.distributions.Normal(mean, scale).log_prob(x).sum((-1, -2)), atol=1e-4)
    assert torch.equal(q.covariance, scale.flatten().square().diag_embed())
    assert q.space == gb.Real((2, 3)) and q(x[None]).shape == (1, 5)


def test_standard():
    q = Normal.standard((4, 2))
    assert torch.allclose(q(torch.zeros(1, 4, 2)), torch.tensor(-4 * math.log(2 * math.pi)))


def largest_z(x, mean, covariance):
    """The largest z-score of first and second moments."""
    lower = torch.linalg.cholesky(covariance)
    w = torch.linalg.solve_triangular(lower, (x - mean).T, upper=False)
    second = w @ w.T / len(x) - torch.eye(len(mean), dtype=x.dtype)
    spread = torch.ones_like(second) + torch.eye(len(mean), dtype=x.dtype)
    return torch.cat((w.mean(1), (second / spread.sqrt()).flatten())).abs().max().item() * math.sqrt(len(x))


def test_samples_have_the_moments():
    """12 z-scores beyond 5.3 have probability 1.4e-6 at most, 9 of them distinct: 1e-6. The mutant forgets a transpose."""
    q = Normal(MEAN, COVARIANCE)
    assert largest_z(q.sample(50_000, seed=0), MEAN, COVARIANCE) < 5.3
    noise = q.scale.whiten(q.sample(50_000, seed=0) - MEAN)
    assert largest_z(MEAN + noise @ q.scale.lower, MEAN, COVARIANCE) > 5.3


@pytest.mark.parametrize("q", [Normal(MEAN, COVARIANCE), Normal.diagonal(MEAN.view(3, 1), 0.3)])
def test_closed_score_is_that_of_differentiation(q):
    x = q.sample(7, seed=0)
    x = torch.stack((x, x + 1))
    z = x.clone().requires_grad_()
    u, gradient = q.closed_score(x)
    assert torch.equal(u, q(x)) and torch.allclose(gradient, torch.autograd.grad(q(z).sum(), z)[0], atol=1e-12)


def test_score():
    q = Normal(MEAN, COVARIANCE)
    x = q.sample(7, seed=0)
    assert torch.allclose(gb.score(q, x)[1], -torch.linalg.solve(COVARIANCE, (x - MEAN).T).T, atol=1e-12)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Normal(torch.zeros(2, 2), torch.eye(2)), "Normal.diagonal"),
        (lambda: Normal(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]])), "positive definite"),
        (lambda: Normal(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.0, 1.0]])), "symmetric"),
        (lambda: Normal.diagonal(torch.zeros(2), 0.0), "positive standard deviations"),
        (lambda: Normal.diagonal(torch.tensor([float("nan")]), 1.0), "finite"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_survives_a_state_dict():
    q, other = Normal(MEAN, COVARIANCE), Normal(torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64))
    other.load_state_dict(q.state_dict())
    x = q.sample(3, seed=0)
    assert torch.equal(q(x), other(x))
