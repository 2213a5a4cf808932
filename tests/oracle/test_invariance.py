"""Every continuous kernel keeps its target: exact i.i.d. draws, moved a few steps, must still be exact draws.

Each target has an exact map to independent standard normal entries, so that after the steps the mapped states are
tested against N(0, I): moments, bins of each entry, bins of the angle. The smallest p-value times the number of tests
must exceed 1e-6, which is the false-alarm probability of an assertion. Mutants, wrong on purpose, must fail the same test.
"""

import math
from dataclasses import dataclass

import pytest
import torch
from scipy import stats
from torch import Tensor

import gibbsite as gb
from gibbsite.distributions import Banana, Normal, NormalMixture
from gibbsite.sample import HMC, MALA, MH, NUTS, Drift, Langevin, Leapfrog, Proposal, RandomWalk, nuts

ALARM = 1e-6
CHAINS = 40_000


def p_value(w: Tensor) -> float:
    """Bonferroni's bound on the probability of draws from N(0, I) as odd as w, shape (n, dimension >= 2)."""
    w = w.double()
    a, b = w[:, 0], w[:, -1]
    moments = [(a, 1), (b, 1), (a**2 - 1, 2), (b**2 - 1, 2), (a * b, 1), (a**3, 15), (b**3, 15), ((a**2 - 1) * b, 2)]
    z = [float(f.mean() * math.sqrt(len(w) / variance)) for f, variance in moments]
    p = [2 * stats.norm.sf(abs(value)) for value in z]
    angle = torch.atan2(a, b) / (2 * math.pi) + 0.5
    for u in (torch.special.ndtr(a), torch.special.ndtr(b), angle):
        counts = (u * 32).long().clamp(0, 31).bincount(minlength=32)
        p.append(stats.chisquare(counts.numpy()).pvalue)
    return min(p) * len(p)


@dataclass
class Target:
    """A distribution and its exact map to independent standard normal entries."""

    model: gb.Distribution
    whiten: object


def gaussian():
    covariance = torch.tensor([[2.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 0.5]], dtype=torch.float64)
    mean = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    lower = torch.linalg.cholesky(covariance)
    return Target(Normal(mean, covariance), lambda x: torch.linalg.solve_triangular(lower, (x - mean).T, upper=False).T)


def banana():
    model = Banana(scale=1.2, bend=0.6, dtype=torch.float64)
    return Target(model, lambda x: torch.stack((x[:, 0] / 1.2, x[:, 1] - 0.6 * (x[:, 0] ** 2 - 1.44)), -1))


def bimodal():
    means = torch.tensor([[-1.5, 0.0], [1.5, 1.0]], dtype=torch.float64)
    scales = torch.tensor([0.6, 1.0], dtype=torch.float64)
    weights = torch.tensor([0.4, 0.6], dtype=torch.float64)

    def whiten(x):
        z = (x[:, None] - means) / scales[:, None]
        first = (weights * torch.special.ndtr(z[..., 0])).sum(-1)
        given = weights / scales * torch.exp(-0.5 * z[..., 0] ** 2)
        second = (given * torch.special.ndtr(z[..., 1])).sum(-1) / given.sum(-1)
        return torch.special.ndtri(torch.stack((first, second), -1).clamp(1e-300, 1 - 1e-16))

    return Target(NormalMixture(weights, means, scales), whiten)


TARGETS = {"gaussian": gaussian, "banana": banana, "bimodal": bimodal}


def moved(kernel, model, *, steps=3, seed=0, chains=CHAINS):
    """Exact draws after some steps."""
    state = kernel.init(model, model.sample(chains, seed=seed))
    generator = torch.Generator().manual_seed(seed + 1)
    for _ in range(steps):
        state, info = kernel.step(model, state, generator)
        assert info.acceptance.min() >= 0 and info.acceptance.max() <= 1
    return state


KERNELS = {
    "random walk": MH(RandomWalk(0.8)),
    "mala": MALA(0.7),
    "hmc": HMC(0.4, steps=4),
    "nuts": NUTS(0.4, max_depth=5),
    "nuts, coarse": NUTS(1.0, max_depth=4),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_keeps_its_target(kernel, target):
    case = TARGETS[target]()
    assert p_value(case.whiten(moved(KERNELS[kernel], case.model).x)) > ALARM


@pytest.mark.parametrize("make", [lambda m: HMC(0.4, 3, m), lambda m: NUTS(0.5, 4, m)])
@pytest.mark.parametrize(
    "mass",
    [torch.tensor([0.5, 2.0, 1.0]), torch.tensor([[2.0, -0.5, 0.0], [-0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])],
    ids=["diagonal", "dense"],
)
def test_kernel_keeps_its_target_with_a_mass(make, mass):
    case = gaussian()
    assert p_value(case.whiten(moved(make(mass.double()), case.model).x)) > ALARM


@dataclass(frozen=True)
class Uncorrected(Proposal):
    """A mutant: the correction of a proposal left out of the Metropolis test."""

    proposal: Proposal

    def init(self, model, x):
        return self.proposal.init(model, x)

    def propose(self, model, state, generator):
        new, ratio, cost = self.proposal.propose(model, state, generator)
        return new, torch.zeros_like(ratio), cost


MUTANTS = {
    "langevin, large step": Langevin(0.7),
    "mala without the way back": MH(Uncorrected(Drift(0.7))),
    "hmc without kinetic energy": MH(Uncorrected(Leapfrog(0.4, steps=4))),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_rejected(mutant, target):
    case = TARGETS[target]()
    assert p_value(case.whiten(moved(MUTANTS[mutant], case.model).x)) < ALARM


def unweighted(monkeypatch):
    add = nuts._add
    monkeypatch.setattr(nuts, "_add", lambda branch, end, log_weight, g: add(branch, end, 0 * log_weight, g))


def no_subtree_test(monkeypatch):
    monkeypatch.setattr(nuts, "_turned_within", lambda branch, *_: torch.zeros_like(branch.alive))


def unsound_branch_kept(monkeypatch):
    join = nuts._join
    keep = lambda tree, branch, *rest: join(tree, branch._replace(alive=~branch.divergent), *rest)  # noqa: E731
    monkeypatch.setattr(nuts, "_join", keep)


@pytest.mark.parametrize("fault", [unweighted, no_subtree_test, unsound_branch_kept])
def test_broken_nuts_is_rejected(fault, monkeypatch):
    fault(monkeypatch)
    case = gaussian()
    assert p_value(case.whiten(moved(NUTS(0.7, max_depth=6), case.model, steps=5).x)) < ALARM


def test_nuts_of_the_mutants_is_sound_unbroken():
    case = gaussian()
    assert p_value(case.whiten(moved(NUTS(0.7, max_depth=6), case.model, steps=5).x)) > ALARM


@pytest.mark.parametrize("kernel", [MALA(0.5), HMC(0.5, 3), NUTS(0.5, 4), MH(RandomWalk(0.5))])
def test_image_shaped_states(kernel):
    model = Normal.diagonal(torch.zeros(2, 3, 4, dtype=torch.float64), 0.7)
    state = moved(kernel, model, chains=5_000)
    assert state.x.shape == (5_000, 2, 3, 4)
    assert p_value(state.x.flatten(1) / 0.7) > ALARM


@pytest.mark.parametrize("kernel", [MALA(0.5), HMC(0.5, 3), NUTS(0.5, 4), MH(RandomWalk(0.5))])
def test_scalar_states(kernel):
    model = Normal.diagonal(torch.tensor(1.0, dtype=torch.float64), 0.7)
    state = moved(kernel, model)
    assert state.x.shape == (CHAINS,)
    assert p_value(((state.x - 1.0) / 0.7).view(-1, 2)) > ALARM


@pytest.mark.parametrize("kernel", [MALA(0.6), HMC(0.4, 4), NUTS(0.4, 5)])
def test_pullback_samples_the_tilted_law(kernel):
    """T affine and V a Gaussian tilt: the push-forward is normal, its precision the sum of two, and known exactly."""
    a = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
    b, c = torch.tensor([[0.5, -1.0], [1.5, 0.0]], dtype=torch.float64)
    d = torch.tensor([[1.5, 0.3], [0.3, 0.7]], dtype=torch.float64)
    base = torch.linalg.inv(a @ a.T)
    covariance = torch.linalg.inv(base + d)
    tilted = Normal(covariance @ (base @ b + d @ c), 0.5 * (covariance + covariance.T))
    noise = Normal.standard(2, dtype=torch.float64)
    model = gb.Pullback(noise, lambda e: e @ a.T + b, lambda x: -0.5 * (((x - c) @ d) * (x - c)).sum(-1))
    e = (tilted.sample(CHAINS, seed=0) - b) @ torch.linalg.inv(a).T
    state, generator = kernel.init(model, e), torch.Generator().manual_seed(1)
    for _ in range(3):
        state, _ = kernel.step(model, state, generator)
    assert p_value(tilted.scale.whiten(model.push(state.x) - tilted.mean)) > ALARM
    untilted, generator = kernel.init(noise, e), torch.Generator().manual_seed(1)
    for _ in range(3):
        untilted, _ = kernel.step(noise, untilted, generator)
    assert p_value(tilted.scale.whiten(model.push(untilted.x) - tilted.mean)) < ALARM
