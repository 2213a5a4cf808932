"""Stochastic approximation reaches a known optimum within the error that its own recursion has, to first order."""

import functools

import pytest
import torch
from torch import Tensor

import gibbsite as gb
from gibbsite.exact import probabilities, states, transition_matrix
from gibbsite.learn import Approximation, Contrastive, Moves, Persistent, fit
from gibbsite.sample import Gibbs

CHAINS, STEPS, RATE, HOLD = 64, 500, 0.25, 20


def decreasing(step):
    """0.25, then 5 / t."""
    return HOLD / max(HOLD, step)


def ising(field=0.0, coupling=0.0):
    edges = torch.tensor([[0, 1], [1, 2]])
    return gb.models.Ising.from_edges(3, edges, coupling, field)


def truth():
    model = ising()
    with torch.no_grad():
        model.field.copy_(torch.tensor([0.3, -0.2, 0.1]))
        model.pairs.weights.copy_(torch.tensor([0.4, -0.3]))
    return model


def statistics(x: Tensor) -> Tensor:
    """dU / d(field, weights), by hand."""
    s = 2.0 * x - 1
    return torch.cat((s, s[:, :2] * s[:, 1:]), -1)


def parameters(model) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@functools.cache
def error(moves=1) -> tuple[Tensor, Tensor]:
    """What is left of the start, and the standard deviation, after the linear recursion d <- (1 - gamma H) d + gamma noise.

    H is the covariance of the statistics; the noise of chains that move on has their long-run covariance,
    G = C_0 + sum_k (C_k + C_k^T) over CHAINS, C_k = cov(s(x_0), s(x_k)), from the exact transition matrix. For the mean
    over `moves` moves one update is that many moves, and G is divided by them.
    """
    model = truth()
    every, p, k = states(model.space), probabilities(model), transition_matrix(Gibbs(), model)
    s = statistics(every) - p @ statistics(every)
    cov = s.T @ (p[:, None] * s)
    one = torch.ones(8, 1) @ p[None]
    sums = s.T @ (p[:, None] * (torch.linalg.solve(torch.eye(8) - k + one, k @ s)))
    noise = (cov + sums + sums.T) / CHAINS / moves
    start, spread = -parameters(model), torch.zeros(5, 5)
    for step in range(STEPS):
        gamma = RATE * decreasing(step)
        keep = torch.eye(5) - gamma * cov
        start, spread = keep @ start, keep @ spread @ keep.T + gamma**2 * noise
    return start.abs(), spread.diagonal().sqrt()


def reached(model, objective, data, schedule=decreasing, steps=STEPS):
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    fit(objective, data, optimiser=optimiser, steps=steps, batch=len(data), seed=0, schedule=schedule, progress=False)
    return parameters(model)


def within(found: Tensor, wanted: Tensor, moves=1) -> bool:
    """5.2 standard deviations (1e-6 over five), beside what is left of the start."""
    start, sd = error(moves)
    return bool(((found - wanted).abs() <= start + 5.2 * sd).all())


def population():
    """States in proportion to the model's probabilities, as near as 500 rows come, and the exact maximum likelihood."""
    model = truth()
    counts = (500 * probabilities(model)).round().long()
    data = states(model.space).repeat_interleave(counts, 0)
    mean, theta, every = statistics(data).mean(0), parameters(model), statistics(states(model.space))
    for _ in range(20):  # Newton: the gradient is E s - mean, the Hessian cov s
        p = (every @ theta).softmax(0)
        away = every - p @ every
        theta = theta - torch.linalg.solve(away.T @ (p[:, None] * away), p @ every - mean)
    return data, theta


def chains():
    return truth().space.uniform().sample(CHAINS, seed=1)


def test_stochastic_maximum_likelihood_reaches_the_optimum(double):
    """Algorithm 6. Mutants: a step that stays, the wrong sign."""
    data, optimum = population()
    model = ising()
    assert within(reached(model, Contrastive(model, Persistent(Gibbs(), chains())), data), optimum)
    model = ising()
    assert not within(reached(model, Contrastive(model, Persistent(Gibbs(), chains())), data, lambda step: 4.0), optimum)
    model = ising()
    source = Approximation(
        model, Persistent(Gibbs(), chains()), lambda m, z: split(statistics(z) - statistics(data).mean(0))
    )
    assert not within(reached(model, source, data, steps=40), optimum)


def split(f: Tensor) -> list[Tensor]:
    return [f[:, :3], f[:, 3:]]


@pytest.mark.parametrize("moves", [1, 3])
def test_the_root_of_a_mean_field_is_found(moves, double):
    """Algorithms 4 and 5: E_p s = m. The mutant does not decrease its step."""
    model, optimum = ising(), parameters(truth())
    mean = probabilities(truth()) @ statistics(states(model.space))
    nothing = torch.zeros(1, 1)

    def objective():
        return Approximation(model, Moves(Gibbs(), chains(), moves), lambda m, z: split(mean - statistics(z)))

    assert within(reached(model, objective(), nothing), optimum, moves)
    assert not within(reached(model, objective(), nothing, lambda step: 4.0, 100), optimum, moves)


def test_moves_are_the_steps_of_the_kernel(double):
    """The states of a run with the same generator; the chains go on from the last."""
    model, source = truth(), Moves(Gibbs(), chains(), 4)
    drawn = source.draw(model, None, seed=torch.Generator().manual_seed(3))
    chain = gb.run(Gibbs(), model, chains(), steps=4, seed=torch.Generator().manual_seed(3))
    assert torch.equal(drawn.x, chain.samples.flatten(0, 1)) and torch.equal(source.x, chain.samples[-1])
    assert "x" in source.state_dict()


def test_a_field_of_another_shape_is_told(double):
    model = ising()
    objective = Approximation(model, Persistent(Gibbs(), chains()), lambda m, z: [statistics(z)])
    with pytest.raises(
        ValueError, match=r"field: expected one tensor .* a parameter, of shapes \[\(3,\), \(2,\)\], got \[\(5,\)\]"
    ):
        objective(None, seed=torch.Generator())
