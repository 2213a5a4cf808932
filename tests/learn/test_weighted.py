"""Weighted negatives: the SNIS gradient against autograd of the estimated likelihood, and against the exact one."""

import pytest
import torch

import gibbsite as gb
from gibbsite.exact import probabilities, states
from gibbsite.learn import Contrastive, Weighted

DRAWS = 100_000


def setting():
    model = gb.models.Ising.lattice((2, 3), coupling=0.4, field=0.2)
    return model, gb.distributions.Bernoulli(torch.tensor([0.5, -0.3, 0.0, 0.8, 0.2, -0.6]))


def gradient(loss, model):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def test_the_gradient_is_that_of_the_likelihood_with_log_z_from_the_same_draws(double):
    """Equal to autograd of its definition; the mutant forgets the weights."""
    model, q = setting()
    data, source = model.space.uniform().sample(16, seed=1), Weighted(q, 50)
    found = gradient(Contrastive(model, source)(data, seed=torch.Generator().manual_seed(2)).loss, model)
    x = source.draw(model, data, seed=torch.Generator().manual_seed(2)).x
    estimated_log_z = (model(x) - q(x).detach()).logsumexp(0)
    defined = gradient(estimated_log_z - model(data).mean(), model)
    assert torch.allclose(found, defined, atol=1e-12)
    unweighted = gradient(gb.learn.contrastive(model, data, x), model)
    assert not torch.allclose(unweighted, defined, atol=1e-12)


def test_the_gradient_tends_to_the_exact_one(double):
    """Each entry within 5.5 standard deviations of the ratio's delta method, exact by enumeration; the mutant is q itself.

    5.5 is the normal quantile of 1e-6 over the entries. Added is a bound of the
    ratio's bias to first order, E_q[(p/q)^2 |x - mean|] / n.
    """
    model, q = setting()
    data = model.space.uniform().sample(16, seed=1)
    every, p = states(model.space), probabilities(model).detach()
    exact = gradient(model(every).logsumexp(0) - model(data).mean(), model)
    rows = torch.stack([gradient(model(x[None]).sum(), model) for x in every])
    ratio, away = (p / q(every).exp()).detach(), rows - p @ rows
    sd = ((p * ratio) @ away.square()).sqrt() / DRAWS**0.5
    bias = (p @ ratio) * away.abs().max() / DRAWS
    x, log_weight, *_ = Weighted(q, DRAWS).draw(model, data, seed=torch.Generator().manual_seed(0))

    def right(loss):
        return bool(((gradient(loss, model) - exact).abs() <= 5.5 * sd + bias).all())

    assert right(gb.learn.contrastive(model, data, x, log_weight))
    assert not right(gb.learn.contrastive(model, data, x))


def test_the_effective_sample_size_is_reported(double):
    model, q = setting()
    data = model.space.uniform().sample(4, seed=0)
    metrics = Contrastive(model, Weighted(q, 200))(data, seed=torch.Generator().manual_seed(0)).metrics
    assert 1 <= metrics["ess"] < 200
    same = gb.distributions.Bernoulli(torch.zeros(6))
    flat = Contrastive(gb.distributions.Bernoulli(torch.zeros(6)), Weighted(same, 200))
    assert flat(data, seed=torch.Generator().manual_seed(0)).metrics["ess"] == pytest.approx(200)


def test_mistakes_are_told():
    model, q = setting()
    data = model.space.uniform().sample(4, seed=0)
    elsewhere = Weighted(gb.distributions.Bernoulli(torch.zeros(5)), 3)
    with pytest.raises(ValueError, match="proposal: expected a distribution on Binary"):
        elsewhere.draw(model, data, seed=torch.Generator())
    nowhere = gb.Potential(lambda x: torch.where(x.sum(-1) > 99, 0.0, -torch.inf), model.space)
    with pytest.raises(ValueError, match="none of its draws is possible"):
        Weighted(q, 3).draw(nowhere, data, seed=torch.Generator())
