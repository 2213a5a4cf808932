"""Networks as potentials: spaces, shapes, seeds, gradients, architecture."""

import pytest
import torch

import gibbsite as gb
from gibbsite.models import MLP, ResidualNet

SPACES = [gb.Binary(5), gb.Binary((2, 3)), gb.Categorical(4, 3), gb.Real(6), gb.Real((2, 2))]
IMAGES = [gb.Binary((6, 5)), gb.Categorical((6, 5), 7), gb.Real((3, 6, 5))]


def small(space, seed=0):
    return ResidualNet(space, features=4, blocks=3, strided=2, seed=seed)


def points(space, n, seed=0):
    if isinstance(space, gb.Real):
        return torch.randn(n, *space.shape, generator=torch.Generator().manual_seed(seed))
    return space.uniform().sample(n, seed=seed)


MAKERS = [*[(MLP, s) for s in SPACES], *[(small, s) for s in IMAGES]]


@pytest.mark.parametrize(("make", "space"), MAKERS)
def test_one_number_a_state_for_any_batch(make, space, device):
    model = make(space).to(device)
    x = points(space, 6).to(device)
    u = model(x)
    assert u.shape == (6,)
    assert torch.allclose(model(x.view(2, 3, *space.shape)), u.view(2, 3), atol=1e-6)
    assert torch.allclose(model(x[0]), u[0], atol=1e-6)
    assert torch.allclose(model(space.embed(x)), u, atol=1e-6)
    assert u.std() > 0


@pytest.mark.parametrize(("make", "space"), MAKERS)
def test_score_is_the_derivative(make, space, double):
    model = make(space)
    z = space.embed(points(space, 2)).double().requires_grad_()
    assert torch.autograd.gradcheck(model, z)
    assert gb.score(model, points(space, 2).double() if isinstance(space, gb.Real) else points(space, 2))[1].abs().max() > 0


@pytest.mark.parametrize(("make", "space"), MAKERS)
def test_seed_names_the_weights(make, space):
    one, two, other = make(space, seed=0), make(space, seed=0), make(space, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not any(torch.equal(p, torch.zeros_like(p)) for p in one.parameters())
    # the mutant: torch's own constructor moves the global random state, which the test session forbids
    before = torch.get_rng_state()
    torch.nn.Linear(3, 3)
    assert not torch.equal(before, torch.get_rng_state())
    torch.set_rng_state(before)


@pytest.mark.parametrize(("make", "space"), MAKERS)
def test_weights_are_uniform_within_the_layers_width(make, space):
    for module in make(space).modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
            inputs = module.weight[0].numel()
            for parameter in module.parameters():
                assert parameter.abs().max() <= inputs**-0.5


@pytest.mark.parametrize(("make", "space"), MAKERS)
def test_no_output_bias(make, space):
    assert make(space).readout.bias is None


@pytest.mark.parametrize("space", SPACES)
def test_perceptron_is_its_formula(space):
    model = MLP(space, hidden=(7, 4), activation=torch.tanh, seed=2)
    x = points(space, 3)
    z = space.embed(x).flatten(1)
    first, second = model.layers
    z = torch.tanh(torch.tanh(z @ first.weight.T + first.bias) @ second.weight.T + second.bias)
    assert torch.allclose(model(x), (z @ model.readout.weight.T)[:, 0], atol=1e-6)


def test_perceptron_without_hidden_layers_is_linear(double):
    model = MLP(gb.Binary(4), hidden=())
    x = gb.exact.states(model.space)
    taylor, exact = gb.site_logits(model, x, "taylor")[1], gb.site_logits(model, x)[1]
    assert (taylor - exact).abs().max() < 1e-12


def test_papers_network_has_its_sizes():
    model = ResidualNet(gb.Categorical((28, 28), 256))
    convolutions = [m for m in model.blocks.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(model.blocks) == 8
    assert len(convolutions) == 16
    assert {c.out_channels for c in convolutions} == {64}
    assert [block.first.stride for block in model.blocks] == [(2, 2), (2, 2)] + [(1, 1)] * 6
    assert model.image.linear.weight.shape == (4, 256)
    z = model.stem(model.image(torch.zeros(1, 28, 28, 256)))
    for block in model.blocks:
        z = block(z)
    assert z.shape == (1, 64, 7, 7)


def test_networks_run_in_float64():
    for make, space in MAKERS:
        model = make(space).double()
        x = points(space, 2)
        assert model(x.double() if isinstance(space, gb.Real) else x).dtype == torch.float64


@pytest.mark.parametrize("space", [gb.Binary(36), gb.Categorical(36, 3), gb.Real((6, 6)), gb.Binary((1, 6, 6))])
def test_spaces_without_images_refused(space):
    with pytest.raises(ValueError, match=r"space: expected Binary\(\(H, W\)\)"):
        ResidualNet(space)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"features": 0}, "features: expected a positive"),
        ({"blocks": 0}, "blocks: expected a positive"),
        ({"embedding": 0}, "embedding: expected a positive"),
        ({"blocks": 2, "strided": 3}, "strided: expected 0 to 2"),
        ({"strided": -1}, "strided: expected an integer of at least 0, got -1"),
    ],
)
def test_sizes_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        ResidualNet(gb.Binary((4, 4)), **sizes)


def test_perceptron_refusals():
    with pytest.raises(TypeError, match="expected Real, Binary or Categorical"):
        MLP(gb.Tokens(5, 10, 0))
    with pytest.raises(ValueError, match="hidden: expected a positive integer, got 0"):
        MLP(gb.Binary(3), hidden=(4, 0))
    with pytest.raises(ValueError, match="x: expected"):
        MLP(gb.Binary(3))(torch.zeros(2, 4))
