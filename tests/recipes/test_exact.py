"""The exact references that the recipes compare with."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from gibbsite import exact as enumeration
from gibbsite.diagnose import mmd
from gibbsite.models import Ising
from gibbsite.recipes import ising_sampling, ising_transition, relaxations
from gibbsite.sample import MH, Gibbs, HammingBall, Informed
from gibbsite.space import Binary


@pytest.mark.parametrize(
    ("side", "energy", "heat"),
    [(4, -1.56562378764, 0.783266825929), (16, -1.45306485281, 1.4987049594), (64, -1.42393838983, 2.19221139314)],
)
def test_energy_and_specific_heat_at_the_transition(side, energy, heat):
    found = ising_transition.exact(side, ising_transition.CRITICAL)
    assert found == pytest.approx((energy, heat), rel=1e-9)


def test_energy_and_specific_heat_by_enumeration(double):
    coupling = 0.3
    model = Ising.lattice(3, coupling=coupling)
    p = enumeration.probabilities(model)
    bonds = enumeration.potentials(model) / coupling
    mean = (p * bonds).sum()
    variance = (p * (bonds - mean) ** 2).sum()
    assert ising_transition.exact(3, coupling) == pytest.approx(
        (-mean.item() / 9, coupling**2 * variance.item() / 9), rel=1e-10
    )


def test_magnetisation_of_the_infinite_lattice():
    assert ising_transition.onsager_magnetisation(0.5) == pytest.approx(0.911319377877, rel=1e-11)
    assert ising_transition.onsager_magnetisation(0.44) == 0


@pytest.mark.parametrize(("name", "kernel"), [("Gibbs", Gibbs()), ("Hamming ball", HammingBall(4)), ("GWG", MH(Informed()))])
def test_steps_an_effective_sample_takes_when_spins_are_free(name, kernel, double):
    """K s_i = r s_i for every spin on 2^8 states, by the exact transition matrix; (1 + r) / (1 - r) is what is claimed."""
    model = Ising.from_edges(8, torch.tensor([[0, 1]]), 0.0)
    spin = 2.0 * enumeration.states(model.space).double() - 1
    moved = enumeration.transition_matrix(kernel, model) @ spin
    claimed = ising_sampling.free_steps(name, 8, 4)
    r = (claimed - 1) / (claimed + 1)
    assert (moved - r * spin).abs().max() < 1e-12
    other = ising_sampling.free_steps(name, 9, 4)  # mutant: another number of sites
    assert (moved - (other - 1) / (other + 1) * spin).abs().max() > 1e-3


def test_the_floor_is_the_mmd_that_exact_draws_have():
    """400 repeats of uniform draws: |mean of MMD - floor| < 4.9 standard errors, 1e-6; the mutant leaves out 1 / truth."""
    space, draws, truth = Binary(10), 20, 40
    uniform = space.uniform()
    found, mutant = [], []
    for repeat in range(400):
        x, y = uniform.sample(draws, seed=2 * repeat), uniform.sample(truth, seed=2 * repeat + 1)
        distance = mmd(x, y).item()
        found.append(distance - relaxations.floor(y, draws))
        mutant.append(distance - relaxations.floor(y, draws) * (1 / draws) / (1 / draws + 1 / truth))
    z = [
        (t := torch.tensor(values, dtype=torch.float64)).mean().item() / (t.std().item() / 20) for values in (found, mutant)
    ]
    assert abs(z[0]) < 4.9 < abs(z[1])


def test_the_floor_of_uniform_bits():
    truth = Binary(10).uniform().sample(3000, seed=0)
    similar = ((1 + math.exp(-0.1)) / 2) ** 10
    assert relaxations.floor(truth, 100) == pytest.approx((1 - similar) * (1 / 100 + 1 / 3000), rel=0.01)


def test_the_best_setting_has_the_lowest_mean():
    rows = [{"kind": "mmd", "sampler": "a", "visible": 5, "setting": s, "mmd": m} for s, m in
            (("one", 0.1), ("one", 0.4), ("two", 0.2), ("two", 0.1))]  # fmt: skip
    chosen = relaxations.best(rows)["a", 5]
    assert chosen["setting"] == "two" and chosen["mean"] == pytest.approx((math.log(0.2) + math.log(0.1)) / 2)


def test_stuck_chains_are_left_out_and_counted():
    row = {"ess": [10.0, None, 10.0, float("nan")]}
    assert ising_sampling.moving(row) == [10.0, 10.0]
    assert ising_sampling.log_mean(row) == pytest.approx((math.log(10), 0.0))
    assert all(math.isnan(value) for value in ising_sampling.log_mean({"ess": [None]}))
    still = torch.ones(40, 2)
    still[::2, 1] = 0
    assert [math.isnan(value) for value in ising_sampling.ess_by_chain(still)] == [True, False]


@given(some.floats(0.05, 1.5), some.integers(3, 40))
@settings(max_examples=30, deadline=None)
def test_the_exact_energy_lies_between_its_bounds(coupling, side):
    energy, heat = ising_transition.exact(side, coupling)
    assert -2 - 1e-9 <= energy < 0 and heat >= -1e-9
