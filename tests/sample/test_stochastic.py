"""SGLD and SGHMC keep the laws that their own recursions have in closed form on a normal target, and the bias vanishes."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.models import Posterior
from gibbsite.sample import SGHMC, SGLD, Langevin, polynomial_decay

CHAINS = 50_000
PRECISION = 1.7


def target():
    return Normal(torch.zeros(1, dtype=torch.float64), torch.tensor([[1 / PRECISION]], dtype=torch.float64))


def sgld_variance(eps):
    return eps**2 / (1 - (1 - eps**2 * PRECISION / 2) ** 2)


def sghmc_covariance(eps, friction):
    """The fixed point S = A S A^T + Q of (x, p) -> (x + eps p, (1 - friction) p - eps precision x' + noise)."""
    a = torch.tensor([[1, eps], [-eps * PRECISION, 1 - friction - eps**2 * PRECISION]], dtype=torch.float64)
    q = torch.tensor([[0, 0], [0, 2 * friction]], dtype=torch.float64)
    s = torch.linalg.solve(torch.eye(4, dtype=torch.float64) - torch.kron(a, a), q.flatten())
    return s.view(2, 2)


def largest_z(v, covariance):
    """z-scores of the second moments of v, (n, k): 5 standard deviations are passed at 6e-7 each."""
    w = torch.linalg.solve_triangular(torch.linalg.cholesky(covariance), v.T, upper=False)
    k = len(covariance)
    second = (w @ w.T / len(v) - torch.eye(k, dtype=v.dtype)) / (1 + torch.eye(k, dtype=v.dtype)).sqrt()
    return second.abs().max().item() * math.sqrt(len(v))


def test_sgld_keeps_the_law_of_its_recursion():
    """The mutant is the target itself."""
    eps, model, generator = 0.8, target(), torch.Generator().manual_seed(0)
    kernel = SGLD(eps)
    state = kernel.init(model, math.sqrt(PRECISION * sgld_variance(eps)) * model.sample(CHAINS, seed=1))
    for _ in range(5):
        state, info = kernel.step(model, state, generator)
    variance = torch.tensor([[sgld_variance(eps)]], dtype=torch.float64)
    assert info.accepted.all() and (state.local.t == 5).all()
    assert largest_z(state.x, variance) < 5.1
    assert largest_z(state.x, model.covariance) > 5.1


@pytest.mark.parametrize("friction", [0.1, 1.0])
def test_sghmc_keeps_the_law_of_its_recursion(friction):
    """The mutant is the limit of small steps."""
    eps, model, generator = 0.4, target(), torch.Generator().manual_seed(0)
    covariance = sghmc_covariance(eps, friction)
    start = torch.randn(CHAINS, 2, dtype=torch.float64, generator=generator) @ torch.linalg.cholesky(covariance).T
    kernel = SGHMC(eps, friction)
    state = kernel.init(model, start[:, :1])
    state = state._replace(local=state.local._replace(momentum=start[:, 1:]))
    for _ in range(5):
        state, _ = kernel.step(model, state, generator)
    both = torch.cat((state.x, state.local.momentum), 1)
    assert largest_z(both, covariance) < 5.1
    assert largest_z(both, torch.tensor([[1 / PRECISION, 0], [0, 1]], dtype=torch.float64)) > 5.1


@pytest.mark.parametrize("friction", [0.1, 1.0])
def test_bias_vanishes_with_the_step(friction):
    sgld = [abs(sgld_variance(eps) * PRECISION - 1) for eps in (0.8, 0.4, 0.2)]
    sghmc = [abs(sghmc_covariance(eps, friction)[0, 0].item() * PRECISION - 1) for eps in (0.4, 0.2, 0.1)]
    for bias in (sgld, sghmc):
        assert bias[1] < 0.3 * bias[0] and bias[2] < 0.3 * bias[1]


def test_sgld_with_the_exact_score_is_langevin():
    model, ends = target(), []
    for kernel in (SGLD(0.3), Langevin(0.3), SGLD(lambda t: torch.full_like(t, 0.3))):
        state, generator = kernel.init(model, torch.ones(3, 1, dtype=torch.float64)), torch.Generator().manual_seed(0)
        for _ in range(3):
            state, _ = kernel.step(model, state, generator)
        ends.append(state.x)
    assert torch.allclose(ends[0], ends[1], atol=1e-12) and torch.allclose(ends[0], ends[2], atol=1e-12)


def posterior(batch_size):
    data = torch.tensor([0.3, -1.0, 2.0, 0.7, 1.1, -0.4, 0.9, 1.6], dtype=torch.float64)
    return data, Posterior(Normal.standard(1, dtype=torch.float64), lambda t, d: -0.5 * (d - t).square(), data, batch_size)


def test_sgld_on_mini_batches():
    """With eps^2 (N + 1) = 2 the recursion forgets: draws in time are independent, of variance eps^2 + eps^4/4 N^2 V / B.

    z-scores with empirical standard errors, 5.1 passed at 4e-7. The mutant leaves the mini-batch's noise out.
    """
    data, model = posterior(2)
    n, eps = len(data), math.sqrt(2 / (len(data) + 1))
    variance = eps**2 + eps**4 / 4 * n**2 * data.var(correction=0).item() / 2
    kernel, generator = SGLD(eps), torch.Generator().manual_seed(0)
    state, draws = kernel.init(model, torch.zeros(1, 1, dtype=torch.float64)), []
    for _ in range(8_000):
        state, info = kernel.step(model, state, generator)
        draws.append(state.x)
    x = torch.cat(draws[2:]) - data.sum() / (n + 1)
    assert info.cost.gradients == 0.25

    def z(square):
        return abs((x.square() - square).mean() / x.square().std() * math.sqrt(len(x))).item()

    assert abs(x.mean() / x.std() * math.sqrt(len(x))) < 5.1 and z(variance) < 5.1
    assert z(eps**2) > 5.1


def test_known_gradient_noise_is_taken_off():
    """The noise put in is 2 a - eps^2 V; p after one step from rest at the mode is that noise alone."""
    eps, friction, noise = 0.5, 0.2, 0.6
    kernel, model = SGHMC(eps, friction, gradient_variance=noise), target()
    state = kernel.init(model, torch.zeros(CHAINS, 1, dtype=torch.float64))
    state, _ = kernel.step(model, state, torch.Generator().manual_seed(0))
    wanted = torch.tensor([[2 * friction - eps**2 * noise]], dtype=torch.float64)
    assert largest_z(state.local.momentum, wanted) < 5.1
    assert largest_z(state.local.momentum, torch.tensor([[2 * friction]], dtype=torch.float64)) > 5.1


def test_schedule():
    kernel, model = SGLD(polynomial_decay(0.5, offset=2.0, power=0.5)), target()
    state, generator = kernel.init(model, torch.zeros(20_000, 1, dtype=torch.float64)), torch.Generator().manual_seed(0)
    state, _ = kernel.step(model, state, generator)
    assert largest_z(state.x, torch.tensor([[0.5**2 / 2]], dtype=torch.float64)) < 5.1
    shape = torch.zeros(3, 2, 2, dtype=torch.float64)
    image = SGHMC(polynomial_decay(0.1)).init(Normal.standard((2, 2), dtype=torch.float64), shape)
    assert image.local.momentum.shape == shape.shape


@pytest.mark.parametrize(
    "make",
    [
        lambda: SGLD(0.0),
        lambda: SGHMC(0.1, friction=0.0),
        lambda: SGHMC(0.1, friction=1.5),
        lambda: SGHMC(0.1, gradient_variance=-1.0),
        lambda: polynomial_decay(-1.0),
        lambda: polynomial_decay(1.0, offset=0.0),
    ],
)
def test_errors(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_needs_real_states():
    with pytest.raises(TypeError, match="Real"):
        SGLD(0.1).init(gb.models.Ising.lattice(2, coupling=0.1, periodic=False), torch.zeros(1, 4, dtype=torch.int8))


@pytest.mark.parametrize("make", [SGLD, SGHMC])
def test_a_schedule_may_return_one_number(make):
    model, x, ends = target(), torch.ones(3, 1, dtype=torch.float64), []
    for kernel in (make(lambda t: 0.1), make(0.1)):
        ends.append(kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))[0].x)
    assert torch.equal(*ends)
