"""What an estimate says it cost is what was evaluated: counted at the model and the base, a chain."""

import pytest
import torch

import gibbsite as gb
from gibbsite.model import counting

Z = gb.estimate
CHAINS = 10


def model():
    space = gb.Binary(5)
    return gb.Potential(lambda x: 1.5 * torch.tanh(space.embed(x).cumsum(-1)).sum(-1), space)


def path():
    return gb.Geometric(gb.Binary(5).uniform(), model())


ESTIMATES = {
    "ais": lambda kernel: gb.ais(path(), kernel, Z.linear(4), chains=CHAINS, seed=0),
    "reverse ais": lambda kernel: Z.reverse_ais(
        path(), kernel, Z.linear(4), gb.Binary(5).uniform().sample(CHAINS, seed=0), seed=1
    ),
    "smc, given betas": lambda kernel: Z.smc(path(), kernel, Z.linear(3), particles=CHAINS, seed=0).log_z,
    "smc, one step": lambda kernel: Z.smc(path(), kernel, particles=CHAINS, share=0.01, seed=0).log_z,
    "smc": lambda kernel: Z.smc(path(), kernel, particles=CHAINS, share=0.95, seed=0).log_z,
    "thermodynamic": lambda kernel: Z.thermodynamic(path(), kernel, Z.linear(3), steps=5, chains=CHAINS, seed=0),
}


@pytest.mark.parametrize("kernel", [gb.sample.MH(gb.sample.Informed()), gb.sample.Gibbs()], ids=["gwg", "gibbs"])
@pytest.mark.parametrize("estimate", ESTIMATES.values(), ids=ESTIMATES.keys())
def test_the_cost_is_what_was_evaluated(estimate, kernel):
    with counting() as count:
        cost = estimate(kernel).cost
    assert cost == pytest.approx((count.evaluations / CHAINS, count.gradients / CHAINS))
