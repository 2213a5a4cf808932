"""Leapfrog trajectories go back the way they came; masses do what they say."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.sample import HMC, NUTS, trajectory


@pytest.mark.parametrize("mass", [None, torch.tensor([1.0, 4.0, 0.5]), torch.eye(3) + 0.2])
def test_leapfrog_goes_back(mass):
    mass = None if mass is None else mass.double()
    model = gb.Potential(lambda x: -0.25 * (x**4).sum(-1) - x.prod(-1).cos(), gb.Real(3))
    metric, generator = trajectory.metric(mass, model.space), torch.Generator().manual_seed(0)
    x = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    u, gradient = gb.score(model, x)
    start = trajectory.Point(x, metric.draw(x, generator), u, gradient)
    end, along = trajectory.leapfrog(model, start, metric, 0.05, 7)
    back, _ = trajectory.leapfrog(model, end._replace(momentum=-end.momentum), metric, 0.05, 7)
    assert torch.allclose(back.x, x, atol=1e-12) and torch.allclose(-back.momentum, start.momentum, atol=1e-12)
    assert along.isfinite().all() and torch.allclose(end.gradient, gb.score(model, end.x)[1])


@pytest.mark.parametrize("mass", [torch.tensor([1.0, 4.0]), torch.tensor([[2.0, 0.5], [0.5, 1.0]])])
def test_momenta_have_the_mass_as_covariance(mass):
    """20,000 draws; an entry's standard error is below mass_max^2 sqrt(2 / n), 5 of them are passed at 6e-7."""
    metric = trajectory.metric(mass, gb.Real(2))
    p = metric.draw(torch.zeros(20_000, 2), torch.Generator().manual_seed(0))
    wanted = mass if mass.ndim == 2 else mass.diag_embed()
    assert (p.T.cov() - wanted).abs().max() < 5 * 4 * (2 / 20_000) ** 0.5
    assert torch.allclose(metric.velocity(p), torch.linalg.solve(wanted, p.T).T, atol=1e-5)


def test_a_dense_mass_changed_in_place_is_seen():
    mass = torch.eye(2)
    before = trajectory.metric(mass, gb.Real(2)).velocity(torch.ones(1, 2))
    mass.mul_(2)
    assert torch.allclose(trajectory.metric(mass, gb.Real(2)).velocity(torch.ones(1, 2)), before / 2)


def test_slope_of_a_closed_score_is_that_of_differentiation():
    """And it is what is used: the same model behind a plain function gives the same numbers, by another way."""
    model = Normal(torch.ones(2, dtype=torch.float64), torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64))
    x = model.sample(5, seed=0)
    (u, gradient), (v, other) = trajectory.slope(model, x), trajectory.slope(lambda x: model(x), x)
    assert torch.allclose(u, v) and torch.allclose(gradient, other) and not gradient.requires_grad


def test_slope_of_a_constant_is_zero():
    u, gradient = trajectory.slope(lambda x: torch.zeros(len(x)), torch.ones(3, 2))
    assert torch.equal(u, torch.zeros(3)) and torch.equal(gradient, torch.zeros(3, 2))


@pytest.mark.parametrize("mass", [[1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]], ids=["diagonal", "dense"])
@pytest.mark.parametrize("make", [HMC, NUTS])
def test_a_mass_takes_the_type_of_x(make, mass):
    """A float64 mass on float32 chains moves them as its float32 copy does, and leaves them float32."""
    wide = torch.tensor(mass, dtype=torch.float64)
    model, x, ends = Normal.standard(2), torch.zeros(4, 2), []
    for kernel in (make(0.1, mass=wide), make(0.1, mass=wide.float())):
        ends.append(kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))[0].x)
    one, two = ends
    assert one.dtype == torch.float32 and torch.allclose(one, two, atol=1e-6)
