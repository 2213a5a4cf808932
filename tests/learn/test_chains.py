"""Chains that make negatives: the law of what CD, PCD and the reservoir draw, from the exact matrix of the kernel."""

import pytest
import torch

import gibbsite as gb
from gibbsite.exact import index, probabilities, states, transition_matrix
from gibbsite.sample import Gibbs

from ..statistics import fits
from .asymptotics import close, draws, flat, gradient

L = gb.learn
SPINS, EACH = gb.Binary(3), 2500
UNIFORM = gb.distributions.Bernoulli(torch.zeros(3))


def ising(scale=1.0, dtype=None):
    edges, weights = torch.tensor([[0, 1], [0, 2], [1, 2]]), scale * torch.tensor([0.5, -0.4, 0.3])
    return gb.models.Ising.from_edges(3, edges, weights, scale * torch.tensor([0.2, -0.1, 0.3]), dtype=dtype)


def matrix(model):
    return transition_matrix(Gibbs(), model).detach().double()


def block():
    """Chains at every state, as many at each."""
    return states(SPINS).repeat_interleave(EACH, 0)


def counts(x):
    """How often chains from each state (rows) ended at each state (columns)."""
    ends = index(SPINS, x.cpu()).view(8, EACH)
    return torch.stack([torch.bincount(row, minlength=8) for row in ends])


def seed(device):
    return torch.Generator(device).manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_contrastive_divergence_draws_k_steps_from_the_data(dtype, device):
    """Rows of K^k, chi-square at 1e-6, in the compiled loop (float32) and out of it. Mutants: a step more, one less."""
    model = ising(dtype=dtype).to(device)
    k = matrix(ising(dtype=torch.float64))
    found = counts(L.FromData(Gibbs(), steps=3).draw(model, block().to(device), seed=seed(device)).x)
    assert fits(found, k.matrix_power(3))
    assert not fits(found, k.matrix_power(2)) and not fits(found, k.matrix_power(4))


def test_persistent_chains_go_on_under_the_model_as_it_is_now(device):
    """Two updates, the model changed between them: K_1^2 K_2^2. Mutants: chains that start anew, or the old model."""
    first, second = ising().to(device), ising(-2.0).to(device)
    source = L.Persistent(Gibbs(), block(), steps=2).to(device)
    generator = seed(device)
    source.draw(first, None, seed=generator)
    x = source.draw(second, None, seed=generator).x
    found = counts(x)
    a, b = (matrix(ising(s, torch.float64)).matrix_power(2) for s in (1.0, -2.0))
    assert fits(found, a @ b) and torch.equal(source.x, x)
    assert not fits(found, b) and not fits(found, a @ a)


def test_the_reservoir_moves_each_slot_when_its_turn_comes(device):
    """Slots 0 to 4, of 8 x 2,500 chains each, two at a turn, three turns: slot 0 has moved twice, the others once."""
    size = 8 * EACH
    source = L.Reservoir(Gibbs(), block().repeat(5, 1), chains=2 * size, steps=1).to(device)
    model, k, generator = ising().to(device), matrix(ising(dtype=torch.float64)), seed(device)
    for _ in range(3):
        drawn = source.draw(model, None, seed=generator).x
    slots = source.x.split(size)
    assert torch.equal(drawn, torch.cat((slots[4], slots[0]))) and int(source.turn) == size
    assert fits(counts(slots[0]), k @ k) and not fits(counts(slots[0]), k)
    assert all(fits(counts(slot), k) for slot in slots[1:])


@pytest.mark.parametrize("make", ["persistent", "reservoir"])
def test_chains_start_anew_with_the_probability_stated(make, device):
    """Row x of the law is (0.7 delta_x + 0.3 uniform) K; the mutant has the two shares exchanged."""
    options = {"restart": 0.3, "start": UNIFORM.to(device)}
    if make == "persistent":
        source = L.Persistent(Gibbs(), block(), **options).to(device)
    else:
        source = L.Reservoir(Gibbs(), block(), chains=8 * EACH, **options).to(device)
    found, k = counts(source.draw(ising().to(device), None, seed=seed(device)).x), matrix(ising(dtype=torch.float64))

    def law(share):
        return ((1 - share) * torch.eye(8, dtype=torch.float64) + share / 8) @ k

    assert fits(found, law(0.3)) and not fits(found, law(0.7))


def statistics(x):
    """dU / d(field, weights) of `ising`, by hand."""
    s = 2.0 * x - 1
    return torch.cat((s, s[:, [0, 0, 1]] * s[:, [1, 2, 2]]), -1)


def test_contrastive_divergence_recovers_the_couplings(double):
    """CD-1 on fresh draws of p, whose expected update is 0 at the truth, p being stationary under K.

    The averaged iterate has the covariance A^-1 V A^-T / (steps x batch) (Polyak and Juditsky, 1992): V that of f(x) -
    f(x'), x ~ p, x' ~ K(x, .), and A the derivative of E_p f - E_(p K) f with respect to the parameters, by enumeration.
    The mutant is compared with couplings 10 % larger.
    """
    model, batch, steps, burn = ising(), 400, 1500, 300
    parameters, every, p = list(model.parameters()), states(SPINS), probabilities(model).detach()
    truth, f, k = flat(parameters), statistics(every), matrix(model)

    def drift(theta):
        moved = ising()
        with torch.no_grad():
            moved.field.copy_(theta[:3])
            moved.pairs.weights.copy_(theta[3:])
        return p @ f - p @ matrix(moved) @ f

    eps = 1e-5
    slopes = [(drift(truth + eps * e) - drift(truth - eps * e)) / (2 * eps) for e in torch.eye(6)]
    inverse = torch.linalg.inv(-torch.stack(slopes, 1))
    away = f[:, None] - f[None]
    noise = torch.einsum("x,xy,xyi,xyj->ij", p, k, away, away)
    law = inverse @ noise @ inverse.T / (steps * batch)
    objective, generator = L.Contrastive(model, L.FromData(Gibbs())), torch.Generator().manual_seed(0)
    data = draws(p, every, (steps + burn) * batch, seed=1).split(batch)
    optimiser, mean = torch.optim.SGD(parameters, lr=0.3), torch.zeros(6)
    with torch.no_grad():
        for parameter in parameters:
            parameter.zero_()
    for step, x in enumerate(data):
        optimiser.zero_grad()
        objective(x, seed=generator).loss.backward()
        optimiser.step()
        if step >= burn:
            mean += flat(parameters) / steps
    assert close(mean, truth, law) and not close(mean, 1.1 * truth, law)
    assert gradient(objective(data[0], seed=generator).loss, parameters).abs().max() > 0
