"""U of mini-batches by a compiled loop: the numbers and the gradient of the model itself, and who it leaves alone."""

import torch

import gibbsite as gb
from gibbsite.learn import compiled
from gibbsite.learn.compiled import potentials


def machine(dtype=torch.float32):
    return gb.models.RBM.random(40, 33, variance=0.2, seed=0).to(dtype)


def gradients(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


def weighted(model, a, b, of=potentials):
    """A loss in which every state has a slope of its own."""
    u, v = of(model, a, b) if of is potentials else (model(a), model(b))
    slopes = torch.linspace(-1, 2, len(a) + len(b), dtype=u.dtype)
    return (slopes * torch.cat((u, v))).sum()


def test_potentials_and_gradient_are_those_of_the_model_in_double_precision():
    """Each of the at most 90 rounded terms of a sum adds 6e-8 of what the terms add up to, below 1,000 here."""
    model, exact = machine(), machine().double()
    a, b = model.space.uniform().sample(30, seed=1), model.space.uniform().sample(50, seed=2)
    for u, x in zip(potentials(model, a, b), (a, b)):
        assert torch.allclose(u.double(), exact(x), rtol=0, atol=90 * 6e-8 * 1000)
    made = gradients(model, weighted(model, a, b))
    wanted = gradients(exact, weighted(exact, a, b, of=None))
    mutant = gradients(exact, weighted(exact, b[:30], torch.cat((b[30:], a)), of=None))  # slopes on the wrong states
    for one, other, wrong in zip(made, wanted, mutant, strict=True):
        assert torch.allclose(one.double(), other, rtol=0, atol=90 * 6e-8 * 1000)
        assert not torch.allclose(one.double(), wrong, rtol=0, atol=90 * 6e-8 * 1000)


def test_the_gradient_of_the_contrast_is_that_of_the_likelihood_by_enumeration():
    """With every state weighted by p as negatives; each number is a sum of 64 terms below 6, rounded at 6e-8 of it."""
    model = gb.models.RBM.random(6, 4, variance=0.5, seed=3)
    data, every = model.space.uniform().sample(50, seed=4), gb.exact.states(model.space)
    log_p = gb.exact.probabilities(model).log().float()
    exact = gb.models.RBM.random(6, 4, variance=0.5, seed=3).double()
    wanted = gradients(exact, exact.log_z() - exact(data).mean())
    made = gradients(model, gb.learn.contrastive(model, data, every, log_p))
    even = gradients(model, gb.learn.contrastive(model, data, every))  # the mutant: all states alike
    for one, other, wrong in zip(made, wanted, even, strict=True):
        assert torch.allclose(one.double(), other, rtol=0, atol=64 * 6e-8 * 6)
        assert not torch.allclose(wrong.double(), other, rtol=0, atol=64 * 6e-8 * 6)


def test_it_is_used_where_it_may_be_and_nowhere_else(monkeypatch):
    calls = []
    real = compiled.marginalise
    monkeypatch.setattr(compiled, "marginalise", lambda *arguments: (calls.append(1), real(*arguments)))
    model, x = machine(), machine().space.uniform().sample(3, seed=0)
    potentials(model, x, x)
    assert len(calls) == 1
    view = x.float().requires_grad_()
    others = [(machine(torch.float64), x), (model, view), (model, x[None]), (lambda x: x.float().sum(-1), x)]
    for other, states in others:
        (u,) = potentials(other, states)
        assert torch.equal(u, other(states)) and len(calls) == 1
    (u,) = potentials(model, view)
    assert torch.autograd.grad(u.sum(), view)[0].abs().sum() > 0


def test_weights_that_are_no_numbers_are_told():
    model = machine()
    x = model.space.uniform().sample(3, seed=0)
    with torch.no_grad():
        model.weight[0, 0] = torch.nan
    assert potentials(model, torch.ones_like(x))[0].isnan().all()


def test_the_gradient_can_be_differentiated_though_no_slope_asks_for_it():
    """The gradient of the squared norm of a gradient: sums over 34 parameters and 50 states, rounded at 6e-8 each."""
    model, exact = (gb.models.RBM.random(6, 4, variance=0.5, seed=3).to(dtype) for dtype in (torch.float32, torch.float64))
    x = model.space.uniform().sample(50, seed=4)

    def curvature(model, u):
        first = torch.autograd.grad(u.mean(), list(model.parameters()), create_graph=True)
        return gradients(model, sum(g.square().sum() for g in first) + 0 * sum(p.sum() for p in model.parameters()))

    made, wanted = curvature(model, potentials(model, x)[0]), curvature(exact, exact(x))
    for one, other in zip(made, wanted, strict=True):
        assert torch.allclose(one.double(), other, rtol=0, atol=34 * 50 * 6e-8 * 6)
    assert wanted[0].abs().max() > 34 * 50 * 6e-8 * 6  # a gradient that counts as constant gives 0, and fails
