"""The two local views against their definitions."""

import pytest
import torch

import gibbsite as gb

pytestmark = pytest.mark.usefixtures("double")


def quadratic(space, seed=0):
    g = torch.Generator().manual_seed(seed)
    n = space.embed(torch.zeros(space.shape, dtype=torch.uint8)).numel()
    w = torch.randn(n, n, generator=g)

    def potential(x):
        z = space.embed(x)
        z = z.flatten(z.ndim - len(space.shape) - (0 if isinstance(space, gb.Binary) else 1))
        return torch.sin(z @ w).sum(-1)

    return gb.Potential(potential, space)


@pytest.mark.parametrize("space", [gb.Binary((2, 3)), gb.Categorical(4, 3)])
def test_exact_site_logits_are_the_changes_of_u(space):
    model, x = quadratic(space), space.uniform().sample(5, seed=1)
    u, change = gb.site_logits(model, x)
    assert torch.equal(u, model(x))
    for site in range(space.sites):
        for state in range(space.states):
            y = x.flatten(1).clone()
            y[:, site] = state
            assert torch.allclose(change[:, site, state], model(y.view_as(x)) - u, atol=1e-12)


def test_sites_selects_rows_of_the_table():
    space = gb.Categorical(5, 3)
    model, x = quadratic(space), space.uniform().sample(4, seed=1)
    sites = torch.tensor([[0, 2], [4, 4], [1, 0], [3, 2]])
    for how in ("exact", "taylor"):
        table, part = gb.site_logits(model, x, how)[1], gb.site_logits(model, x, how, sites=sites)[1]
        assert torch.allclose(part, table.gather(1, sites[..., None].expand(-1, -1, 3)))


@pytest.mark.parametrize("space", [gb.Binary(5), gb.Categorical(4, 3)])
def test_taylor_is_the_directional_derivative(space):
    model, x = quadratic(space), space.uniform().sample(3, seed=2)
    _, change = gb.site_logits(model, x, "taylor")
    z, h = space.embed(x), 1e-6
    for site in range(space.sites):
        for state in range(space.states):
            y = x.clone()
            y[:, site] = state
            slope = (model(z + h * (space.embed(y) - z)) - model(z - h * (space.embed(y) - z))) / (2 * h)
            assert torch.allclose(change[:, site, state], slope, atol=1e-7)


def test_products_of_closed_forms_need_no_enumeration():
    ising = gb.models.Ising.lattice(3, coupling=0.3, field=0.1)
    base = gb.distributions.Bernoulli(torch.linspace(-1, 1, 9))
    calls = []

    class Counted(gb.Model):
        space = ising.space

        def forward(self, x):
            calls.append(len(x))
            return ising(x)

    for beta in (0.0, 0.4, 1.0):
        model = gb.Geometric(base, ising).at(beta)
        x = ising.space.uniform().sample(6, seed=0)
        assert torch.allclose(gb.site_logits(model, x)[1], gb.site_logits(model, x, "enumerate")[1], atol=1e-12)
    gb.site_logits(Counted(), x)
    assert sum(calls) == 6 + 6 * 9  # without a closed form every neighbour is evaluated


def test_score_of_a_constant_is_zero_and_of_a_bad_how_an_error():
    x = gb.Binary(3).uniform().sample(2, seed=0)
    assert gb.score(gb.Binary(3).uniform(), x)[1].abs().sum() == 0
    with pytest.raises(ValueError, match="how: expected 'exact', 'taylor' or 'enumerate', got 'best'"):
        gb.site_logits(gb.Binary(3).uniform(), x, "best")
    with pytest.raises(TypeError, match="Binary or Categorical"):
        gb.site_logits(gb.Potential(lambda x: x.sum(-1), gb.Real(3)), torch.zeros(1, 3))
