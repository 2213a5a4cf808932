"""The RBM: marginal, conditionals, exact log Z, block Gibbs."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gb
from gibbsite.models import rbm as module

from .helpers import assert_site_logits_exact, draw, small_rbm, stationarity_gap


def test_potential_sums_the_hidden_units_out(device):
    model = small_rbm().to(device)
    x, h = gb.exact.states(model.space).to(device), gb.exact.states(gb.Binary(3)).to(device)
    joint = model.log_joint(x[:, None], h)
    W, b, c = (p.detach() for p in (model.weight, model.visible_bias, model.hidden_bias))
    slow = [[b @ v.double() + c @ g.double() + g.double() @ W @ v.double() for g in h] for v in x]
    assert (joint - torch.tensor(slow, device=device)).abs().max() < 1e-12
    assert (model(x) - joint.logsumexp(1)).abs().max() < 1e-12
    assert (model(x.double()) - model(x)).abs().max() < 1e-12


def test_conditionals_are_those_of_the_joint():
    model = small_rbm()
    x, h = gb.exact.states(model.space), gb.exact.states(gb.Binary(3))
    joint = model.log_joint(x[:, None], h)
    p_h = joint.softmax(1) @ h.double()
    p_x = joint.softmax(0).T @ x.double()
    assert (model.hidden_logits(x).sigmoid() - p_h).abs().max() < 1e-12
    assert (model.visible_logits(h).sigmoid() - p_x).abs().max() < 1e-12


@pytest.mark.parametrize(("visible", "hidden"), [(6, 3), (3, 6), (5, 5), (1, 1)])
def test_log_z_and_its_gradient(visible, hidden, monkeypatch):
    model = small_rbm(visible, hidden)
    wanted = model(gb.exact.states(model.space)).logsumexp(0)
    assert abs(model.log_z() - wanted) < 1e-10
    monkeypatch.setattr(module, "_MEMORY", 20)  # many chunks
    assert abs(model.log_z() - wanted) < 1e-10
    slow = torch.autograd.grad(wanted, list(model.parameters()))
    fast = torch.autograd.grad(model.log_z(), list(model.parameters()))
    assert all((a - b).abs().max() < 1e-10 for a, b in zip(slow, fast, strict=True))


def test_log_z_with_large_inputs_keeps_its_digits():
    # one hidden unit at input 22: a softplus that turns linear at 20 is wrong by 3e-10
    model = gb.models.RBM.from_weights(
        torch.zeros(1, 1).double(), torch.zeros(1).double(), torch.tensor([22.0], dtype=torch.float64)
    )
    assert abs(model.log_z().item() - (math.log(2) + math.log1p(math.exp(22)))) < 1e-13
    assert abs(math.log(2) + float(torch.nn.functional.softplus(torch.tensor(22.0).double())) - model.log_z().item()) > 1e-10


def test_log_z_refuses_more_than_25_units_on_both_sides():
    assert gb.models.RBM(26, 2).log_z().isfinite()
    with pytest.raises(ValueError, match="at most 25 units on the smaller side, got 26"):
        gb.models.RBM(27, 26).log_z()


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_closed_form_is_exact(visible, hidden, seed):
    assert_site_logits_exact(small_rbm(visible, hidden, seed))


def test_closed_form_in_chunks(monkeypatch):
    monkeypatch.setattr(module, "_MEMORY", 1)
    assert_site_logits_exact(small_rbm())


CLAMP = torch.tensor([True, False, False, True])


@pytest.mark.parametrize("clamp", [None, CLAMP])
@pytest.mark.parametrize("kernel", [gb.sample.BlockGibbs, gb.sample.Gibbs, gb.sample.GibbsSweep])
def test_gibbs_is_stationary(kernel, clamp):
    assert stationarity_gap(kernel(clamp=clamp), small_rbm(), clamp) < 1e-10


def test_the_stationarity_test_rejects_the_papers_swapped_biases():
    model = small_rbm(3, 3)
    wrong = gb.models.RBM.from_weights(model.weight, model.hidden_bias, model.visible_bias)

    class Mutant:
        def init(self, _, x):
            return gb.sample.BlockGibbs().init(model, x)

        def step(self, _, state, generator):
            return gb.sample.BlockGibbs().step(wrong, state, generator)

    assert stationarity_gap(Mutant(), model) > 1e-3


def test_block_gibbs_is_one_block_and_takes_no_others():
    model = small_rbm()
    assert model.blocks == 1
    with pytest.raises(TypeError, match="only pairwise models"):
        gb.sample.BlockGibbs(blocks=[[0, 1], [2, 3]]).init(model, gb.exact.states(model.space))


def test_seed_names_the_weights():
    one, two, other = gb.models.RBM(8, 5), gb.models.RBM(8, 5, seed=0), gb.models.RBM(8, 5, seed=1)
    assert torch.equal(one.weight, two.weight)
    assert not torch.equal(one.weight, other.weight)
    assert not one.visible_bias.any()


def test_random_machine_has_the_variance_asked_for():
    W = gb.models.RBM.random(100, 100, seed=0).weight
    # 10,000 normals: the sample variance has relative sd sqrt(2 / n); 4.9 of them is a false alarm of 1e-6
    assert abs(W.var() / 0.05 - 1) < 4.9 * math.sqrt(2 / 10_000)
    mutant = 0.05 * draw(100, 100)  # .05 read as the deviation
    assert abs(mutant.var() / 0.05 - 1) > 4.9 * math.sqrt(2 / 10_000)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 2), (3,), (2,)), r"visible_bias: expected finite floats of shape \(2,\), got float32 \(3,\)"),
        (((3, 2), (2,), (2,)), r"hidden_bias: expected finite floats of shape \(3,\), got float32 \(2,\)"),
        (((3,), (3,), (3,)), r"weight: expected finite floats of shape \(hidden, visible\)"),
    ],
)
def test_weights_of_wrong_shapes_refused(shapes, message):
    with pytest.raises(ValueError, match=message):
        gb.models.RBM.from_weights(*(torch.zeros(s) for s in shapes))


def test_weights_that_are_no_finite_floats_refused():
    W, b, c = torch.zeros(3, 2), torch.zeros(2), torch.zeros(3)
    with pytest.raises(ValueError, match="weight: expected finite floats"):
        gb.models.RBM.from_weights(W.long(), b, c)
    with pytest.raises(ValueError, match="hidden_bias: expected finite floats"):
        gb.models.RBM.from_weights(W, b, c + float("nan"))
    for hidden in (0, 2.5, (2,)):
        with pytest.raises(ValueError, match="hidden: expected a positive integer, got"):
            gb.models.RBM(3, hidden, seed=0)
    for visible in (0, 4.0, (2, 3)):
        with pytest.raises(ValueError, match="visible: expected a positive integer, got"):
            gb.models.RBM(visible, 3, seed=0)
