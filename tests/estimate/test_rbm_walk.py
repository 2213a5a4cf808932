"""The compiled way along an RBM's path: taken where it has the same law, and the same weights as the path's own."""

import pytest
import torch

import gibbsite as gb
from gibbsite.estimate.rbm_walk import RBMWalk, covers

S = gb.sample
rbm = gb.models.RBM.random(40, 24, variance=0.1, seed=0)
path = gb.estimate.RBMPath(rbm, gb.distributions.Bernoulli(torch.linspace(-2, 2, 40)))
x = path.start.sample(16, seed=1)


def test_it_is_taken_for_float32_block_gibbs_on_the_cpu_only():
    assert covers(path, S.BlockGibbs(), x)
    assert not covers(path, S.BlockGibbs(clamp=torch.zeros(40, dtype=torch.bool)), x)
    assert not covers(path, S.Gibbs(), x) and not covers(gb.Geometric(rbm.space.uniform(), rbm), S.BlockGibbs(), x)
    assert not covers(gb.estimate.RBMPath(gb.models.RBM(4, 3).double()), S.BlockGibbs(), x)


def test_its_weights_are_the_paths_increments_wherever_the_chains_are():
    walk = RBMWalk(path, S.BlockGibbs(), x, torch.Generator().manual_seed(0))
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 1.0)):
        states = walk.x
        rbm.space.check(states)
        seen = walk.weigh(low, high)
        assert torch.allclose(seen, path.increment(low, high, states), atol=2e-4)
        assert not torch.allclose(seen, path.increment(low, high, path.start.sample(16, seed=9)), atol=2e-4)
        walk.move(high, seen)
    assert not torch.equal(walk.x, x)


def test_both_ways_agree_on_log_z():
    small = gb.models.RBM.random(14, 8, variance=0.3, seed=2)
    exact = float(small.log_z().detach())
    for model in (small, gb.models.RBM.random(14, 8, variance=0.3, seed=2).double()):
        z = gb.ais(gb.estimate.RBMPath(model), S.BlockGibbs(), gb.estimate.linear(30), chains=1000, seed=0)
        assert abs(z.value - exact) < 4.9 * z.stderr < 0.2


def test_weights_that_are_not_finite_stop_it():
    broken = gb.models.RBM(5, 4)
    with torch.no_grad():
        broken.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        gb.ais(gb.estimate.RBMPath(broken), S.BlockGibbs(), [0.0, 0.5, 1.0], chains=4, seed=0)
