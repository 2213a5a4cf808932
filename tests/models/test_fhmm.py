"""The factorial HMM: joint, exact answers, chain-by-chain Gibbs."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gb
from gibbsite.models import fhmm as module

from .helpers import assert_site_logits_exact, small_fhmm, stationarity_gap


def slow_potential(model, x):
    y, W, b, v = model.observations, model.weight.detach(), float(model.bias.detach()), float(model.variance)
    total = 0.0
    for t in range(len(y)):
        mean = b + sum(float(W[k]) * int(x[t, k]) for k in range(len(W)))
        total += -0.5 * math.log(2 * math.pi * v) - (float(y[t]) - mean) ** 2 / (2 * v)
        for k in range(len(W)):
            stay = float(model.stay[k])
            one = float(model.start[k]) if t == 0 else (stay if x[t - 1, k] else 1 - stay)
            total += math.log(one if x[t, k] else 1 - one)
    return total


@pytest.mark.parametrize(("length", "factors"), [(3, 2), (1, 3), (4, 1)])
def test_potential_is_the_log_joint(length, factors, device):
    model = small_fhmm(length, factors).to(device)
    x = gb.exact.states(model.space).to(device)
    slow = torch.tensor([slow_potential(model, row) for row in x], dtype=torch.float64, device=device)
    assert (model(x) - slow).abs().max() < 1e-12
    assert (model(x.double()) - slow).abs().max() < 1e-12
    assert model(x.view(2, -1, length, factors)).shape == (2, len(x) // 2)


def test_gradient_of_the_float_view_is_that_of_the_gaussian_and_the_bilinear_transitions():
    model = small_fhmm()
    x = gb.exact.states(model.space)[::7].double()
    assert torch.autograd.gradcheck(model, x.requires_grad_())
    # the Taylor table is off by the Gaussian's curvature, W_k^2 / (2 variance), and by nothing else
    bits = gb.exact.states(model.space)
    gap = gb.site_logits(model, bits, "taylor")[1] - gb.site_logits(model, bits)[1]
    curvature = (model.weight.detach() ** 2 / (2 * model.variance)).repeat(3)
    changed = gap.gather(-1, 1 - bits.flatten(1).long()[..., None])[..., 0]
    assert (changed - curvature).abs().max() < 1e-10


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_closed_form_and_forward_backward_are_exact(length, factors, seed):
    model = small_fhmm(length, factors, seed)
    if model.space.sites <= 9:
        assert_site_logits_exact(model)
    p, x = gb.exact.probabilities(model), gb.exact.states(model.space)
    assert abs(model.log_z() - gb.exact.log_z(model)) < 1e-10
    assert (model.marginals() - (p[:, None, None] * x).sum(0)).abs().max() < 1e-10


def test_gradient_of_log_z_is_the_posterior_mean_of_the_gradient():
    model = small_fhmm()
    exact = torch.autograd.grad(model(gb.exact.states(model.space)).logsumexp(0), list(model.parameters()))
    fast = torch.autograd.grad(model.log_z(), list(model.parameters()))
    assert all((a - b).abs().max() < 1e-10 for a, b in zip(exact, fast, strict=True))


def test_exact_draws_have_the_posterior_law():
    model = small_fhmm(3, 2)
    K = torch.zeros(1, 64, dtype=torch.float64)
    for x, origin, log_weight in gb.exact.outcomes(lambda rows, script: model.sample_exact(len(rows), seed=script), 1):
        K.view(-1).index_add_(0, origin * 64 + gb.exact.index(model.space, x), log_weight.exp())
    assert (K[0] - gb.exact.probabilities(model)).abs().sum() < 1e-10
    draws = model.sample_exact(7, seed=0)
    assert draws.shape == (7, 3, 2)
    assert torch.equal(draws, model.sample_exact(7, seed=0))


def test_paper_size_is_exact_too():
    model = gb.models.FHMM.random(20, 10, seed=0)
    marginals = model.marginals()
    n = 4000
    draws = model.sample_exact(n, seed=1).double().mean(0)
    # 200 binomial frequencies: 5.8 sd each (plus 6 / n for the rarest) is a false alarm of 1e-6 in all
    bound = 5.8 * (marginals * (1 - marginals) / n).sqrt() + 6 / n
    assert bool(((draws - marginals).abs() < bound).all())
    mutant = gb.models.FHMM(model.observations, model.weight, model.bias, variance=0.25)  # .5 read as the deviation
    assert not bool(((mutant.marginals() - marginals).abs() < bound).all())


CLAMP = torch.tensor([[True, False], [False, False], [False, True]])
ROW = torch.tensor([[True, False], [True, False], [True, False]])


@pytest.mark.parametrize("clamp", [None, CLAMP, ROW], ids=["free", "some", "row"])
@pytest.mark.parametrize("kernel", [gb.sample.BlockGibbs, gb.sample.Gibbs, gb.sample.GibbsSweep])
def test_gibbs_is_stationary(kernel, clamp):
    assert stationarity_gap(kernel(clamp=clamp), small_fhmm(), clamp) < 1e-10


def test_one_chain_alone_is_drawn_from_the_posterior_in_one_step():
    model = small_fhmm(5, 1)
    K = gb.exact.transition_matrix(gb.sample.BlockGibbs(), model)
    assert (K - gb.exact.probabilities(model)).abs().max() < 1e-10


def test_the_stationarity_test_rejects_a_chain_drawn_without_its_backward_messages(monkeypatch):
    def forgetful(seen, start, stay, source):
        values = [gb.random.categorical(start + seen[:, 0], source)]
        for row in seen[:, 1:].unbind(1):
            link = torch.where(torch.arange(2) == values[-1][:, None], stay.log(), torch.log1p(-stay))
            values.append(gb.random.categorical(link + row, source))
        return torch.stack(values, 1)

    monkeypatch.setattr(module, "_draw_chain", forgetful)
    assert stationarity_gap(gb.sample.BlockGibbs(), small_fhmm()) > 1e-3


def test_random_draws_are_named_by_the_seed_and_keep_the_truth():
    one, two = gb.models.FHMM.random(30, 4, seed=3), gb.models.FHMM.random(30, 4, seed=3)
    assert torch.equal(one.observations, two.observations)
    assert one.truth is not None
    assert one.truth.shape == (30, 4)
    residual = one.observations - one.truth.float() @ one.weight.detach() - one.bias.detach()
    assert residual.abs().max() < 6 * math.sqrt(0.5)
    assert one.space == gb.Binary((30, 4))


def test_random_chains_stay_and_start_as_asked():
    model = gb.models.FHMM.random(2000, 50, seed=0)
    x = model.truth
    assert x is not None
    n = 1999 * 50
    # a binomial frequency: 4.9 sd is a false alarm of 1e-6
    same = (x[1:] == x[:-1]).double()
    assert abs(same.mean() - 0.95) < 4.9 * math.sqrt(0.95 * 0.05 / n)
    assert abs(same[x[:-1] == 0].mean() - 0.95) < 4.9 * math.sqrt(0.95 * 0.05 / (n / 4))
    # the mutant: p(1 | 0) = .95, as the formula reads if its exponents are lost
    assert abs((x[1:] == 1).double()[x[:-1] == 0].mean() - 0.95) > 0.5


def test_more_than_12_chains_are_refused_where_joint_states_are_summed():
    assert gb.models.FHMM.random(2, 12, seed=0).log_z().isfinite()
    model = gb.models.FHMM.random(2, 13, seed=0)
    for exact in (model.log_z, model.marginals, lambda: model.sample_exact(2, seed=0)):
        with pytest.raises(ValueError, match=r"at most 12 chains .* got 13"):
            exact()


def test_other_blocks_refused():
    with pytest.raises(TypeError, match="only pairwise models"):
        gb.sample.BlockGibbs(blocks=[[0, 1, 2, 3, 4, 5]]).init(small_fhmm(), torch.zeros(1, 3, 2, dtype=torch.int8))
    assert small_fhmm().blocks == 2


Y, W = torch.zeros(4), torch.zeros(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gb.models.FHMM(Y[None], W), r"observations: expected finite floats of shape \(times,\), got"),
        (lambda: gb.models.FHMM(Y + float("nan"), W), "observations: expected finite .* with nan at"),
        (lambda: gb.models.FHMM(Y, W.long()), "weight: expected finite floats"),
        (lambda: gb.models.FHMM(Y, W[:0]), "weight: expected at least one each"),
        (lambda: gb.models.FHMM(Y, W, W), r"bias: expected finite floats of shape \(\)"),
        (lambda: gb.models.FHMM(Y, W, variance=0.0), "variance: expected a positive"),
        (lambda: gb.models.FHMM(Y, W, start=0.0), "start: expected a probability"),
        (lambda: gb.models.FHMM(Y, W, stay=1.0), "stay: expected a probability"),
        (lambda: gb.models.FHMM(Y, W, stay=torch.full((3,), 0.5)), "stay: expected a probability in \\(0, 1\\), one or 2"),
    ],
)
def test_parameters_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
