"""Centred gradients against autograd through the machine written around its offsets."""

import pytest
import torch

import gibbsite as gb
from gibbsite.learn import Centred


def parts(model):
    return model.weight, model.visible_bias, model.hidden_bias


def stepped(model, data, mean, rate=0.3):
    """A step of SGD with the centred gradient of the negative log-likelihood."""
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    (model.log_z() - model(data).mean()).backward()
    Centred(model, mean)(optimiser)
    optimiser.step()
    return [p.detach() for p in parts(model)]


def by_hand(model, data, mean, rate=0.3, shifted=1.0):
    """The same by autograd of (W, b', c'), from which the machine is made; `shifted` other than 1 is the mutant."""
    weight, b, c = (p.detach() for p in parts(model))
    level = (c + weight @ mean).sigmoid() * shifted
    free = [weight.clone(), b + level @ weight, c + weight @ mean]
    free = [p.requires_grad_() for p in free]
    made = {"weight": free[0], "visible_bias": free[1] - level @ free[0], "hidden_bias": free[2] - free[0] @ mean}
    u = torch.func.functional_call(model, made, (data,))
    every = torch.func.functional_call(model, made, (gb.exact.states(model.space),))
    gradients = torch.autograd.grad(every.logsumexp(0) - u.mean(), free)
    weight, b, c = (p - rate * g for p, g in zip(free, gradients))
    return [weight, b - level @ weight, c - weight @ mean]


def test_a_step_is_that_of_the_machine_written_around_its_offsets(double):
    model = gb.models.RBM.random(5, 3, variance=0.5, seed=0).double()
    data = model.space.uniform().sample(40, seed=1)
    data[:, 0] = 1
    mean = data.double().mean(0)
    wanted, mutant = by_hand(model, data, mean), by_hand(model, data, mean, shifted=0.9)
    found = stepped(model, data, mean)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(found, wanted))
    assert not any(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, mutant))


def test_the_maximum_stays_where_it_is(double):
    """Where the gradient is 0 the centred one is 0 too, and nowhere else: the map is invertible."""
    model = gb.models.RBM.random(5, 3, variance=0.5, seed=0).double()
    for p in parts(model):
        p.grad = torch.zeros_like(p)
    Centred(model, torch.full((5,), 0.3))(torch.optim.SGD(model.parameters(), lr=0.1))
    assert all(p.grad.abs().max() == 0 for p in parts(model))
    model.hidden_bias.grad[0] = 1.0
    Centred(model, torch.full((5,), 0.3))(torch.optim.SGD(model.parameters(), lr=0.1))
    assert model.weight.grad.abs().max() > 0


def test_mistakes_are_named():
    model = gb.models.RBM(4, 2, seed=0)
    with pytest.raises(TypeError, match=r"expected .*RBM"):
        Centred(gb.models.Ising.lattice(2, coupling=0.1), torch.zeros(4))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="mean"):
        Centred(model, torch.zeros(3))
    with pytest.raises(ValueError, match="expected gradients of the weights and of both biases"):
        Centred(model, torch.zeros(4))(torch.optim.SGD(model.parameters(), lr=0.1))
