"""Cycle, Mixture, Repeat: costs, info, errors. Their laws are in tests/oracle."""

import pytest
import torch

import gibbsite as gb

S = gb.sample


def start():
    model = gb.models.Ising.lattice((2, 3), coupling=0.3).double()
    return model, model.space.uniform().sample(5, seed=0)


def test_costs_add_up():
    model, x = start()
    gwg, generator = S.MH(S.Informed()), torch.Generator().manual_seed(0)
    for kernel, evaluations, gradients in (
        (S.Repeat(gwg, 4), 4, 4),
        (S.Cycle([gwg]), 1, 1),
        (S.Cycle([gwg, S.Gibbs()]), 4, 1),  # and one evaluation for each of the two changes of state
    ):
        _, info = kernel.step(model, kernel.init(model, x), generator)
        assert info.cost == S.Cost(evaluations, gradients)
        assert info.acceptance.shape == (5,) and bool((info.acceptance <= 1).all())


def test_a_mixture_picks_by_weight():
    model, x = start()
    kernel = S.Mixture([S.Gibbs(), S.MH(S.Informed())], [0.0, 1.0])
    _, info = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))
    assert info.cost.gradients == 1


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
