"""Schedules rise from 0 to 1; the adaptive one levels the variance of the steps' weights."""

from itertools import pairwise

import torch

import gibbsite as gb
from gibbsite.estimate.walk import increment

E, S = gb.estimate, gb.sample


def rises(betas, steps):
    return betas[0] == 0 and betas[-1] == 1 and len(betas) == steps + 1 and all(a < b for a, b in pairwise(betas))


def test_they_rise_from_0_to_1():
    assert all(rises(make(n), n) for make in (E.linear, E.sigmoid) for n in (1, 2, 7, 1000))
    s = E.sigmoid(10)
    assert all(abs(a + b - 1) < 1e-12 for a, b in zip(s, s[::-1])) and s[1] < 0.1


def unevenness(path, betas):
    """The largest over the mean standard deviation of a step's log weight, along long runs at each beta."""
    x, spreads = path.start.sample(400, seed=0), []
    for low, high in pairwise(betas):
        if low > 0:
            x = gb.run(S.GibbsSweep(), path.at(low), x, steps=20, thin=20, seed=1).samples[-1]
        spreads.append(float(increment(path, low, high, x).std()))
    return max(spreads) / (sum(spreads) / len(spreads))


def test_the_adaptive_one_levels_the_weights_and_the_linear_one_does_not():
    """Weights of 400 chains: a spread is known to 1 / sqrt(800), 3.5 %; the pilot's own spreads to 5 %, 6 sigma is 37 %."""
    model = gb.models.Ising.lattice(6, coupling=0.8)
    path = gb.Geometric(model.space.uniform(), model)
    betas = E.adaptive(path, S.GibbsSweep(), 40, pilot=200, chains=200, seed=0)
    assert rises(betas, 40)
    assert unevenness(path, betas) < 1.37
    assert unevenness(path, E.linear(40)) > 1.37


def test_it_gives_a_tighter_answer_at_the_same_cost():
    model = gb.models.Ising.lattice(6, coupling=0.8)
    path = gb.Geometric(model.space.uniform(), model)
    betas = E.adaptive(path, S.GibbsSweep(), 25, pilot=200, seed=0)
    errors = [gb.ais(path, S.GibbsSweep(), b, chains=400, seed=1).stderr for b in (betas, E.linear(25))]
    assert errors[0] < errors[1]


def test_a_step_that_never_varies_does_not_divide_by_nothing():
    flat = gb.Binary(3).uniform()
    betas = E.adaptive(gb.Geometric(flat, flat), S.Gibbs(), 4, chains=5, seed=0)
    assert rises(betas, 4) and torch.allclose(torch.tensor(betas), torch.tensor(E.linear(4)))
