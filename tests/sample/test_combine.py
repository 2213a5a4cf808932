"""Cycle, Mixture, Repeat: costs, info, errors. Their laws are in tests/oracle."""

import numpy as np
import pytest
import torch

import gibbsite as gb
from gibbsite.model import counting

S = gb.sample
HELD = torch.tensor([True, False, False, True, False, False])


def start():
    model = gb.models.Ising.lattice((2, 3), coupling=0.3).double()
    return model, model.space.uniform().sample(5, seed=0)


def test_costs_add_up():
    model, x = start()
    gwg, generator = S.MH(S.Informed()), torch.Generator().manual_seed(0)
    for kernel, evaluations, gradients in (
        (S.Repeat(gwg, 4), 4, 4),
        (S.Cycle([gwg]), 1, 1),
        (S.Cycle([gwg, S.Gibbs()]), 3 + 1 / 6, 2),  # one site of six, and what each of the two changes of state evaluates
    ):
        _, info = kernel.step(model, kernel.init(model, x), generator)
        assert info.cost == pytest.approx((evaluations, gradients))
        assert info.acceptance.shape == (5,) and bool((info.acceptance <= 1).all())


@pytest.mark.parametrize(
    "kernel",
    [
        S.Gibbs(),
        S.GibbsSweep(),
        S.BlockGibbs(),
        S.HammingBall(3),
        S.GibbsSweep(clamp=HELD),
        S.BlockGibbs(clamp=HELD),
        S.BlockGibbs(blocks=[[0, 4], [1, 5], [2], [3]], clamp=HELD),
        S.MH(S.Informed(how="exact")),
        S.MH(S.Informed(how="enumerate")),
        S.MH(S.InformedWindow(2, how="enumerate")),
        S.MH(S.DiscreteLangevin(how="enumerate")),
        S.MH(S.PathAuxiliary()),
        S.Wolff(),
        S.Cycle([S.MH(S.Informed()), S.Gibbs()]),
        S.Mixture([S.Gibbs(), S.MH(S.Informed())], [0.0, 1.0]),
        S.WithinGibbs(lambda held: S.Informed(clamp=held)),
        S.Tempering(S.MH(S.Informed()), gb.Binary(6).uniform(), (0.5, 1.0)),
    ],
    ids=lambda k: type(k).__name__,
)
def test_the_cost_is_what_was_evaluated(kernel):
    model, x = start()
    state = kernel.init(model, x)
    with counting() as count:
        _, info = kernel.step(model, state, torch.Generator().manual_seed(0))
    assert info.cost == pytest.approx((count.evaluations / 5, count.gradients / 5))


def test_a_mixture_picks_by_weight():
    model, x = start()
    generator = torch.Generator().manual_seed(0)
    for weights, gradients in (([0.0, 1.0], 0), ([1.0, 0.0], 1)):
        kernel = S.Mixture([S.MH(S.Informed()), S.Gibbs()], weights)
        _, info = kernel.step(model, kernel.init(model, x), generator)
        assert (info.cost.gradients == 1) and (info.cost.evaluations > 1) == (gradients == 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: S.Cycle([]), "at least one"),
        (lambda: S.Repeat(S.Gibbs(), 0), "times"),
        (lambda: S.Mixture([S.Gibbs()], [-1.0]), "non-negative"),
        (lambda: S.Mixture([S.Gibbs()], [1.0, 1.0]), "one a kernel"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_kernels_and_weights_may_be_any_sequence():
    model, x = start()
    pair = [S.Gibbs(), S.MH(S.Informed())]
    for weights in (np.array([0.0, 1.0]), torch.tensor([0.0, 1.0]), (0, 1)):
        kernel = S.Mixture(pair, weights)
        assert kernel.weights == (0.0, 1.0) and kernel.kernels == tuple(pair)
        _, info = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))
        assert info.cost.gradients > 0
    assert S.Cycle(pair).kernels == tuple(pair) and isinstance(hash(S.Cycle(pair)), int)
    for weights in (np.array([0.0, 0.0]), [torch.nan, 1.0], [torch.inf, 1.0]):
        with pytest.raises(ValueError, match=r"not all 0|a non-negative number"):
            S.Mixture(pair, weights)
