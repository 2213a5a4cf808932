"""NUTS: cost, depth, divergences, efficiency. Exactness is in oracle/."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Normal
from gibbsite.sample import NUTS

from .test_langevin import Counting


def test_cost_counts_gradients(device):
    model, generator = Counting(2).to(device), torch.Generator(device=device).manual_seed(0)
    kernel = NUTS(0.2)
    state = kernel.init(model, torch.zeros(1, 2, device=device))
    model.calls = 0
    state, info = kernel.step(model, state, generator)
    assert model.calls == info.cost.gradients
    assert 2 ** (int(state.local.depth) - 1) <= model.calls < 2 ** int(state.local.depth)
    assert torch.allclose(state.local.gradient, gb.score(model, state.x)[1]) and torch.equal(state.u, model(state.x))


def test_depth_grows_as_the_step_shrinks():
    model, depths = Normal.standard(5), []
    for step in (1.0, 0.25, 0.0625):
        kernel = NUTS(step)
        state, _ = kernel.step(model, kernel.init(model, model.sample(200, seed=0)), torch.Generator().manual_seed(1))
        depths.append(state.local.depth.double().mean().item())
    assert depths[0] + 1 < depths[1] < depths[2] - 1


def test_max_depth_holds():
    kernel, model = NUTS(1e-4, max_depth=3), Normal.standard(2)
    state, info = kernel.step(model, kernel.init(model, torch.ones(4, 2)), torch.Generator().manual_seed(0))
    assert (state.local.depth == 3).all() and info.cost.gradients == 7


def test_divergences_are_seen():
    model, kernel = gb.Potential(lambda x: -(x**8).sum(-1), gb.Real(2)), NUTS(3.0)
    state, info = kernel.step(model, kernel.init(model, torch.full((30, 2), 1.5)), torch.Generator().manual_seed(0))
    assert state.local.divergent.any() and state.u.isfinite().all() and state.x.isfinite().all()
    assert info.acceptance.isfinite().all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_point_that_is_not_finite_ends_the_trajectory(value):
    model = gb.Potential(lambda x: torch.where((x.abs() < 1).all(-1), -x.square().sum(-1), value), gb.Real(2))
    kernel = NUTS(0.3)
    state, info = kernel.step(model, kernel.init(model, torch.zeros(50, 2)), torch.Generator().manual_seed(0))
    assert state.local.divergent.any() and (state.x.abs() < 1).all() and info.acceptance.isfinite().all()


def test_chains_do_not_depend_on_their_neighbours_state():
    """A chain that is done early is left alone: all final points lie on the chain's own trajectory."""
    model, kernel = Normal.diagonal(torch.zeros(2), torch.tensor([1.0, 30.0])), NUTS(0.5)
    x = torch.cat((torch.zeros(3, 2), model.sample(5, seed=0)))
    state, _ = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))
    assert torch.allclose(state.u, model(state.x), atol=1e-4)


def test_moves_to_the_other_side():
    """On N(0, I) the no-U-turn rule goes about half a period round: successive draws are negatively correlated."""
    model, kernel = Normal.standard(10), NUTS(0.6)
    x = model.sample(2000, seed=0)
    state, _ = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(1))
    assert ((x * state.x).mean(0) / x.square().mean(0)).max() < -0.2


def test_errors():
    with pytest.raises(ValueError, match="max_depth"):
        NUTS(0.1, max_depth=0)
    with pytest.raises(ValueError, match="step_size"):
        NUTS(-0.1)
