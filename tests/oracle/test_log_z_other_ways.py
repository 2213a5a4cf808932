"""Importance sampling, SMC, bridges, thermodynamic integration, bounds, IWAE and grids against exact answers, with mutants.

z-tests are two-sided with a false-alarm probability of 1e-6 (4.9 standard errors).
"""

import importlib
import math

import pytest
import torch

import gibbsite as gb
from gibbsite.estimate.weights import log_mean, log_mean_error

E, S, M, D = gb.estimate, gb.sample, gb.models, gb.distributions
SIGMAS = 4.9


def tilted_bits():
    space, field = gb.Binary(8), torch.linspace(-1.0, 0.7, 8)
    base = D.Bernoulli(torch.linspace(0.5, -0.5, 8))
    return gb.Tilt(base, lambda x: space.embed(x) @ field + 0.2 * x.sum(-1))


def tilted_normal():
    """N(0, 1)^2 exp(a.x): log Z = |a|^2 / 2, and the tilted law is N(a, I)."""
    return gb.Tilt(D.Normal.standard(2), lambda x: x @ torch.tensor([0.8, -0.5]))


def exact_of(tilt):
    return float(gb.exact.log_z(tilt).detach()) if tilt.space == gb.Binary(8) else 0.5 * (0.8**2 + 0.5**2)


tilts = pytest.mark.parametrize("tilt", [tilted_bits(), tilted_normal()], ids=["bits", "normal"])


@tilts
def test_importance_sampling_covers_log_z(tilt):
    z = gb.importance(tilt, 20_000, seed=0)
    assert abs(z.value - exact_of(tilt)) < SIGMAS * z.stderr < 0.1
    assert z.trusted and z.lower < exact_of(tilt) < z.upper
    with torch.no_grad():  # the mutant: the base's own density counted into the weight
        x = tilt.base.sample(20_000, seed=0)
        wrong = tilt(x).double()
    assert not abs(log_mean(wrong) - exact_of(tilt)) < SIGMAS * log_mean_error(wrong)


@tilts
def test_self_normalised_expectations(tilt):
    found = E.snis(tilt, lambda x: tilt.space.embed(x), 20_000, seed=1)
    if tilt.space == gb.Binary(8):
        exact = gb.exact.probabilities(tilt).detach() @ gb.exact.states(tilt.space).double()
    else:
        exact = torch.tensor([0.8, -0.5]).double()
    assert bool(((found.mean - exact).abs() < SIGMAS * found.stderr).all()) and found.trusted
    plain = tilt.space.embed(tilt.base.sample(20_000, seed=1)).double().mean(0)  # the mutant: not weighted
    assert not bool(((plain - exact).abs() < SIGMAS * found.stderr).all())


def test_the_stated_errors_are_the_spread_of_repetitions():
    """200 repetitions: a standard deviation is known to 1 / sqrt(400); 4.9 sigma is 25 %."""
    repeats = [gb.importance(tilted_normal(), 500, seed=s) for s in range(200)]
    ratio = torch.tensor([z.value for z in repeats]).std() / torch.tensor([z.stderr for z in repeats]).mean()
    assert 0.75 < float(ratio) < 1.25
    assert not 0.75 < float(ratio) * 500**0.5 < 1.25  # the mutant: the root of n forgotten


def test_memory_does_not_change_the_answer(monkeypatch):
    module = importlib.import_module("gibbsite.estimate.importance")
    one = gb.importance(tilted_bits(), 1000, seed=0)
    monkeypatch.setattr(module, "_MEMORY", 8 * 7)
    assert abs(gb.importance(tilted_bits(), 1000, seed=0).value - one.value) < 5 * one.stderr


def test_a_base_that_misses_the_mass_is_not_trusted():
    far = gb.Tilt(D.Normal.standard(1), lambda x: -50 * (x[:, 0] - 6).square())
    z = gb.importance(far, 1000, seed=0)
    assert not z.trusted and "the ESS is" in z.why


def lognormal(spread):
    """Weights exp(spread x), x normal: log Z = spread^2 / 2."""
    return gb.Tilt(D.Normal.standard(1), lambda x: spread * x[:, 0])


@pytest.mark.parametrize("spread", [0.5, 1.3, 2.8])
def test_ends_of_skewed_weights_hold_or_are_not_trusted(spread):
    """Of 300 runs at most one in 40 may be wrong and trusted: at that rate more than 23 have probability below 1e-6.
    Most runs at spread 2.8, whose ESS is some dozens, see too few of the weights that count."""
    runs, log_z = [gb.importance(lognormal(spread), 1000, seed=s) for s in range(300)], spread**2 / 2
    assert sum(z.trusted and not z.lower < log_z < z.upper for z in runs) <= 23
    if spread == 0.5:
        assert all(z.trusted for z in runs)
    if spread == 2.8:
        words = [z.why for z in runs if not z.trusted]
        assert len(words) > 250 and any("the weights are skewed" in why for why in words)
        plain = [E.residual_bounds(w) for w in torch.randn(300, 1000, generator=torch.Generator().manual_seed(1)) * spread]
        assert sum(b.ess >= 5 and b.upper < log_z for b in plain) > 23  # the mutant: the jackknife's end, an ESS of 5
        assert not E.snis(lognormal(spread), lambda x: x, 1000, seed=0).trusted


def test_residual_bounds_are_the_formula_and_hold_in_the_mean():
    """Weights log-normal with log Z = 1/2; 4000 repetitions of n = 60."""
    w = torch.randn(4000, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = [E.residual_bounds(row) for row in w]
    lower, upper = (torch.tensor([getattr(b, end) for b in found]) for end in ("lower", "upper"))
    loo = torch.stack([torch.cat((w[0, :i], w[0, i + 1 :])).logsumexp(0) - math.log(59) for i in range(60)])
    t = w[0].logsumexp(0) - math.log(60)
    assert math.isclose(found[0].upper, float(119 * t - 118 * loo.mean()), rel_tol=1e-9)
    se = [SIGMAS * float(v.std()) / 4000**0.5 for v in (lower, upper)]
    assert float(lower.mean()) + se[0] < 0.5 < float(upper.mean()) + se[1]
    assert float((2 * lower - upper).mean()) + se[1] <= 0.5  # the mutant: the correction with the other sign


def test_one_weight_that_is_nearly_all_there_is_stays_exact():
    w = torch.tensor([0.0, -40.0, -41.0], dtype=torch.float64)
    t = [torch.cat((w[:i], w[i + 1 :])).logsumexp(0) - math.log(2) for i in range(3)]
    expected = 5 * (w.logsumexp(0) - math.log(3)) - 4 * sum(t) / 3
    assert math.isclose(E.residual_bounds(w).upper, float(expected), rel_tol=1e-12)


def ising_path(coupling=0.3):
    model = M.Ising.lattice(3, coupling=coupling, field=0.2)
    return gb.Geometric(model.space.uniform(), model), S.GibbsSweep(), float(gb.exact.log_z(model)), model


def rbm_path():
    rbm = M.RBM.random(8, 5, variance=0.4, seed=1)
    path = E.RBMPath(rbm, D.Bernoulli(torch.linspace(-1.5, 1.0, 8)))
    return path, S.BlockGibbs(), float(rbm.log_z().detach()), rbm


paths = pytest.mark.parametrize("case", [ising_path, rbm_path], ids=["ising", "rbm"])


@paths
def test_smc_is_unbiased_on_a_fixed_ladder_and_its_error_is_the_spread(case):
    """300 runs of 40 particles: E[Z^] = Z by a z-test; the mean stated error within 4.9 sigma, 20 %, of the spread."""
    path, kernel, log_z, _ = case()
    runs = [E.smc(path, kernel, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), particles=40, seed=s).log_z for s in range(300)]
    ratio = torch.tensor([math.exp(z.value - log_z) for z in runs])
    assert abs(float(ratio.mean()) - 1) < SIGMAS * float(ratio.std()) / 300**0.5
    stated = torch.tensor([z.stderr for z in runs]).square().mean().sqrt()
    assert 0.7 < float(stated / ratio.std()) < 1.4
    # the mutant: resampled weights not counted into log Z, as if each resampling kept only the last weights
    assert not abs(float(ratio.mean()) * 0.8 - 1) < SIGMAS * float(ratio.std()) / 300**0.5


@paths
def test_smc_finds_its_own_temperatures(case):
    path, kernel, log_z, model = case()
    found = E.smc(path, kernel, particles=2000, share=0.8, seed=0)
    assert abs(found.log_z.value - log_z) < SIGMAS * found.log_z.stderr < 0.5
    assert found.betas[0] == 0 and found.betas[-1] == 1 and list(found.betas) == sorted(set(found.betas))
    again = E.smc(path, kernel, found.betas, particles=2000, seed=1).log_z
    assert again.lower < log_z and again.trusted
    p = gb.exact.probabilities(model).detach()
    u = float((found.log_w.exp() * model(found.x).double()).sum().detach())
    spread = float((found.log_w.exp() * (model(found.x).double() - u).square()).sum().detach()) ** 0.5
    exact = float((p * model(gb.exact.states(model.space)).double()).sum().detach())
    assert abs(u - exact) < SIGMAS * spread / found.log_z.ess**0.5


def test_temperatures_that_follow_few_particles_are_not_trusted():
    """Of 100 particles some 20 lineages are left, too few for an error that comes from temperatures of their own choice."""
    path, kernel, _, _ = ising_path()
    runs = [E.smc(path, kernel, particles=100, seed=s) for s in range(20)]
    assert not any(found.log_z.trusted for found in runs) and "lineages" in runs[0].log_z.why
    assert E.smc(path, kernel, runs[0].betas, particles=100, seed=200).log_z.trusted


@pytest.mark.parametrize("sizes", [(3000, 3000), (3000, 500)])
def test_a_bridge_is_exact_for_draws_of_both(sizes):
    _, _, log_z, model = ising_path(0.3)
    p = gb.exact.probabilities(model)
    x = gb.exact.states(model.space)[torch.multinomial(p, sizes[1], True, generator=torch.Generator().manual_seed(0))]
    start = model.space.uniform()
    z = E.bridge(start, model, start.sample(sizes[0], seed=1), x)
    assert abs(z.value - log_z) < SIGMAS * z.stderr < 0.5 and z.trusted
    wrong = E.bridge(
        start, model, start.sample(sizes[0], seed=1), start.sample(sizes[1], seed=2)
    )  # the mutant: no draws of it
    assert not abs(wrong.value - log_z) < SIGMAS * wrong.stderr


def test_a_bridge_between_real_models_and_one_without_overlap():
    a, b = D.Normal.standard(2), D.Normal.diagonal([0.7, 0.0], 1.3)
    z = E.bridge(gb.Product(a), lambda x: b(x) + 3.0, a.sample(4000, seed=0), b.sample(4000, seed=1))
    assert abs(z.value - 3.0) < SIGMAS * z.stderr < 0.2 and z.lower < 3.0 < z.upper
    far = D.Normal.diagonal([40.0, 0.0], 1.0)
    assert not E.bridge(a, far, a.sample(50, seed=0), far.sample(50, seed=1)).trusted


@paths
def test_thermodynamic_integration_encloses_log_z(case):
    path, kernel, log_z, _ = case()
    z = E.thermodynamic(path, kernel, E.linear(40), steps=40, chains=100, seed=0)
    assert z.trusted and z.lower < log_z < z.upper and abs(z.value - log_z) < SIGMAS * z.stderr < 0.5
    coarse = E.thermodynamic(path, kernel, E.linear(2), steps=40, chains=100, seed=0)
    assert coarse.lower < log_z < coarse.upper and coarse.upper - coarse.lower > 3 * (z.upper - z.lower)
    base = float(gb.exact.log_z(path.at(0.0)).detach())
    if abs(base) > 1e-3:  # the mutant: log Z of the base left out
        assert not abs(z.value - base - log_z) < SIGMAS * z.stderr


def test_chains_that_lag_behind_beta_are_told():
    model = M.Ising.lattice(12, coupling=0.6)
    path = gb.Geometric(model.space.uniform(), model)
    z = E.thermodynamic(path, S.Gibbs(), E.linear(10), steps=200, chains=200, seed=0)
    assert not z.trusted and "drift" in z.why


def test_slopes_are_derivatives():
    path, _, _, rbm = rbm_path()
    x = gb.exact.states(rbm.space)[::7]
    with torch.no_grad():
        numeric = (path.at(0.51)(x) - path.at(0.49)(x)) / 0.02
    assert torch.allclose(path.slope(0.5, x).float(), numeric, atol=2e-3)


def test_iwae_is_below_log_p_and_closes_with_k():
    """h ~ N(0, 1), x | h ~ N(h, 1), so x ~ N(0, 2); q(h | x) = N(0, 1.5) is poor."""
    q, prior = D.Normal.diagonal([0.0], 1.5), D.Normal.standard(1)

    def log_weights(x, k, generator):
        h = q.sample(k * len(x), seed=generator).view(k, len(x), 1)
        return prior(h) + prior(x - h) - q(h)

    x = D.Normal.diagonal([0.0], 2**0.5).sample(4000, seed=0)
    exact = float(D.Normal.diagonal([0.0], 2**0.5)(x).mean())
    few, many = (E.iwae(log_weights, x, k, seed=1, batch=150) for k in (5, 500))
    assert few.value < many.value and abs(many.value - exact) < SIGMAS * many.stderr + 2 / 500
    assert exact - few.value > SIGMAS * few.stderr  # k = 5 is visibly below, so that taking it for log p would be seen


def test_a_grid_integrates_and_says_when_the_box_or_the_step_is_wrong():
    mixture = D.NormalMixture(torch.tensor([0.3, 0.7]), torch.tensor([[-1.0, 0.0], [2.0, 1.0]]), 0.4)
    z = E.integrate(lambda x: mixture(x) + 1.5, (-5, -4), (6, 5), 201, space=gb.Real(2))
    assert abs(z.value - 1.5) < 1e-5 and z.trusted
    line = E.integrate(D.Normal.standard(1), -9.0, 9.0, 101)
    assert abs(line.value) < 1e-6 and line.trusted
    cut = E.integrate(D.Normal.standard(1), 0.0, 9.0, 401)
    assert abs(cut.value - math.log(0.5)) < 1e-4 and not cut.trusted and "wider box" in cut.why
    rough = E.integrate(D.Normal.diagonal([0.0], 0.02), -9.0, 9.3, 51)
    assert not rough.trusted and "take more points" in rough.why


def test_the_effective_size_of_lineages_falls_where_particles_descend_from_few():
    path, kernel, _, _ = ising_path(0.8)
    near, far = (E.smc(path, kernel, betas, particles=200, seed=0).log_z for betas in (E.linear(20), (0.0, 1.0)))
    assert far.ess < near.ess < 200
