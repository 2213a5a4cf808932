"""The two local views against their definitions."""

import pytest
import torch

import gibbsite as gb

pytestmark = pytest.mark.usefixtures("double")


def quadratic(space, seed=0):
    g = torch.Generator().manual_seed(seed)
    n = space.embed(torch.zeros(space.shape, dtype=torch.int8)).numel()
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


@pytest.mark.parametrize("how", ["exact", "enumerate", "taylor"])
@pytest.mark.parametrize("kind", ["closed form", "network"])
def test_with_a_graph_the_table_can_be_learned_from(how, kind):
    """The gradient of a pseudo-likelihood equals that of its definition by plain enumeration."""
    ising = gb.models.Ising.lattice((2, 3), coupling=0.4, field=0.1)
    network = gb.models.MLP(gb.Binary(6), (5,), seed=0).double()
    model, x = (ising if kind == "closed form" else network), gb.Binary(6).uniform().sample(7, seed=0)
    parameters = list(model.parameters())

    def loss(table):
        return -table.log_softmax(-1).gather(-1, x.long()[..., None]).sum()

    _, change = gb.site_logits(model, x, how, graph=True)
    assert not gb.site_logits(model, x, how)[1].requires_grad
    got = torch.autograd.grad(loss(change), parameters)
    if how == "taylor":
        z = x.double().requires_grad_()
        (slope,) = torch.autograd.grad(model(z).sum(), z, create_graph=True)
        table = torch.stack((-x * slope, (1 - x) * slope), -1)
    else:
        flips = [torch.stack([x.index_fill(1, torch.tensor(i), k) for k in (0, 1)], 1) for i in range(6)]
        table = torch.stack([model(f) for f in flips], 1)
    for a, b in zip(got, torch.autograd.grad(loss(table), parameters), strict=True):
        assert torch.allclose(a, b, atol=1e-10)


def test_a_score_with_a_graph_can_be_differentiated_again():
    model = gb.models.MLP(gb.Real(3), (5,), seed=0).double()
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    _, gradient = gb.score(model, x, graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), model.layers[0].weight)
    h, step = 1e-6, torch.zeros_like(model.layers[0].weight)
    step[1, 2] = h
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            model.layers[0].weight.add_(sign * step)
        ends.append(gb.score(model, x)[1].square().sum())
        with torch.no_grad():
            model.layers[0].weight.sub_(sign * step)
    assert torch.allclose(second[1, 2], (ends[0] - ends[1]) / (2 * h), atol=1e-6)


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


MULTILINEAR = {
    "ising": lambda: gb.models.Ising.lattice((2, 3), coupling=0.3, field=0.2),
    "dense ising": lambda: gb.models.Ising(torch.ones(4, 4) - torch.eye(4), torch.linspace(-1, 1, 4)),
    "potts": lambda: gb.models.Potts.lattice((2, 2), states=3, coupling=0.4, field=torch.tensor([0.1, 0.0, -0.3])),
    "bits": lambda: gb.distributions.Bernoulli(torch.linspace(-1, 1, 5)),
    "sites": lambda: gb.distributions.Independent(torch.linspace(-1, 1, 12).view(4, 3)),
    "uniform": lambda: gb.Categorical(4, 3).uniform(),
    "sum": lambda: gb.Geometric(gb.Binary(6).uniform(), gb.models.Ising.lattice((2, 3), coupling=0.3)).at(0.3),
}


@pytest.mark.parametrize("make", MULTILINEAR.values(), ids=MULTILINEAR.keys())
def test_models_marked_multilinear_have_exact_first_order_changes(make):
    """Their closed form stands in for the gradient: it must be what differentiation and enumeration give."""
    model = make()
    space, x = model.space, model.space.uniform().sample(5, seed=1)
    _, gradient = gb.score(model, x)
    gradient = gradient.reshape(5, space.sites, -1)
    if gradient.shape[2] == 1:
        slopes = (torch.arange(2.0) - x.reshape(5, -1, 1)) * gradient
    else:
        slopes = gradient - gradient.gather(-1, x.reshape(5, -1, 1).long())
    assert torch.allclose(gb.site_logits(model, x, "taylor")[1], slopes, atol=1e-12)
    assert torch.allclose(gb.site_logits(model, x, "enumerate")[1], slopes, atol=1e-12)


def test_score_of_a_constant_is_zero_and_of_a_bad_how_an_error():
    x = gb.Binary(3).uniform().sample(2, seed=0)
    assert gb.score(gb.Binary(3).uniform(), x)[1].abs().sum() == 0
    with pytest.raises(ValueError, match="how: expected 'exact', 'taylor' or 'enumerate', got 'best'"):
        gb.site_logits(gb.Binary(3).uniform(), x, "best")
    with pytest.raises(TypeError, match="Binary or Categorical"):
        gb.site_logits(gb.Potential(lambda x: x.sum(-1), gb.Real(3)), torch.zeros(1, 3))
