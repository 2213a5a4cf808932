"""Toy distributions integrate to 1 and their samples follow their densities."""

import math

import pytest
import torch
from scipy import integrate, stats

from gibbsite.distributions import Banana, Funnel, Moments, Pinwheel, Rings, twenty_five_gaussians, two_moons

TOYS = {
    "grid": (twenty_five_gaussians().double(), 3.0),
    "moons": (two_moons().double(), 3.0),
    "rings": (Rings().double(), 4.5),
    "pinwheel": (Pinwheel().double(), 3.5),
    "banana": (Banana(dtype=torch.float64), 25.0),
}


def quadrature(q, half, side=600):
    """Log density and area of the points of a midpoint grid."""
    line = (torch.arange(side, dtype=torch.float64) + 0.5) / side * 2 * half - half
    x = torch.cartesian_prod(line, line)
    return x, torch.cat([q(part) for part in x.split(1 << 18)]).exp() * (2 * half / side) ** 2


@pytest.mark.parametrize("name", TOYS)
def test_integrates_to_one_and_samples_follow(name):
    """Cells of a coarse grid by chi-square at 1e-6; the mutant draws every state 4 % too large.

    The midpoint rule is spectrally accurate for smooth densities; 1e-4 covers the cells of the narrow toys.
    """
    q, half = TOYS[name]
    x, mass = quadrature(q, half)
    assert abs(mass.sum().item() - 1) < 1e-4
    draws = q.sample(20_000, seed=0)
    assert chi_square(draws, x, mass, half) > 1e-6
    assert chi_square(1.04 * draws, x, mass, half) < 1e-6


def chi_square(draws, x, mass, half, bins=20):
    def cell(points):
        return (((points + half) / (2 * half) * bins).long().clamp(0, bins - 1) * torch.tensor([bins, 1])).sum(-1)

    expected = torch.zeros(bins**2, dtype=torch.float64).index_add(0, cell(x), mass) * len(draws)
    seen = cell(draws).bincount(minlength=bins**2).double()
    often = expected > 10
    groups = torch.cat((torch.stack((seen, expected), 1)[often], torch.stack((seen, expected), 1)[~often].sum(0)[None]))
    groups = groups[groups[:, 1] > 0.5]
    statistic = ((groups[:, 0] - groups[:, 1]) ** 2 / groups[:, 1]).sum().item()
    return stats.chi2.sf(statistic, len(groups) - 1)


@pytest.mark.parametrize("name", [name for name, (q, _) in TOYS.items() if isinstance(q, Moments)])
def test_moments_are_those_of_the_density(name):
    q, half = TOYS[name]
    x, mass = quadrature(q, half)
    mean = mass @ x
    assert torch.allclose(q.mean, mean, atol=1e-3)
    assert torch.allclose(q.covariance, (x - mean).T @ ((x - mean) * mass[:, None]), atol=2e-3, rtol=1e-3)


def test_twenty_five_gaussians_have_the_likelihood_of_the_paper():
    """-1.10 nats: -(log 25 + log(2 pi e 0.084^2)) where the components do not overlap, 5 standard errors of the mean."""
    q = twenty_five_gaussians().double()
    value = q(q.sample(100_000, seed=0)).mean().item()
    assert abs(value + math.log(25) + math.log(2 * math.pi * math.e * 0.084**2)) < 5 * 1 / 100_000**0.5
    assert round(value, 1) == -1.1


def test_funnel():
    """Its conditional law is normal: the density factorises, and moments are exact."""
    q = Funnel(3, scale=1.0, dtype=torch.float64)
    x = q.sample(100_000, seed=0)
    neck, rest = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(0.0, torch.exp(x[:, :1] / 2))
    assert torch.allclose(q(x), neck.log_prob(x[:, 0]) + rest.log_prob(x[:, 1:]).sum(-1), atol=1e-10)
    z = (x[:, 1:] ** 2 - math.exp(0.5)).mean(0) / (x[:, 1:] ** 2).std(0) * 100_000**0.5
    assert z.abs().max() < 5.0
    assert torch.allclose(q.covariance.diagonal(), torch.tensor([1.0, math.exp(0.5), math.exp(0.5)], dtype=torch.float64))


def test_rings_made_double_integrate_to_one():
    """Round the plane and along the radius, by adaptive quadrature; the mutant keeps its constants in float32."""
    q = Rings().double()

    def density(r):
        return 2 * math.pi * r * q(torch.tensor([r, 0.0], dtype=torch.float64)).exp().item()

    total = sum(integrate.quad(density, r - 0.5, r + 0.5, epsabs=1e-13)[0] for r in (0.5, 1.5, 2.5, 3.5, 4.5))
    assert total == pytest.approx(1, abs=1e-12)
    rounded = (2 * math.pi * Rings()._powers(q.radii)[1]).log()
    assert (rounded.float().double() - rounded).abs().max() > 1e-9


def test_toys_may_be_double_from_the_start():
    """0.084 in float32 is another number; `.double()` does not bring it back."""
    double = torch.float64
    assert twenty_five_gaussians(dtype=double).scales[0] == 0.084 != twenty_five_gaussians().double().scales[0]
    assert Rings((0.1, 0.7), dtype=double).radii.tolist() == [0.1, 0.7] != Rings((0.1, 0.7)).double().radii.tolist()
    assert Pinwheel(5, dtype=double).angles[1] == 2 * math.pi / 5 != Pinwheel(5).double().angles[1]
    moons = two_moons(dtype=double).means[0]
    assert moons[0].item() == pytest.approx(math.cos(math.pi / 128) - 0.5, rel=1e-15)
    assert Rings().radii.dtype == two_moons().means.dtype == torch.float32


@pytest.mark.parametrize("make", [lambda: Rings(()), lambda: Rings(width=0), lambda: Pinwheel(0), lambda: Funnel(1)])
def test_errors(make):
    with pytest.raises(ValueError, match="expected"):
        make()
