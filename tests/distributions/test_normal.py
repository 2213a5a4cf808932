"""Normal laws against torch's densities and their own moments."""

import copy
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


def nearly_singular():
    """Two entries correlated by .99999 in float32, and a smooth process at 40 times in float64."""
    t = torch.linspace(0, 1, 40, dtype=torch.float64)
    smooth = torch.exp(-((t[:, None] - t) ** 2) / 0.08) + 1e-9 * torch.eye(40, dtype=torch.float64)
    return [torch.tensor([[1.0, 0.99999], [0.99999, 1.0]]), smooth]


@pytest.mark.parametrize("covariance", nearly_singular(), ids=["pair", "process"])
def test_ill_conditioned_covariances_keep_their_digits(covariance):
    """Ours and torch's whiten by the same factor, each to n eps cond(L) relative; squares double it, and there are two.

    The mutant multiplies by the precision matrix, as this class did: it loses cond(C) = cond(L)^2.
    """
    n, mean = len(covariance), torch.zeros(len(covariance), dtype=covariance.dtype)
    q, peer = Normal(mean, covariance), torch.distributions.MultivariateNormal(mean, covariance)
    x = q.sample(1000, seed=0)
    lower = torch.linalg.cholesky(covariance)
    largest = q.scale.whiten(x).square().sum(1).max()
    bound = float(2 * n * torch.finfo(x.dtype).eps / 2 * torch.linalg.cond(lower) * largest)
    assert (q(x) - peer.log_prob(x)).abs().max() < bound
    assert torch.equal(q.closed_score(-x)[0], q(-x)) and torch.allclose(q(x[0]), q(x)[0], rtol=1e-4)
    mutant = q.log_peak - 0.5 * (x @ torch.cholesky_inverse(lower) * x).sum(1)
    assert (mutant - peer.log_prob(x)).abs().max() > bound
    # (C + dC) g = -x: Cholesky and two solves are backward stable, with |dC| at most 3 n^2 eps |C| (Higham, 10.4)
    gradient = q.closed_score(x)[1].double()
    left = (gradient @ covariance.double() + x).norm(dim=1)
    assert (left / gradient.norm(dim=1)).max() < 3 * n**2 * torch.finfo(x.dtype).eps * covariance.norm()


def test_well_conditioned_covariances_take_one_product():
    scales = torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64)  # the units of the entries cost no digits
    assert Normal(MEAN, COVARIANCE * scales * scales[:, None]).scale.precision is not None
    assert Normal(torch.zeros(2), nearly_singular()[0]).scale.precision is None


def test_of_two_types_the_wider_is_taken():
    mixed, wide = Normal(MEAN, COVARIANCE.float()), Normal(MEAN, COVARIANCE.float().double())
    x = wide.sample(5, seed=0)
    assert mixed(x).dtype == torch.float64 and torch.equal(mixed(x), wide(x))
    for narrow in (Normal(MEAN.float(), COVARIANCE.float()), Normal(torch.zeros(2), nearly_singular()[0])):
        x = narrow.sample(5, seed=0).double()
        u, gradient = narrow.closed_score(x)
        assert u.dtype == gradient.dtype == narrow(x).dtype == torch.float64
        assert torch.allclose(u.float(), narrow(x.float()), rtol=1e-4)


@pytest.mark.parametrize(
    "make", [lambda: Normal.diagonal(torch.zeros(100), 0.3), lambda: Normal(MEAN.float(), COVARIANCE.float())]
)
def test_a_model_made_double_still_integrates_to_one(make):
    """Its density is that of its own moments, in double precision, not with constants rounded to single."""
    q = make().double()
    x = q.sample(10, seed=0)
    peer = torch.distributions.MultivariateNormal(q.mean, q.covariance)
    assert torch.allclose(q(x), peer.log_prob(x), rtol=0, atol=1e-11)
    single = make().float()(x.float()).double()
    assert not torch.allclose(single, peer.log_prob(x), rtol=0, atol=1e-11)


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
    covariance = nearly_singular()[0]
    q, other = Normal(torch.zeros(2), covariance), Normal(torch.zeros(2), torch.eye(2))
    other.load_state_dict(q.state_dict())  # from a precision matrix to triangular solves
    assert torch.equal(q(covariance), other(covariance)) and torch.equal(copy.deepcopy(q)(covariance), q(covariance))
