"""Data-dependent initialisation: every layer's outputs have mean 0 and variance 1 on the data it was made with."""

import pytest
import torch

import gibbsite as gb
from gibbsite.learn import weight_normalised


def outputs(module, data):
    """What each layer gives, by hooks, channel by channel."""
    seen = []
    layers = [m for m in module.modules() if isinstance(m, torch.nn.Linear | torch.nn.Conv2d) and m.bias is not None]
    handles = [m.register_forward_hook(lambda m, _, y: seen.append(y.movedim(-1 if y.ndim == 2 else 1, 0).flatten(1)))
               for m in layers]  # fmt: skip
    module(data)
    for handle in handles:
        handle.remove()
    return seen


MODULES = {
    "mlp": lambda: (gb.models.MLP(gb.Real(2), (8, 8, 8), seed=0), 5 + 3 * torch.randn(200, 2, generator=gen())),
    "network": lambda: (gb.models.perceptron(3, 4, (8,), seed=0), torch.randn(200, 3, generator=gen())),
    "images": lambda: (
        gb.models.ResidualNet(gb.Real((1, 6, 6)), features=4, blocks=2, strided=1, seed=0),
        torch.randn(50, 1, 6, 6, generator=gen()),
    ),
}


def gen():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES.keys())
def test_outputs_are_standard_on_the_data(make, double):
    """The mutant is the module as it was."""
    module, data = make()
    assert not all(torch.allclose(y.std(1), torch.ones(len(y)), atol=1e-2) for y in outputs(module, data))
    assert weight_normalised(module, data) is module
    for y in outputs(module, data):
        assert y.mean(1).abs().max() < 1e-10 and (y.std(1) - 1).abs().max() < 1e-10


def test_direction_and_length_are_learned_apart(double):
    """w = g v / |v|: scaling v leaves the function as it is, and the gradient in v is orthogonal to v."""
    module, data = MODULES["mlp"]()
    weight_normalised(module, data)
    weight = module.layers[1].parametrizations.weight
    before = module(data)
    before.sum().backward()
    along = (weight.original1.grad * weight.original1).sum(-1)
    assert along.abs().max() < 1e-10 and weight.original0.grad.abs().max() > 1e-6
    with torch.no_grad():
        weight.original1.mul_(3.0)
    assert torch.allclose(module(data), before)


def test_it_is_sampled_and_saved_as_before(double):
    """Langevin's score of a normalised perceptron is autograd's, compiled loop or not; its state can be put back."""
    module, data = gb.models.MLP(gb.Real(2), (8, 8), seed=0).float(), torch.randn(100, 2, generator=gen()).float()
    weight_normalised(module, data)
    model = gb.Product(gb.distributions.Normal.standard(2, dtype=torch.float32), module)
    chain = gb.run(gb.sample.MALA(0.5), model, data[:10], steps=5, seed=0)
    assert torch.allclose(chain.u[-1], model(chain.samples[-1]), atol=1e-5)
    alone = gb.run(gb.sample.MALA(0.1), module, data[:10], steps=5, seed=0)
    assert torch.allclose(alone.u[-1], module(alone.samples[-1]), atol=1e-5)
    other = weight_normalised(gb.models.MLP(gb.Real(2), (8, 8), seed=1).float(), data + 1)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(data), module(data))


def test_mistakes_are_told():
    data = torch.randn(50, 2, generator=gen())
    module = weight_normalised(gb.models.MLP(gb.Real(2), (8,), seed=0), data)
    with pytest.raises(ValueError, match="without a parametrisation"):
        weight_normalised(module, data)
    with pytest.raises(ValueError, match="is the same for all examples"):
        weight_normalised(gb.models.MLP(gb.Real(2), (8,), seed=0), torch.ones(5, 2))
    with pytest.raises(ValueError, match="at least 2 examples"):
        weight_normalised(gb.models.MLP(gb.Real(2), (8,), seed=0), data[:1])
