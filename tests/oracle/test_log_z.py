"""Every annealed estimator of log Z against exact answers: unbiased weights, bounds on their sides, and mutants that fail.

Tests of means are z-tests with a two-sided false-alarm probability of 1e-6 (4.9 standard errors) from thousands of
independent chains; a bound's side is tested with the same margin.
"""

from itertools import pairwise

import pytest
import torch

import gibbsite as gb
from gibbsite.estimate import walk
from gibbsite.estimate.walk import backward, forward

S, M, D = gb.sample, gb.models, gb.distributions
SIGMAS = 4.9
BETAS = (0.0, 0.3, 0.7, 1.0)
CHAINS = 6000


def exact_draws(model, n, seed=5):
    p = gb.exact.probabilities(model).detach()
    return gb.exact.states(model.space)[torch.multinomial(p, n, True, generator=torch.Generator().manual_seed(seed))]


def ising():
    model = M.Ising.lattice(3, coupling=0.25, field=0.2)
    return gb.Geometric(model.space.uniform(), model), S.GibbsSweep(), float(gb.exact.log_z(model)), model


def fitted_rbm():
    rbm = M.RBM.random(8, 5, variance=0.3, seed=1)
    base = D.Bernoulli(torch.linspace(-1.5, 1.0, 8))
    return gb.estimate.RBMPath(rbm, base), S.BlockGibbs(), float(rbm.log_z().detach()), rbm


def potts():
    model = M.Potts.lattice((2, 3), states=3, coupling=0.5)
    base = D.Independent(torch.linspace(-0.5, 0.5, 18).view(6, 3))
    return gb.Geometric(base, model), S.MH(S.Informed()), float(gb.exact.log_z(model).detach()), model


def mixture():
    model = D.NormalMixture(torch.tensor([0.3, 0.7]), torch.tensor([[-1.0, 0.0], [1.0, 0.5]]), 0.7)
    return gb.Geometric(D.Normal.standard(2), gb.Product(model, weights=[1.0])), S.MALA(0.6), 0.0, model


CASES = {"ising": ising, "rbm": fitted_rbm, "potts": potts, "mixture": mixture}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def draws(model, n):
    return model.sample(n, seed=5) if isinstance(model, gb.Distribution) else exact_draws(model, n)


def unbiased(log_w, log_z):
    """Whether the mean of w / Z is 1, by a z-test."""
    ratio = (log_w - log_z).exp()
    return abs(float(ratio.mean()) - 1) < SIGMAS * float(ratio.std()) / len(ratio) ** 0.5


def weighed_after_the_move(path, kernel, betas, x, generator, *, reverse=False):
    """The mutant: chains move to beta_k first, and are weighed where they then stand."""
    order = betas[::-1] if reverse else betas
    log_w = torch.zeros(len(x), dtype=torch.float64)
    for low, high in pairwise(order):
        model = path.at(high)
        x = kernel.step(model, kernel.init(model, x), generator)[0].x
        log_w += (model(x) - path.at(low)(x)).double().detach()
    return log_w


@each
def test_forward_weights_are_unbiased_and_those_taken_after_the_move_are_not(case):
    path, kernel, log_z, _ = case()
    log_w = forward(path, kernel, BETAS, CHAINS, seed=0).log_w
    assert unbiased(log_w, log_z)
    x = path.start.sample(CHAINS, seed=1)
    gauge = (path.at(0.0)(x) - path.start(x)).double().detach()[0]
    late = weighed_after_the_move(path, kernel, BETAS, x, torch.Generator().manual_seed(2)) + gauge
    assert not unbiased(late, log_z)


@each
def test_reverse_weights_are_unbiased_for_one_over_z(case):
    path, kernel, log_z, model = case()
    x = draws(model, CHAINS)
    assert unbiased(backward(path, kernel, BETAS, x, seed=0).log_w, -log_z)
    # from the base's draws instead of the model's, which is what chains that have not mixed are like
    assert not unbiased(backward(path, kernel, BETAS, path.start.sample(CHAINS, seed=3), seed=0).log_w, -log_z)


@each
def test_forward_bounds_from_below_and_reverse_from_above_and_not_the_other_way_round(case):
    path, kernel, log_z, model = case()
    below = forward(path, kernel, (0.0, 1.0), CHAINS, seed=0).log_w
    above = -backward(path, kernel, (0.0, 1.0), draws(model, CHAINS), seed=1).log_w
    margins = [SIGMAS * float(values.std()) / CHAINS**0.5 for values in (below, above)]
    assert float(below.mean()) - margins[0] <= log_z <= float(above.mean()) + margins[1]
    assert not float(below.mean()) + margins[0] >= log_z  # the mutant: an upper bound from the forward weights
    assert not float(above.mean()) - margins[1] <= log_z


def test_the_log_z_of_the_base_counts():
    path, kernel, log_z, _ = fitted_rbm()
    log_w = forward(path, kernel, BETAS, CHAINS, seed=0).log_w
    base = float(gb.exact.log_z(path.at(0.0)))
    assert abs(base - (5 * torch.tensor(2.0).log() + path.start.logits.exp().log1p().sum()).item()) < 1e-5
    assert unbiased(log_w, log_z)
    assert not unbiased(log_w - base, log_z)


def test_the_two_directions_agree_as_crooks_says_for_a_reversible_kernel():
    """BAR of works of both directions, whose own error is stated; forward and reverse draws swapped are far off."""
    path, kernel, log_z, rbm = fitted_rbm()
    out = forward(path, kernel, (0.0, 0.5, 1.0), 4 * CHAINS, seed=0).log_w
    back = -backward(path, kernel, (0.0, 0.5, 1.0), exact_draws(rbm, 3 * CHAINS), seed=1).log_w
    value, error = gb.estimate.accept_ratio(out, back)
    assert abs(value - log_z) < SIGMAS * error and error < 0.02
    swapped = gb.estimate.accept_ratio(back, out)
    assert abs(swapped.value - log_z) > SIGMAS * swapped.stderr


@pytest.mark.parametrize("theta", [0.1, 0.2, 0.25, 0.5])
def test_kaufmans_ising_is_covered_or_not_trusted(theta):
    """GWG's 10x10 lattices, two of them ordered; truth.md's exact values. Ends lie 3 standard errors out."""
    exact = {0.1: 73.4530978038, 0.2: 88.1877006155, 0.25: 103.272975418, 0.5: 200.727975551}[theta]
    model = M.Ising.from_theta(10, theta=theta)
    z = gb.bracket(model, temperatures=600, chains=100, seed=3)
    assert not z.trusted or z.lower < exact < z.upper
    assert z.trusted or z.why
    if theta <= 0.2:
        assert z.trusted


def test_the_ordered_40x40_lattice_is_not_trusted_when_annealed_too_fast():
    """theta = .25: 60 temperatures give an answer that misses the exact one by dozens of nats, and says so."""
    model = M.Ising.from_theta(40, theta=0.25)
    z = gb.bracket(model, temperatures=60, chains=32, seed=0)
    assert not z.trusted and "the gap is wide" in z.why
    z = gb.bracket(model, temperatures=60, chains=32, settling=400, seed=0)
    assert not z.trusted and "disagree on the mean U" in z.why


def test_rbm_of_25_hidden_units_is_bracketed():
    rbm = M.RBM.random(60, 20, variance=0.05, seed=0)
    z = gb.bracket(rbm, temperatures=200, seed=1)
    assert z.trusted and z.lower < float(rbm.log_z().detach()) < z.upper and z.upper - z.lower < 0.5


def test_real_states_are_bracketed_with_nothing_but_the_model():
    model = D.NormalMixture(torch.tensor([0.4, 0.6]), torch.tensor([[3.0, 0.0, 1.0], [5.0, 1.0, 1.0]]), 0.5)
    shifted = gb.Potential(lambda x: model(x) + 2.0, model.space)
    z = gb.bracket(shifted, temperatures=100, seed=0)
    assert z.trusted and z.lower < 2.0 < z.upper


def test_the_driver_weighs_before_it_moves(monkeypatch):
    """The order of the calls themselves: an increment, then the move that it leads to, and no move at either end."""
    path, kernel, _, _ = ising()
    calls = []
    weigh, move = walk.increment, walk.transition
    monkeypatch.setattr(walk, "increment", lambda p, low, high, x: calls.append((low, high)) or weigh(p, low, high, x))
    monkeypatch.setattr(walk, "transition", lambda k, m, x, g: calls.append("move") or move(k, m, x, g))
    forward(path, kernel, BETAS, 4, seed=0)
    assert calls == [(0.0, 0.3), "move", (0.3, 0.7), "move", (0.7, 1.0)]
    calls.clear()
    backward(path, kernel, BETAS, path.start.sample(4, seed=0), seed=0)
    assert calls == [(1.0, 0.7), "move", (0.7, 0.3), "move", (0.3, 0.0)]
