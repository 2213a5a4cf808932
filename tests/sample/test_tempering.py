"""Parallel tempering: the ladder, and what it buys on a target with two far modes. Its law is in tests/oracle."""

import pytest
import torch

import gibbsite as gb

S = gb.sample


def test_the_ladder_rises_to_one_and_its_swap_rates_are_near_the_target():
    model = gb.models.Ising.lattice(6, coupling=0.6)
    x = model.space.uniform().sample(32, seed=0)
    tempering, x = S.tuned_ladder(S.Tempering(S.GibbsSweep(), model.space.uniform()), model, x, target=0.6, seed=1)
    assert tempering.betas[0] == 0 and tempering.betas[-1] == 1 and sorted(tempering.betas) == list(tempering.betas)
    runner, rates, generator = S.compiled(tempering, model, x), [], torch.Generator().manual_seed(2)
    state = runner.init(model, x)
    for _ in range(100):
        state, _ = runner.step(model, state, generator)
        rates.append(state.swap_rate)
    rate = torch.stack(rates[20:]).nanmean((0, 1))
    assert bool((rate > 0.4).all()) and bool((rate < 0.85).all())


def test_tempering_crosses_where_a_single_chain_stays():
    model = gb.models.Ising.lattice(5, coupling=0.9)
    x = torch.ones(16, 25, dtype=torch.int8)  # all up: by symmetry half of the mass is down
    plain = gb.run(S.GibbsSweep(), model, x, steps=300, seed=1)
    tempered = gb.run(
        S.Tempering(S.GibbsSweep(), model.space.uniform(), (0.0, 0.3, 0.45, 0.6, 0.8, 1.0)), model, x, steps=300, seed=1
    )
    down = [float((c.samples[150:].double().mean(-1) < 0.5).double().mean()) for c in (plain, tempered)]
    assert down[0] < 0.1 and 0.3 < down[1] < 0.7


@pytest.mark.parametrize("betas", [(1.0,), (0.0, 0.5), (0.5, 0.2, 1.0), (-0.1, 1.0)])
def test_ladders_that_do_not_rise_to_one_are_refused(betas):
    with pytest.raises(ValueError, match="rise from 0 or more to exactly 1"):
        S.Tempering(S.Gibbs(), gb.Binary(2).uniform(), betas)


def test_annealing_visits_the_betas_and_kernels_may_depend_on_them():
    model = gb.models.Ising.lattice(4, coupling=0.5)
    path = gb.Geometric(model.space.uniform(), model)
    seen = []

    def kernel(beta):
        seen.append(beta)
        return S.GibbsSweep()

    x = path.start.sample(8, seed=0)
    results = list(S.anneal(path, kernel, [0.0, 0.5, 1.0], x, seed=1))
    assert [beta for beta, _ in results] == seen == [0.0, 0.5, 1.0]
    assert torch.allclose(results[-1][1].u, model(results[-1][1].x).detach(), atol=1e-4)
