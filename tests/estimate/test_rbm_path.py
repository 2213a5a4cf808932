"""The path to an RBM: its ends, its increments, and that it needs independent bits in the RBM's space."""

import pytest
import torch

import gibbsite as gb

rbm = gb.models.RBM.random(7, 4, variance=0.4, seed=0)
base = gb.distributions.Bernoulli(torch.linspace(-1, 1, 7))
path = gb.estimate.RBMPath(rbm, base)


def test_it_ends_in_the_rbm_and_starts_in_the_base_but_for_log_z(double):
    every = gb.exact.states(rbm.space)
    assert torch.allclose(path.at(1.0)(every), rbm(every))
    gauge = path.at(0.0)(every) - base(every)
    expected = 4 * torch.tensor(2.0).log() + base.logits.exp().log1p().sum()
    assert torch.allclose(gauge, expected.to(gauge).expand_as(gauge), atol=1e-5)
    assert torch.allclose(path.at(0.0).log_z(), expected.double(), atol=1e-5)


def test_increments_are_differences_of_u():
    every = gb.exact.states(rbm.space)
    found = path.increment(0.2, 0.7, every)
    assert torch.allclose(found.float(), path.at(0.7)(every) - path.at(0.2)(every), atol=1e-4)
    assert found.dtype == torch.float64


def test_other_bases_are_refused():
    with pytest.raises(ValueError, match=r"base: expected a distribution on Binary\(shape=\(7,\)\), got one on Real"):
        gb.estimate.RBMPath(rbm, gb.distributions.Normal.standard(7))
    with pytest.raises(TypeError, match="its bits must be independent"):
        gb.estimate.RBMPath(rbm, gb.distributions.Mixture([1.0], [base]))
    uniform = gb.estimate.RBMPath(rbm, rbm.space.uniform())
    assert bool((uniform.start.logits == 0).all())
