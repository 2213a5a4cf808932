"""HMC: cost, divergences, errors. Exactness is in oracle/."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.sample import HMC, MALA

from .test_langevin import Counting


def test_one_gradient_a_leapfrog_step(device):
    model, generator = Counting(3).to(device), torch.Generator(device=device).manual_seed(0)
    kernel = HMC(0.1, steps=6)
    state = kernel.init(model, torch.zeros(5, 3, device=device))
    model.calls = 0
    state, info = kernel.step(model, state, generator)
    assert model.calls == 6 and info.cost == (6, 6)
    state, info = kernel.step(model, state, generator)
    assert torch.allclose(state.local, gb.score(model, state.x)[1])


def test_one_leapfrog_step_is_mala():
    model = Normal.standard(4, dtype=torch.float64)
    x = model.sample(10, seed=0)
    ends = []
    for kernel in (HMC(0.5, steps=1), MALA(0.5)):
        state, info = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(1))
        ends.append((state.x, info.acceptance))
    assert torch.allclose(ends[0][0], ends[1][0], atol=1e-12) and torch.allclose(ends[0][1], ends[1][1], atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -(x**8).sum(-1),  # a step far too long: positions overflow
        lambda x: torch.where((x.abs() < 3).all(-1), -x.square().sum(-1), torch.nan),
        lambda x: torch.where((x.abs() < 3).all(-1), -x.square().sum(-1), -torch.inf),
    ],
)
def test_divergent_trajectories_are_rejected_and_counted(function):
    model, kernel = gb.Potential(function, gb.Real(2)), HMC(2.0, steps=20)
    x = torch.full((30, 2), 1.5)
    state, info = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))
    divergent = info.acceptance == 0
    assert divergent.any() and not (divergent & info.accepted).any()
    assert torch.equal(state.x[divergent], x[divergent]) and state.u.isfinite().all()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda m: HMC(0.0), "step_size"),
        (lambda m: HMC(0.1, steps=0), "steps"),
        (lambda m: HMC(0.1, mass=torch.ones(2, dtype=torch.long)), "mass: expected finite floats"),
        (lambda m: HMC(0.1, mass=torch.ones(2)).init(m, torch.zeros(1, 3)), r"mass: expected shape \(3,\) or \(3, 3\)"),
        (lambda m: HMC(0.1, mass=-torch.ones(3)).init(m, torch.zeros(1, 3)), "positive numbers"),
        (lambda m: HMC(0.1, mass=-torch.eye(3)).init(m, torch.zeros(1, 3)), "positive definite"),
        (lambda m: HMC(0.1).init(m, torch.zeros(1, 4)), "expected finite floats of shape"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make(Normal.standard(3))
