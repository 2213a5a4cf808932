"""Faults seen in other toolkits, each with a test that this one does not have it."""

import pytest
import torch

import gibbsite as gb
from gibbsite._fast import gibbs, gwg

S = gb.sample


def test_spins_written_as_plus_and_minus_one_are_refused_not_walked_out_of_the_space():
    model = gb.models.Ising.lattice(4, coupling=0.3)
    with pytest.raises(ValueError, match=r"expected integers in \[0, 2\) of shape \(\*, 16\)"):
        gb.run(S.MH(S.Informed()), model, 2 * torch.ones(2, 16) - 1, steps=1, seed=0)
    with pytest.raises(ValueError, match=r"got -1 at \[0, 0\]"):
        gb.run(S.MH(S.Informed()), model, torch.full((2, 16), -1), steps=1, seed=0)


def test_gibbs_with_gradients_stays_in_the_space():
    space = gb.Categorical(6, 4)
    table = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    model = gb.Potential(lambda x: (space.embed(x) * table).sum((-1, -2)), space)
    chain = gb.run(S.MH(S.Informed(draws=2)), model, space.uniform().sample(16, seed=0), steps=200, seed=1)
    space.check(chain.samples)
    assert chain.samples.unique().tolist() == [0, 1, 2, 3]


def test_coupled_sites_in_one_block_are_an_error():
    model = gb.models.Ising.lattice(4, coupling=0.3)
    rows = [list(range(4 * r, 4 * r + 4)) for r in range(4)]
    with pytest.raises(ValueError, match="sites 0 and 1 are coupled and both in block 0"):
        gb.run(S.BlockGibbs(blocks=rows), model, model.space.uniform().sample(2, seed=0), steps=1, seed=0)


@pytest.mark.parametrize(
    "kernel", [S.GibbsSweep(), S.Gibbs(), S.BlockGibbs(), S.MH(S.Informed()), S.Wolff(), S.SwendsenWang()]
)
def test_nan_weights_stop_the_run_and_never_give_zeros(kernel):
    model = gb.models.Ising.lattice(4, coupling=0.3)
    with torch.no_grad():
        model.pairs.weights[3] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        gb.run(kernel, model, model.space.uniform().sample(2, seed=0), steps=1, seed=0)


@pytest.mark.parametrize("kernel", [S.HMC(0.1, 3), S.MALA(0.1), S.NUTS(0.1), S.Langevin(0.1), S.MH(S.RandomWalk(0.1))])
def test_image_shaped_states_and_plain_callables_are_sampled(kernel):
    x = torch.zeros(3, 2, 4, 4)
    chain = gb.run(kernel, lambda x: -0.5 * x.square().sum((-1, -2, -3)), x, steps=3, seed=0, space=gb.Real((2, 4, 4)))
    assert chain.samples.shape == (3, 3, 2, 4, 4) and bool((chain.samples[-1] != 0).any())


def test_an_odd_torus_is_coloured_so_that_no_class_holds_neighbours():
    model = gb.models.Ising.lattice((3, 5), coupling=0.4)
    colour = torch.full((15,), -1)
    for number, members in enumerate(model.classes):
        colour[members] = number
    assert bool((colour >= 0).all()) and len(model.classes) > 2
    i, j = model.edges.T
    assert bool((colour[i] != colour[j]).all())


def test_loops_are_compiled_once_and_not_again_for_each_run():
    model = gb.models.Ising.lattice(4, coupling=0.3)
    x = model.space.uniform().sample(2, seed=0)

    def compiled_versions():
        for kernel in (S.GibbsSweep(), S.MH(S.Informed())):
            gb.run(kernel, model, x, steps=2, seed=0)
        return len(gibbs.sweep.signatures), len(gwg.steps.signatures)

    assert compiled_versions() == compiled_versions()


def test_an_interrupted_run_that_goes_on_equals_an_uninterrupted_one():
    model = gb.Potential(lambda x: -0.25 * x.pow(4).sum(-1), gb.Real(3))
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    for kernel in (S.HMC(0.2, 4), S.MALA(0.3), S.NUTS(0.3)):
        whole, part = (torch.Generator().manual_seed(5) for _ in range(2))
        expected = gb.run(kernel, model, x, steps=10, seed=whole).samples
        first = gb.run(kernel, model, x, steps=4, seed=part)
        second = gb.run(kernel, model, first.state.x, steps=6, seed=part)
        assert torch.equal(expected, torch.cat((first.samples, second.samples)))


def test_a_loss_that_is_nan_stops_learning_and_is_never_replaced_by_a_number():
    model = gb.models.Ising.lattice(4, coupling=0.3)
    data = model.space.uniform().sample(16, seed=0)
    objective = gb.learn.Contrastive(model, gb.learn.Persistent(S.GibbsSweep(), data))
    with torch.no_grad():
        model.field[0] = torch.nan
    with pytest.raises(gb.learn.Diverged, match="step 0: the potential is nan"):
        optimiser = torch.optim.SGD(objective.parameters(), lr=0.1)
        gb.learn.fit(objective, data, optimiser=optimiser, steps=5, batch=8, seed=0)
    loss = gb.learn.contrastive(model, data, data)
    assert loss.isnan()


def test_annealing_a_binary_model_from_a_real_valued_base_is_an_error():
    """One toolkit's default base on a binary model returned 6.7e6 for a log Z of 11.2."""
    model = gb.models.RBM.random(8, 4, seed=0)
    normal = gb.distributions.Normal.standard(8)
    with pytest.raises(ValueError, match=r"base: expected a distribution on Binary\(shape=\(8,\)\)"):
        gb.bracket(model, base=normal, seed=0)
    with pytest.raises(ValueError, match="models: expected one space"):
        gb.Geometric(normal, model)

    class Mixed(gb.Path):
        start = normal

        def at(self, beta):
            return model

    for estimate in (gb.ais, gb.estimate.smc):
        with pytest.raises(ValueError, match="path: expected one space, got a start on Real"):
            estimate(Mixed(), S.BlockGibbs(), [0.0, 0.5, 1.0], seed=0)
    assert gb.bracket(model, temperatures=50, seed=0).trusted


def test_a_hole_in_a_mask_is_skipped_and_forbidden_labels_leave_no_nan():
    """One CRF gives another number where a mask has a hole, even a log-probability above 0, and NaN gradients under -inf."""
    g = torch.Generator().manual_seed(0)
    node, edge = torch.randn(1, 5, 3, generator=g).requires_grad_(), torch.randn(3, 3, generator=g)
    edge[0, 1] = edge[2, 2] = -torch.inf
    mask, y = torch.tensor([[True, True, False, False, True]]), torch.tensor([[0, 2, -100, -100, 1]])
    chain = gb.exact.LinearChain(node, edge.requires_grad_(), mask=mask)
    without = gb.exact.LinearChain(node[:, mask[0]], edge)
    assert torch.allclose(chain(y), without(y[:, mask[0]])) and bool((chain(y) < 0).all())
    for gradient in torch.autograd.grad(chain(y).sum(), (node, edge)):
        assert gradient.isfinite().all()
