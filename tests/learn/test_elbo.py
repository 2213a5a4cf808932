"""The ELBO against the exact likelihood of a linear generator, and its gradient against that of its closed form."""

import math

import pytest
import torch

from gibbsite.distributions import FixedScale, LatentNormal, Normal, OwnScale
from gibbsite.learn import ELBO, elbo
from gibbsite.models import perceptron

from .asymptotics import close, covariance, flat, hessian, minimise

A, B, S, DRAWS = torch.tensor([[0.8], [-0.5]]), torch.tensor([0.3, -0.2]), 0.7, 100_000


def parts(exact):
    """x = A h + B + S e; an encoder that is the exact posterior (normal, of mean linear in x), or an untrained one."""
    decoder, both = perceptron(1, 2), perceptron(2, 2, seed=1)
    precision = 1 + float(A.square().sum()) / S**2
    with torch.no_grad():
        decoder[0].weight.copy_(A)
        decoder[0].bias.copy_(B)
        if exact:
            weight = A.T / S**2 / precision
            both[0].weight.copy_(torch.cat((weight, torch.zeros(1, 2))))
            both[0].bias.copy_(torch.tensor([-(weight @ B).item(), math.log(precision**-0.5 - 1e-3)]))
    return LatentNormal(FixedScale(decoder, S), 1, 2), OwnScale(both)


def log_likelihood(x):
    return Normal(B, A @ A.T + S**2 * torch.eye(2))(x)


def test_the_bound_is_below_the_likelihood_and_tight_at_the_posterior(double):
    """At one x, by many draws: equal for the exact encoder within 4.9 standard errors, and below it for another.

    The mutant leaves the divergence out.
    """
    x = torch.tensor([[1.2, 0.4]]).expand(DRAWS, 2)
    gaps = {}
    for exact in (True, False):
        reconstruction, divergence = elbo(*parts(exact), x, seed=0)
        reconstruction = reconstruction.detach()
        terms = reconstruction - divergence.detach()
        gaps[exact] = float(log_likelihood(x[0]) - terms.mean()), float(terms.std()) / DRAWS**0.5
        assert float(log_likelihood(x[0]) - reconstruction.mean()) < -4.9 * gaps[exact][1] or not exact
    assert abs(gaps[True][0]) < 4.9 * gaps[True][1]
    assert gaps[False][0] > 4.9 * gaps[False][1]


def closed_form(generator, encoder, x):
    """E_h log N(x; A h + B, S^2) - KL, without a draw: the trace term is that of h's variance."""
    mean, scale = encoder(x)
    expected = generator.log_observed(mean, x)
    weight = generator.decoder.mean[0].weight
    expected = expected - 0.5 * (weight.square().sum() * scale.square()).sum(-1) / S**2
    return expected - torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, scale), torch.distributions.Normal(0.0, 1.0)
    ).sum(-1)


def test_the_gradient_is_that_of_the_closed_form(double):
    """Each entry within 5.4 standard errors (1e-6 over 12) measured over batches; the mutant is of half the scale."""
    generator, encoder = parts(False)
    x, parameters = torch.tensor([[1.2, 0.4], [-0.3, 1.0]]), [*generator.parameters(), *encoder.parameters()]
    objective = ELBO(generator, encoder)

    def flat(loss):
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])

    seed = torch.Generator().manual_seed(0)
    batches = torch.stack([flat(objective(x.repeat(500, 1), seed=seed).loss) for _ in range(200)])
    mean, error = batches.mean(0), batches.std(0) / 200**0.5
    exact = flat(-closed_form(generator, encoder, x).mean())
    assert ((mean - exact).abs() < 5.7 * error + 1e-12).all()  # Student's t of 199 degrees of freedom
    encoder.least = -0.5 * float(encoder(x)[1].detach().mean())  # another scale
    wrong = flat(-closed_form(generator, encoder, x).mean())
    assert not ((mean - wrong).abs() < 5.7 * error + 1e-12).all()


def test_recovers_a_linear_generator_and_its_posterior(double):
    """20,000 pairs (x, e) of a state and a draw of the encoder's noise: all weights within the asymptotic ellipse at 1e-6.

    The bound is reached at the truth, for the encoder can be the exact posterior; the law is that of the minimiser of a mean
    over the pairs, its two halves by closed-form terms of 8,000 of them. The mutant's divergence weighs a tenth too little.
    """
    generator, encoder = parts(True)
    parameters, n = [*generator.parameters(), *encoder.parameters()], 20_000
    h = torch.randn(n, 1, generator=torch.Generator().manual_seed(1))
    a, b = A.double(), B.double()
    x = h @ a.T + b + S * torch.randn(n, 2, generator=torch.Generator().manual_seed(2))
    e, truth = torch.randn(n, 1, generator=torch.Generator().manual_seed(3)), flat(parameters)

    def of_pair(x, e):
        mean, scale = encoder(x)
        away = x - generator.decoder.mean(mean + scale * e)
        divergence = 0.5 * (mean**2 + scale**2 - 1).sum(1) - scale.log().sum(1)
        return 0.5 * away.square().sum(1) / S**2 + divergence

    rows, curvature = [], torch.zeros(len(truth), len(truth))
    for part in range(8):
        values = of_pair(*(t[1000 * part : 1000 * (part + 1)] for t in (x, e)))
        each = torch.autograd.grad(values, parameters, torch.eye(1000), is_grads_batched=True, retain_graph=True)
        rows.append(torch.cat([g.flatten(1) for g in each], 1))
        curvature += hessian(values.mean(), parameters) / 8
    law = covariance(curvature, torch.cat(rows).T.cov(), n)

    def found(weight):
        def loss():
            reconstruction, divergence = elbo(generator, encoder, x, seed=3)
            return (weight * divergence - reconstruction).mean()

        return minimise(loss, parameters)

    assert close(found(1.0), truth, law) and not close(found(0.9), truth, law)


def test_data_are_checked_and_taken_in_the_generators_type():
    """float64 data of a float32 generator; the objective's space lets `fit` check all data before the first step."""
    generator, encoder = parts(True)
    x = torch.tensor([[1.2, 0.4], [0.1, -1.0]])
    losses = [ELBO(generator, encoder)(data, seed=torch.Generator().manual_seed(0)).loss for data in (x, x.double())]
    assert torch.equal(*losses) and losses[1].dtype == torch.float32
    assert ELBO(generator, encoder).space == generator.observed
    with pytest.raises(ValueError, match=r"x: expected finite floats of shape \(\*, 2\), got"):
        elbo(generator, encoder, torch.zeros(4, 3), seed=0)


def test_an_encoder_of_another_latent_is_told():
    generator, _ = parts(True)
    with pytest.raises(ValueError, match=r"encoder: expected means of shape \(4, 1\), got \(4, 3\)"):
        elbo(generator, OwnScale(perceptron(2, 6)), torch.zeros(4, 2), seed=0)
    with pytest.raises(TypeError, match="encoder: expected a"):
        ELBO(generator, perceptron(2, 2))
