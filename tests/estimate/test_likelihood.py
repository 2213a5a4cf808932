"""The log-likelihood of data: ends swapped, against exact log p."""

import torch

import gibbsite as gb


def test_the_ends_swap_and_the_exact_answer_lies_between():
    rbm = gb.models.RBM.random(10, 6, variance=0.2, seed=0)
    data = rbm.space.uniform().sample(3000, seed=1)
    z = gb.bracket(rbm, temperatures=100, seed=2)
    found = gb.estimate.log_likelihood(rbm, data, z)
    mean = float(rbm(data).double().mean().detach())
    assert abs(found.lower - (mean - z.upper)) < 1e-6 and abs(found.upper - (mean - z.lower)) < 1e-6
    assert found.lower < mean - float(rbm.log_z().detach()) < found.upper and found.stderr == z.stderr
    # the mutant: ends not swapped
    assert not mean - z.lower < mean - z.upper


def test_one_sided_estimates_stay_one_sided():
    rbm = gb.models.RBM.random(6, 3, seed=0)
    z = gb.ais(gb.estimate.RBMPath(rbm), gb.sample.BlockGibbs(), gb.estimate.linear(10), chains=20, seed=0)
    likelihood = gb.estimate.log_likelihood(rbm, rbm.space.uniform().sample(5, seed=0), z)
    assert likelihood.lower == -float("inf") and likelihood.upper < 0 and "at most" in str(likelihood)
    assert not torch.tensor(likelihood.value).isnan()
