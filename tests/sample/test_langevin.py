"""Langevin, MALA, random walk: one gradient a step, the right biases, the right errors. Exactness is in oracle/."""

import math

import numpy as np
import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.sample import HMC, MALA, MH, NUTS, SGLD, Drift, Langevin, RandomWalk


class Counting(gb.Model):
    """Counts evaluations."""

    def __init__(self, dimension):
        super().__init__()
        self.space, self.calls = gb.Real(dimension), 0

    def forward(self, x):
        self.calls += 1
        return -0.25 * (x**4).sum(-1)


@pytest.mark.parametrize("kernel", [MALA(0.3), Langevin(0.3), MH(RandomWalk(0.3))])
def test_one_evaluation_a_step(kernel, device):
    model, generator = Counting(3).to(device), torch.Generator(device=device).manual_seed(0)
    state = kernel.init(model, torch.zeros(5, 3, device=device))
    model.calls = 0
    for _ in range(4):
        state, info = kernel.step(model, state, generator)
    assert model.calls == 4 and info.cost.evaluations == 1 and info.acceptance.shape == (5,)
    assert torch.equal(state.u, model(state.x))


def test_the_kept_gradient_is_that_of_the_state():
    model, generator = Counting(3), torch.Generator().manual_seed(0)
    kernel = MALA(1.5)
    state = kernel.init(model, torch.ones(50, 3))
    for _ in range(3):
        state, info = kernel.step(model, state, generator)
    assert 0 < info.accepted.sum() < 50
    assert torch.equal(state.local, gb.score(model, state.x)[1])


def test_log_ratio_is_that_of_the_densities():
    model, eps = Normal.diagonal(torch.tensor([1.0, -1.0]).double(), 0.5), 0.4
    proposal = Drift(eps)
    state = proposal.init(model, model.sample(20, seed=0))
    new, ratio, _ = proposal.propose(model, state, torch.Generator().manual_seed(1))

    def log_q(a, b):
        return torch.distributions.Normal(a.x + eps**2 / 2 * a.local, eps).log_prob(b.x).sum(-1)

    assert torch.allclose(ratio, log_q(new, state) - log_q(state, new), atol=1e-12)


def test_langevin_keeps_its_own_law():
    """On N(0, 1) the unadjusted variance is 1 / (1 - eps^2/4); sum x^2 is chi-square, 5 standard deviations are 6e-7.

    The mutant is the claim that the law is the target itself.
    """
    eps, n = 1.0, 50_000
    variance = 1 / (1 - eps**2 / 4)
    kernel, model = Langevin(eps), Normal.standard(1, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    state = kernel.init(model, model.sample(n, seed=1) * math.sqrt(variance))
    for _ in range(5):
        state, _ = kernel.step(model, state, generator)
    second = state.x.square().mean().item()
    assert abs(second / variance - 1) * math.sqrt(n / 2) < 5
    assert abs(second / 1.0 - 1) * math.sqrt(n / 2) > 5


@pytest.mark.parametrize("make", [Langevin, MALA, Drift, RandomWalk])
@pytest.mark.parametrize("step_size", [0, -1.0, float("nan"), float("inf"), "big"])
def test_bad_step_size(make, step_size):
    with pytest.raises(ValueError, match="step_size: expected a positive number"):
        make(step_size)


def test_needs_real_states():
    model = gb.models.Ising.lattice(2, coupling=0.1, periodic=False)
    with pytest.raises(TypeError, match="Real"):
        MALA(0.1).init(model, torch.zeros(1, 4, dtype=torch.int8))


def test_a_bad_start_is_named():
    with pytest.raises(ValueError, match="U"):
        MALA(0.1).init(gb.Potential(lambda x: x.sum(-1).log(), gb.Real(2)), -torch.ones(1, 2))


def test_a_wall_is_respected():
    """Where p = 0 a proposal is rejected."""
    model = gb.Potential(lambda x: torch.where((x > 0).all(-1), -x.sum(-1), -torch.inf), gb.Real(2))
    chain = gb.run(MALA(0.8), model, torch.ones(20, 2), steps=50, seed=0)
    assert (chain.samples > 0).all()


@pytest.mark.parametrize("make", [Langevin, MALA, RandomWalk, HMC, NUTS, SGLD])
def test_a_step_size_is_a_number_of_any_library_but_no_boolean(make):
    with pytest.raises(ValueError, match="step_size: expected a positive number, got True"):
        make(True)
    made = make(np.float32(0.1))
    kernel = MH(made) if make is RandomWalk else made
    assert gb.run(kernel, Normal.standard(2), torch.zeros(3, 2), steps=2, seed=0).samples.dtype == torch.float32
