"""Over many seeds: the ends of a bracket enclose the exact log Z, misses are flagged, and the stated error is the spread.

An end lies 3 standard errors out, on the side where skewed weights err less than a normal law would: log Z lies beyond one
of the two at most once in 200 runs. More than 6 of 100 then have a probability below 1e-6. A spread of 100 runs is known to
1 / sqrt(200); 4.9 of these are 35 %.
"""

import pytest
import torch

import gibbsite as gb

M = gb.models
RUNS = 100


def ising():
    model = M.Ising.lattice(3, coupling=0.3, field=0.2)
    return model, float(gb.exact.log_z(model))


def rbm():
    model = M.RBM.random(10, 6, variance=1.0, seed=0)
    return model, float(model.log_z().detach())


def network():
    """No structure that a kernel could use: Gibbs-With-Gradients from a uniform base."""
    source = torch.Generator().manual_seed(1)
    first, last, space = torch.randn(8, 6, generator=source), torch.randn(6, generator=source), gb.Binary(8)
    model = gb.Potential(lambda x: torch.tanh(space.embed(x) @ first) @ last, space)
    return model, float(gb.exact.log_z(model))


CASES = {"ising": ising, "rbm": rbm, "network": network}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_brackets_cover_log_z_and_state_their_spread(case):
    model, log_z = case()
    runs = [gb.bracket(model, temperatures=20, chains=50, widest=2.0, seed=seed) for seed in range(RUNS)]
    values = torch.tensor([z.value for z in runs], dtype=torch.float64)
    stated = torch.tensor([z.stderr for z in runs], dtype=torch.float64).square().mean().sqrt()
    assert sum(not z.lower < log_z < z.upper for z in runs) <= 6
    assert sum(z.trusted for z in runs) > RUNS / 2
    assert 0.65 < float(values.std() / stated) < 1.35
    # mutants: ends one standard error out, and the errors of one chain instead of fifty
    assert sum(not abs(z.value - log_z) < z.stderr for z in runs) > 6
    assert not 0.65 < float(values.std() / (stated * 50**0.5)) < 1.35
