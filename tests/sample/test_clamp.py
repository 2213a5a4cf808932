"""Clamps: what is refused, and that every discrete kernel reads them."""

import pytest
import torch

import gibbsite as gb
from gibbsite.sample.clamp import free_mask, free_sites

S = gb.sample


def model():
    return gb.models.Ising.lattice((2, 2), coupling=0.3)


@pytest.mark.parametrize(
    ("clamp", "message"),
    [
        (torch.tensor([1, 0, 0, 0]), "expected a bool mask of shape"),
        (torch.tensor([True, False]), "expected a bool mask of shape"),
        (torch.ones(4, dtype=torch.bool), "at least one free site"),
    ],
)
def test_masks_that_make_no_sense_are_refused(clamp, message):
    x = torch.zeros(1, 4, dtype=torch.int8)
    for kernel in (
        S.Gibbs(clamp=clamp),
        S.GibbsSweep(clamp=clamp),
        S.BlockGibbs(clamp=clamp),
        S.HammingBall(2, clamp=clamp),
        S.MH(S.Informed(clamp=clamp)),
        S.MH(S.RandomFlips(clamp=clamp)),
        S.Wolff(clamp=clamp),
        S.SwendsenWang(clamp=clamp),
    ):
        with pytest.raises(ValueError, match=message):
            gb.run(kernel, model(), x, steps=1, seed=0)


def test_free_sites_are_in_row_major_order():
    space_model = gb.Binary((2, 2)).uniform()
    held = torch.tensor([[True, False], [False, False]])
    assert free_mask(space_model, held, torch.device("cpu")).tolist() == [False, True, True, True]
    assert free_sites(space_model, held, torch.device("cpu")).tolist() == [1, 2, 3]


@pytest.mark.parametrize("kernel", [S.GibbsSweep, S.Wolff, S.SwendsenWang, S.BlockGibbs, S.Gibbs])
def test_clamped_sites_keep_their_values_in_compiled_runs(kernel):
    lattice = gb.models.Ising.lattice(6, coupling=0.4)
    held = torch.zeros(36, dtype=torch.bool)
    held[::5] = True
    x = lattice.space.uniform().sample(20, seed=0)
    chain = gb.run(kernel(clamp=held), lattice, x, steps=50, seed=1)
    assert torch.equal(chain.samples[..., held], x[:, held].expand(50, -1, -1))
    assert not torch.equal(chain.samples[-1], x)


@pytest.mark.parametrize("make", [S.Gibbs, S.GibbsSweep, S.BlockGibbs, lambda clamp: S.MH(S.Informed(clamp=clamp))])
def test_a_list_is_a_mask_too(make):
    x = model().space.uniform().sample(5, seed=0)
    one, two = (
        gb.run(make(clamp=clamp), model(), x, steps=5, seed=1)
        for clamp in ([True, False, False, True], torch.tensor([True, False, False, True]))
    )
    assert torch.equal(one.samples, two.samples) and torch.equal(one.samples[..., 0], x[:, 0].expand(5, -1))


@pytest.mark.parametrize("clamp", [torch.tensor([1, 0, 0, 0]), torch.tensor([True, False]), torch.ones(4, dtype=torch.bool)])
def test_masks_are_checked_at_init(clamp):
    x, q = torch.zeros(1, 4, dtype=torch.int8), gb.Binary(4).uniform()
    for kernel in (S.Gibbs(clamp=clamp), S.GibbsSweep(clamp=clamp), S.MH(S.Independent(q, clamp=clamp))):
        with pytest.raises(ValueError, match="clamp: expected"):
            kernel.init(model(), x)


def test_kernels_with_masks_can_be_compared():
    mask = torch.tensor([True, False])
    for make in (S.Gibbs, S.GibbsSweep, S.BlockGibbs, S.Informed, S.RandomFlips, S.HammingBall, S.DiscreteLangevin):
        one = make(clamp=mask)
        assert one == one and one != make(clamp=mask) and len({one, make(clamp=mask)}) == 2
    assert S.HMC(0.1, mass=torch.ones(2)) != S.HMC(0.1, mass=torch.ones(2))
