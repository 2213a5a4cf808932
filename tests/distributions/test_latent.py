"""The joint law of a generator with latent variables: normalised, drawn from, pushed forward, and its posterior."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import FixedScale, LatentNormal, Normal, OwnScale, SharedScale
from gibbsite.models import perceptron


def linear(device="cpu", scale=0.7):
    """x = A h + b + scale e: the joint law is normal, with a known covariance."""
    network = perceptron(1, 2)
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[0.8], [-0.5]]))
        network[0].bias.copy_(torch.tensor([0.3, -0.2]))
    generator = LatentNormal(FixedScale(network, scale), 1, 2).to(device)
    a, b = torch.tensor([[0.8], [-0.5]]), torch.tensor([0.3, -0.2])
    eye = torch.eye(2)
    covariance = torch.cat((torch.cat((torch.ones(1, 1), a.T), 1), torch.cat((a, a @ a.T + scale**2 * eye), 1)))
    return generator, Normal(torch.cat((torch.zeros(1), b)), covariance)


def test_the_joint_law_is_the_known_one(double):
    generator, known = linear()
    z = known.sample(20, seed=0)
    assert torch.allclose(generator(z), known(z), atol=1e-12)
    assert not torch.allclose(linear(scale=0.71)[0](z), known(z), atol=1e-3)


def test_draws_have_the_law(double):
    """Whitened second moments within 5.3 standard deviations, 1e-6 over nine; the mutant is another scale."""
    _, known = linear()
    for scale, right in ((0.7, True), (0.72, False)):
        z = linear(scale=scale)[0].sample(100_000, seed=0)
        w = known.scale.whiten(z - known.mean)
        freedom = (1 + torch.eye(3)).sqrt() / math.sqrt(len(w))
        second = ((w.T @ w / len(w) - torch.eye(3)) / freedom).abs().max()
        first = w.mean(0).abs().max() * math.sqrt(len(w))
        assert (max(second, first) < 5.3) == right
    assert not z.requires_grad


def test_push_maps_noise_to_x_with_a_graph(double):
    generator, _ = linear()
    e = generator.noise().sample(4, seed=0)
    h, noise = generator.split(e)
    x = generator.push(e)
    assert torch.allclose(x, generator.decoder.mean(h) + 0.7 * noise) and x.requires_grad
    assert torch.equal(generator.split(generator.sample(4, seed=0))[1], x.detach())


def test_the_posterior_is_the_joint_at_given_x(double):
    """Its gradient is that of the known normal law of h given x."""
    generator, known = linear()
    h, x = generator.split(known.sample(6, seed=0))
    u, gradient = gb.score(generator.posterior(x), h)
    a, b = torch.tensor([[0.8], [-0.5]]), torch.tensor([0.3, -0.2])
    precision = 1 + (a.T @ a) / 0.49
    mean = (x - b) @ a / 0.49 / precision
    assert torch.allclose(u, known(generator.join(h, x)))
    assert torch.allclose(gradient, -(h - mean) * precision)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_every_decoder_has_the_density_it_says(shape, double):
    """log q(h, x) against torch's normal densities, for states of several shapes and any batch dimensions."""
    size = math.prod(shape)
    net = torch.nn.Sequential(perceptron(2, size), torch.nn.Unflatten(-1, shape)) if shape else Scalar()
    both = perceptron(2, 2 * size)
    decoders = [FixedScale(net, 0.3), SharedScale(net, 0.4), *([OwnScale(both)] if len(shape) == 1 else [])]
    for decoder in decoders:
        generator = LatentNormal(decoder, 2, shape)
        z = generator.sample(3, seed=0)
        h, x = generator.split(z)
        assert x.shape == (3, *shape)
        mean, scale = decoder(h)
        expected = torch.distributions.Normal(mean, scale.expand(mean.shape)).log_prob(x)
        expected = expected.reshape(3, -1).sum(-1) + torch.distributions.Normal(0.0, 1.0).log_prob(h).sum(-1)
        assert torch.allclose(generator(z), expected)
        assert torch.allclose(generator(z.view(1, 3, -1)), expected[None])


class Scalar(torch.nn.Module):
    """h -> one number, without a dimension."""

    def forward(self, h):
        return torch.sin(h).sum(-1)


def test_mistakes_are_told():
    with pytest.raises(TypeError, match=r"decoder: expected a .*ConditionalNormal, got Sequential; such as FixedScale"):
        LatentNormal(perceptron(1, 2), 1, 2)
    generator = LatentNormal(FixedScale(perceptron(1, 3), 0.1), 1, 2)
    with pytest.raises(ValueError, match=r"decoder: expected means of shape \(4, 2\), got \(4, 3\)"):
        generator.sample(4, seed=0)
    with pytest.raises(ValueError, match="scale: expected a positive number"):
        FixedScale(perceptron(1, 3), 0)
    with pytest.raises(TypeError, match=r"mean: expected a torch.nn.modules.Module, got function"):
        SharedScale(lambda h: h)


def test_scales_are_learned_or_not():
    net = perceptron(2, 3)
    assert len(list(FixedScale(net, 1).parameters())) == 2
    assert len(list(SharedScale(net, 1).parameters())) == 3
    assert OwnScale(perceptron(2, 4), least=0.5)(torch.full((1, 2), -50.0))[1].min() >= 0.5
