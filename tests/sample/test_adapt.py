"""Adaptation reaches its target acceptance, finds masses, and is over before samples are kept."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.sample import HMC, MALA, MH, NUTS, DiscreteLangevin, Informed, Power, RandomWalk, adapt

SCALES = torch.tensor([0.1, 1.0, 5.0, 20.0], dtype=torch.float64)


def acceptance(tuned, model, steps=100):
    state, generator, total = tuned.kernel.init(model, tuned.x), torch.Generator().manual_seed(9), 0.0
    for _ in range(steps):
        state, info = tuned.kernel.step(model, state, generator)
        total += info.acceptance.mean().item() / steps
    return total


@pytest.mark.parametrize(
    "make, target",
    [(lambda e: MH(RandomWalk(e)), 0.234), (MALA, 0.574), (lambda e: HMC(e, 5), 0.65), (lambda e: NUTS(e, 6), 0.8)],
)
@pytest.mark.parametrize("start", [0.001, 10.0])
def test_real_kernels_reach_their_target(make, target, start):
    model = Normal.standard(20)
    tuned = adapt.step_size(make, model, model.sample(64, seed=0), target=target, steps=300, seed=1, start=start)
    assert abs(acceptance(tuned, model) - target) < 0.04


def test_discrete_kernels_reach_their_target():
    model = gb.models.Ising.lattice(6, coupling=0.3)
    x = model.space.uniform().sample(64, seed=0)
    tuned = adapt.step_size(lambda a: MH(DiscreteLangevin(a)), model, x, target=0.574, steps=300, seed=1)
    assert abs(acceptance(tuned, model) - 0.574) < 0.04
    assert tuned.x.shape == x.shape and isinstance(tuned.kernel.proposal, DiscreteLangevin)


def test_flips_and_temperatures():
    """Far from criticality several flips go farther; a temperature far from 2 does not."""
    model = gb.models.Ising.lattice(6, coupling=0.05)
    x = model.space.uniform().sample(64, seed=0)
    flips = adapt.best(lambda n: MH(Informed(draws=n)), [1, 3, 5], model, x, steps=60, seed=1)
    assert flips.kernel.proposal.draws > 1
    cold = gb.models.Ising.lattice(6, coupling=0.3)
    heats = adapt.best(lambda t: MH(Informed(balance=Power(t))), [0.2, 2.0, 200.0], cold, x, steps=200, seed=1)
    assert heats.kernel.proposal.balance.temperature == 2.0


@pytest.mark.parametrize("make", [lambda e, m: HMC(e, 8, m), lambda e, m: NUTS(e, 7, m)])
def test_diagonal_mass(make):
    """64 chains x 300 draws: variances within a factor of 1.5."""
    model = Normal.diagonal(torch.zeros(4, dtype=torch.float64), SCALES)
    tuned = adapt.diagonal_mass(make, model, torch.zeros(64, 4, dtype=torch.float64), steps=300, seed=0)
    mass = tuned.kernel.mass
    assert mass.shape == (4,) and ((mass * SCALES**2).log().abs() < 0.4).all()
    assert abs(acceptance(tuned, model) - 0.8) < 0.08


def test_dense_mass():
    covariance = torch.tensor([[4.0, 1.9], [1.9, 1.0]], dtype=torch.float64)
    model = Normal(torch.zeros(2, dtype=torch.float64), covariance)
    x = torch.zeros(64, 2, dtype=torch.float64)
    tuned = adapt.dense_mass(lambda e, m: HMC(e, 5, m), model, x, steps=300, seed=0)
    assert (tuned.kernel.mass @ covariance - torch.eye(2)).abs().max() < 0.3


def test_mass_of_images():
    model = Normal.diagonal(torch.zeros(2, 2), torch.tensor([[0.5, 1.0], [2.0, 4.0]]))
    tuned = adapt.diagonal_mass(lambda e, m: HMC(e, 5, m), model, torch.zeros(32, 2, 2), steps=100, seed=0)
    assert tuned.kernel.mass.shape == (2, 2) and tuned.kernel.mass.dtype == torch.float32


@pytest.mark.parametrize("moments", [adapt.DiagonalWelford, adapt.DenseWelford])
def test_welford_is_the_sample_covariance(moments):
    x = 1e3 + torch.randn(30, 8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = moments()
    for part in x:
        seen.add(part)
    covariance = x.flatten(0, 1).T.cov()
    wanted = covariance if seen.scatter.ndim == 2 else covariance.diagonal()
    assert seen.count == 240 and torch.allclose(seen.scatter / 239, wanted)


@pytest.mark.parametrize("steps", [1, 2, 7, 20, 100, 1000])
def test_windows_cover_the_middle(steps):
    ends = adapt.windows(steps)
    assert ends == sorted(set(ends)) and all(0 < end <= steps for end in ends)
    if steps >= 20:
        assert ends[-1] == steps - round(0.1 * steps) and len(ends) >= 3


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_short_adaptations_work(steps):
    model = Normal.standard(2)
    adapt.diagonal_mass(lambda e, m: HMC(e, 2, m), model, torch.zeros(4, 2), steps=steps, seed=0)


def test_a_seed_gives_the_same_kernel():
    model = Normal.standard(3)
    first, second = (adapt.step_size(MALA, model, torch.zeros(4, 3), target=0.5, steps=20, seed=3) for _ in range(2))
    assert repr(first.kernel) == repr(second.kernel) and torch.equal(first.x, second.x)


@pytest.mark.parametrize("words", [{"target": 0.0}, {"target": 1.0}, {"steps": 0}, {"start": -1.0}])
def test_errors(words):
    with pytest.raises(ValueError, match="expected"):
        adapt.step_size(MALA, Normal.standard(1), torch.zeros(2, 1), seed=0, **{"target": 0.5, "steps": 3, **words})
    with pytest.raises(ValueError, match="candidates"):
        adapt.best(MALA, [], Normal.standard(1), torch.zeros(2, 1), steps=1, seed=0)


def test_scalar_events():
    model, x = gb.Potential(lambda x: -0.5 * x.square() / 9, gb.Real(())), torch.zeros(16)
    for tune, shape in ((adapt.diagonal_mass, ()), (adapt.dense_mass, (1, 1))):
        tuned = tune(lambda e, m: HMC(e, 3, m), model, x, steps=100, seed=0)
        assert tuned.kernel.mass.shape == shape and tuned.x.shape == (16,)
    assert adapt.best(lambda e: MH(RandomWalk(e)), [0.01, 3.0], model, x, steps=20, seed=0).kernel.proposal.step_size == 3.0
