"""Iterative scaling: it finds known weights, raises the likelihood, and has the largest entropy; Fisher's equality."""

import pytest
import torch

import gibbsite as gb

from .asymptotics import gradient

SPACE = gb.Categorical(3, 3)
SCALINGS = [gb.learn.generalised_scaling, gb.learn.improved_scaling]


def features(x):
    """Which of 3 values the first site has, that two neighbours agree (each pair), and how many sites are 2."""
    first = torch.nn.functional.one_hot(x[..., 0].long(), 3).double()[..., :2]
    agree = (x[..., 1:] == x[..., :-1]).double()
    return torch.cat((first, agree, (x == 2).double().sum(-1, keepdim=True)), -1)


def model(*weights):
    return gb.models.LogLinear(SPACE, features, torch.tensor(weights))


def means(m, base=None):
    every = gb.exact.states(SPACE)
    p = gb.exact.probabilities(m if base is None else gb.Product(base, m))
    return p @ features(every), p


@pytest.mark.parametrize("scaling", SCALINGS)
def test_finds_the_weights_from_their_means(scaling, double):
    """The features are independent, so the weights are the only ones, and wrong by twice gap / curvature at the most."""
    truth = model(0.5, -0.7, 1.2, -0.4, 0.3)
    targets, p = means(truth)
    f = features(gb.exact.states(SPACE))
    curvature = (f - targets).T @ (p[:, None] * (f - targets))
    room = 2 * 5**0.5 * 1e-10 / float(torch.linalg.eigvalsh(curvature).min())
    assert room < 1e-6
    found = model(*[0.0] * 5)
    done = scaling(found, targets, tolerance=1e-10)
    assert done.gap <= 1e-10 and done.sweeps < 10_000
    assert torch.allclose(found.weights, truth.weights, atol=room, rtol=0)
    early = model(*[0.0] * 5)
    assert scaling(early, targets, sweeps=3).gap > 1e-3  # the mutant stops early
    assert not torch.allclose(early.weights, truth.weights, atol=room, rtol=0)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_each_sweep_raises_the_likelihood(scaling, double):
    """log p of data with the targets as their means, after 1, ..., 30 sweeps; longer steps do not."""
    targets, _ = means(model(1.5, -0.7, 2.2, 1.4, 1.3))
    found, before, exact = model(*[0.0] * 5), -torch.inf, gb.exact.states(SPACE)

    def likelihood(weights):
        return float(targets @ weights - (features(exact) @ weights).logsumexp(0))

    for _ in range(30):
        scaling(found, targets, sweeps=1)
        after = likelihood(found.weights.detach())
        assert after > before
        before = after
    w, fell = torch.zeros(5), False
    for _ in range(30):  # mutant: C taken as 1 / 3
        p = (features(exact) @ w).softmax(0)
        step = w + 3 * (targets / (p @ features(exact))).log()
        fell, w = fell or likelihood(step) < likelihood(w), step
    assert fell


def test_improved_needs_fewer_sweeps(double):
    targets, _ = means(model(0.5, -0.7, 1.2, -0.4, 0.3))
    sweeps = [scaling(model(*[0.0] * 5), targets).sweeps for scaling in SCALINGS]
    assert sweeps[1] < sweeps[0]


@pytest.mark.parametrize("based", [False, True])
def test_nearest_to_the_base_among_laws_with_the_means(based, double):
    """Any other law with the same means, p + t d with d orthogonal to f and to 1, is farther from q (theorem B.1)."""
    g = torch.Generator().manual_seed(0)
    base = gb.distributions.Independent(torch.randn(3, 3, generator=g)) if based else None
    wanted = gb.exact.probabilities(gb.models.MLP(SPACE, (4,), seed=1).double())
    f = features(gb.exact.states(SPACE))
    found = model(*[0.0] * 5)
    gb.learn.improved_scaling(found, wanted @ f, base=base, tolerance=1e-12)
    _, p = means(found, base)
    assert torch.allclose(p @ f, wanted @ f, atol=1e-10)
    q = torch.full((27,), 1 / 27) if base is None else gb.exact.probabilities(base)

    def divergence(r):
        return float((r * (r / q).log()).sum())

    span = torch.linalg.qr(torch.cat((f, torch.ones(27, 1)), 1)).Q
    for _ in range(20):
        d = torch.randn(27, generator=g)
        d = d - span @ (span.T @ d)
        d = d * 0.3 * float(p.min()) / float(d.abs().max())
        assert divergence(p + d) > divergence(p)
    assert divergence(wanted) > divergence(p)


def test_fishers_equality(double):
    """E_p d/dw log p(x) = 0 (eq. B.7), and means of data equal to the model's are the maximum of the likelihood (B.6)."""
    m = model(0.5, -0.7, 1.2, -0.4, 0.3)
    _, p = means(m)
    log_p = m(gb.exact.states(SPACE)).log_softmax(0)
    assert gradient((p * log_p).sum(), [m.weights]).abs().max() < 1e-12
    assert gradient((p.flip(0) * log_p).sum(), [m.weights]).abs().max() > 1e-2  # mutant: another law


def test_fishers_equality_with_hidden_units(double):
    """d/dw log p(x) = E_(p(h|x)) d/dw log p(x, h) (eq. B.8), of a Boltzmann machine by enumeration of h."""
    rbm = gb.models.RBM(3, 2, seed=0).double()
    with torch.no_grad():
        for parameter in rbm.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    parameters, every = list(rbm.parameters()), gb.exact.states(rbm.space)
    x, h = torch.tensor([1.0, 0.0, 1.0]), gb.exact.states(gb.Binary(2)).double()
    joint = joint_potential(rbm, x, h)
    assert torch.allclose(joint.logsumexp(0), rbm(x.to(torch.int8)), atol=1e-12)
    log_z = rbm(every).logsumexp(0)
    posterior = joint.softmax(0).detach()
    expected = gradient((posterior * (joint - log_z)).sum(), parameters)
    assert torch.allclose(gradient(rbm(x.to(torch.int8)) - log_z, parameters), expected, atol=1e-12)
    uniform = gradient((joint - log_z).mean(), parameters)  # mutant: the prior of h
    assert not torch.allclose(expected, uniform, atol=1e-2)


def joint_potential(rbm, x, h):
    return h @ rbm.hidden_bias + x @ rbm.visible_bias + (h @ rbm.weight.reshape(2, 3)) @ x
