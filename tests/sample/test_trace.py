"""gb.sample.trace keeps the statistic that a stored run would give."""

import pytest
import torch

import gibbsite as gb

S = gb.sample


def test_a_trace_is_the_statistic_of_the_run():
    model = gb.models.Ising.lattice(4, coupling=0.2)
    x, told = model.space.uniform().sample(4, seed=0), []
    kept = S.trace(
        S.GibbsSweep(), model, x, statistic=lambda x: x.sum(-1), steps=40, warmup=5, thin=2, seed=1, progress=told.append
    )
    chain = gb.run(S.GibbsSweep(), model, x, steps=40, warmup=5, thin=2, seed=1)
    assert torch.equal(kept.values, chain.samples.sum(-1)) and torch.equal(kept.u, chain.u)
    assert sum(told) == 45
    with pytest.raises(ValueError, match="one value a chain"):
        S.trace(S.GibbsSweep(), model, x, statistic=lambda x: x.sum(), steps=4, seed=1)
