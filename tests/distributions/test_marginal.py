"""The law of x of a generator: its density against a known one, without bias at any size of h, its draws, its mass."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import FixedScale, LatentNormal, Marginal, Normal, OwnScale
from gibbsite.distributions import marginal as module
from gibbsite.models import perceptron

from ..statistics import fits


def linear(latent, scale=0.4):
    """x = A h + b + scale e, so that x ~ N(b, A A' + scale^2 I)."""
    network = perceptron(latent, 2, seed=0)
    a, b = network[0].weight.detach(), network[0].bias.detach()
    return LatentNormal(FixedScale(network, scale), latent, 2), Normal(b, a @ a.T + scale**2 * torch.eye(2))


@pytest.mark.parametrize("latent", [1, 2, 20])
def test_the_density_has_no_bias_and_the_error_that_scramblings_show(latent, double):
    """64 scramblings of 128 nodes: the mean of q(x) within 5.5 of its errors, t of 63 degrees at 1e-6 (7 points: 5.8).

    The mutant is a generator whose scale is 10 % larger.
    """
    generator, known = linear(latent)
    x = known.sample(7, seed=1)

    def z(own):
        found = torch.stack([Marginal(own, 128, seed=s)(x).exp() for s in range(64)])
        return float(((found.mean(0) - known(x).exp()) / found.std(0) * 8).abs().max())

    assert z(generator) < 5.8
    with torch.no_grad():
        generator.decoder.scale.mul_(1.1)
    assert z(generator) > 5.8


def test_a_net_in_the_plane_beats_independent_draws(double, monkeypatch):
    """The mean of log q(x) with 4096 nodes, 16 scramblings: a smaller variance than the mutant's, which draws nodes.

    The ratio of two such variances exceeds 15 once in a million when they are the same: F of 16 and 16 degrees.
    """
    generator, known = linear(2, 1.0)
    x = known.sample(50, seed=1)

    def variance():
        errors = [(Marginal(generator, 4096, seed=s)(x) - known(x)).mean() for s in range(16)]
        return float(torch.stack(errors).square().mean())

    net = variance()
    monkeypatch.setattr(module, "normal_net", lambda n, dims, seed: Normal.standard(dims).sample(n, seed=seed))
    assert 15.02 * net < variance()


@pytest.mark.parametrize("decoder", [FixedScale(perceptron(2, 2, (8,)), 0.3), OwnScale(perceptron(2, 4, (8,)), 0.1)])
def test_it_is_normalised_and_its_draws_have_its_law(decoder):
    """Bins of both axes, chi-square at 1e-6; the mutant is drawn from other nodes, far fewer."""
    generator = LatentNormal(decoder, 2, 2)
    q = Marginal(generator, 64, seed=0)
    mass = gb.estimate.integrate(q, -8, 8, 301)
    assert abs(mass.value) < 1e-9 and mass.trusted
    edges = torch.linspace(-8, 8, 321, dtype=torch.float64)
    middle = (edges[1:] + edges[:-1]) / 2
    density = q(torch.cartesian_prod(middle, middle)).exp().view(320, 320)

    def counts(own):
        return torch.stack([torch.histc(own.sample(20_000, seed=3)[:, d], 320, -8, 8) for d in (0, 1)])

    masses = torch.stack([density.sum(1), density.sum(0)])
    masses = masses / masses.sum(1, keepdim=True)
    assert fits(counts(q), masses) and not fits(counts(Marginal(generator, 2, seed=1)), masses)


def test_it_evaluates_any_batch_in_parts_as_a_whole(monkeypatch):
    q = Marginal(LatentNormal(FixedScale(perceptron(1, 3), 0.3), 1, (3, 1)), 16, seed=0)
    x = q.sample(12, seed=0).view(3, 4, 3, 1)
    whole = q(x)
    monkeypatch.setattr(module, "_MEMORY", 40)
    assert whole.shape == (3, 4) and torch.allclose(q(x), whole) and x.dtype == whole.dtype == torch.float64
    slow = [
        torch.stack([-0.5 * ((x[i, j].flatten() - m) / s).square().sum() - s.log().sum() for m, s in zip(q.means, q.scales)])
        for i in range(3) for j in range(4)
    ]  # fmt: skip
    exact = torch.stack([value.logsumexp(0) for value in slow]) - math.log(16) - 1.5 * math.log(2 * math.pi)
    assert torch.allclose(whole.flatten(), exact)
