"""R-MALA and R-HMC keep p exactly though they move a relaxation: exact draws of (z, x), moved, are still exact draws."""

import math
from dataclasses import dataclass

import pytest
import torch
from scipy import stats

import gibbsite as gb
from gibbsite import random
from gibbsite.model import evaluate
from gibbsite.sample import MH, DiscreteSVGD, Proposal, RelaxedHMC, RelaxedMALA, State, relaxed

CHAINS = 40_000


def ising():
    couplings = torch.tensor([[0, 0.8, -0.5], [0.8, 0, 0.6], [-0.5, 0.6, 0]], dtype=torch.float64)
    return gb.models.Ising(couplings, torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64))


def exact_start(kernel, model):
    """x from p by enumeration, z from N(0, I) folded onto the side of x."""
    generator = torch.Generator().manual_seed(0)
    every = gb.exact.states(model.space)
    x = every[random.categorical(gb.exact.probabilities(model).log().expand(CHAINS, -1), generator)]
    z = torch.randn(x.shape, dtype=torch.float64, generator=generator).abs() * (2 * x.double() - 1)
    proposal = kernel.proposal
    gradient = relaxed.slope(relaxed._surrogate(model, proposal.temperature), z)[1]
    return State(x, evaluate(model, x), relaxed.Relaxed(z, gradient))


def p_value(model, state):
    """Bonferroni's p over the law of x, the law of |z| (half-normal, whatever x is) and E[z^2]."""
    z, x = state.local.z, state.x
    assert torch.equal(x.bool(), z > 0) and torch.allclose(state.u, model(x))
    counts = gb.exact.enumerate.index(model.space, x).bincount(minlength=8).numpy()
    p = [stats.chisquare(counts, (gb.exact.probabilities(model) * len(x)).detach().numpy()).pvalue]
    for i in range(3):
        bins = ((2 * torch.special.ndtr(z[:, i].abs()) - 1) * 16).long().clamp(0, 15).bincount(minlength=16)
        p.append(stats.chisquare(bins.numpy()).pvalue)
        p.append(2 * stats.norm.sf(abs(float((z[:, i] ** 2 - 1).mean()) * math.sqrt(len(z) / 2))))
    return min(p) * len(p)


def moved(kernel, model, start=None, steps=5):
    state, generator = start or exact_start(kernel, model), torch.Generator().manual_seed(1)
    for _ in range(steps):
        state, _ = kernel.step(model, state, generator)
    return state


@pytest.mark.parametrize(
    "kernel", [RelaxedMALA(0.8, 1.0), RelaxedMALA(1.0, 0.5), RelaxedHMC(0.4, 5, 1.0), RelaxedHMC(0.6, 3, 2.0)]
)
def test_keeps_its_target(kernel):
    """False alarm: 1e-6."""
    model = ising()
    start = exact_start(kernel, model)
    end = moved(kernel, model, start)
    assert (end.x != start.x).any(-1).double().mean() > 0.3
    assert p_value(model, end) > 1e-6


@dataclass(frozen=True)
class Wrong(Proposal):
    """A mutant: the log ratio changed by `change(old, new)`."""

    proposal: Proposal
    change: object

    def init(self, model, x):
        return self.proposal.init(model, x)

    def propose(self, model, state, generator):
        new, ratio, cost = self.proposal.propose(model, state, generator)
        return new, ratio + self.change(model, state, new), cost


def prior_forgotten(model, old, new):
    return 0.5 * (new.local.z.square() - old.local.z.square()).sum(-1)


def surrogate_tested(model, old, new):
    def gap(state):
        return model(state.local.z.sigmoid()) - state.u

    return gap(new) - gap(old)


@pytest.mark.parametrize("kernel", [RelaxedMALA(0.8, 1.0), RelaxedHMC(0.4, 5, 1.0)])
@pytest.mark.parametrize("fault", [prior_forgotten, surrogate_tested])
def test_mutant_is_rejected(kernel, fault):
    model = ising()
    mutant = MH(Wrong(kernel.proposal, fault))
    assert p_value(model, moved(mutant, model, exact_start(kernel, model))) < 1e-6


@pytest.mark.parametrize("kernel", [RelaxedMALA(0.5), RelaxedHMC(0.3), DiscreteSVGD(0.1)])
def test_starts_at_the_median_and_keeps_shapes(kernel):
    model = gb.models.Ising.lattice(3, coupling=0.2)
    x = model.space.uniform().sample(10, seed=0)
    state = kernel.init(model, x)
    assert torch.equal(state.local.z > 0, x.bool())
    assert torch.allclose(state.local.z.abs(), torch.tensor(0.6744897))
    state, info = kernel.step(model, state, torch.Generator().manual_seed(0))
    assert state.x.dtype == torch.int8 and state.x.shape == (10, 9) and info.acceptance.shape == (10,)


def test_svgd_direction_is_its_definition():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    gradient = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    weights = torch.rand(6, dtype=torch.float64, generator=generator).softmax(0)
    width = torch.nn.functional.pdist(z).median() ** 2 / (2 * math.log(7))
    wanted = torch.zeros_like(z)
    for i in range(6):
        for j in range(6):
            k = torch.exp(-(z[i] - z[j]).square().sum() / width)
            wanted[i] += weights[j] * k * (gradient[j] + 2 / width * (z[i] - z[j]))
    assert torch.allclose(relaxed.stein_direction(z, gradient, weights), wanted, atol=1e-12)


def test_adam_is_torchs():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(4, 2, dtype=torch.float64, generator=generator)
    parameter = torch.nn.Parameter(z.clone())
    peer = torch.optim.Adam([parameter], lr=0.05)
    local = relaxed.Particles(z, torch.zeros_like(z), torch.zeros_like(z), torch.zeros(4, dtype=torch.long))
    for _ in range(5):
        direction = torch.randn(4, 2, dtype=torch.float64, generator=generator)
        local = relaxed.Particles(*relaxed.adam(local, direction, 0.05), local.t + 1)
        parameter.grad = -direction
        peer.step()
    assert torch.allclose(local.z, parameter, atol=1e-12)


def test_svgd_finds_the_field():
    """Independent bits: the particles' frequencies go to the right side of 1/2."""
    model = gb.distributions.Bernoulli(torch.tensor([2.0, -2.0, 0.0, 2.0]))
    x = model.space.uniform().sample(100, seed=0)
    state, kernel = DiscreteSVGD(0.05).init(model, x), DiscreteSVGD(0.05)
    for _ in range(200):
        state, _ = kernel.step(model, state, torch.Generator().manual_seed(0))
    mean = state.x.double().mean(0)
    assert mean[0] > 0.7 and mean[1] < 0.3 and mean[3] > 0.7


@pytest.mark.parametrize("make", [lambda: RelaxedMALA(0.0), lambda: RelaxedHMC(0.1, 0), lambda: DiscreteSVGD(0.1, 0.0)])
def test_errors(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_needs_bits_and_particles():
    with pytest.raises(TypeError, match="Binary"):
        RelaxedMALA(0.1).init(gb.distributions.Normal.standard(2), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="at least 2 particles"):
        DiscreteSVGD().init(ising(), torch.zeros(1, 3, dtype=torch.int8))
