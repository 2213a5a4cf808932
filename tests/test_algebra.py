"""The algebra of models: values, gradients, registration, and the algorithm it picks."""

import pytest
import torch

import gibbsite as gb

pytestmark = pytest.mark.usefixtures("double")


def parts():
    ising = gb.models.Ising.lattice((2, 3), coupling=0.4, field=0.2)
    return gb.distributions.Bernoulli(torch.linspace(-1, 1, 6)), ising


def test_tilt_product_tempered_and_geometric_are_their_formulas():
    base, ising = parts()
    x = base.sample(7, seed=0)
    assert torch.allclose(gb.Tilt(base, ising)(x), base(x) + ising(x))
    assert torch.allclose(gb.Product(base, ising, weights=[0.3, -2])(x), 0.3 * base(x) - 2 * ising(x))
    assert torch.allclose(gb.Tempered(ising, 0.7)(x), 0.7 * ising(x))
    path = gb.Geometric(base, ising)
    assert torch.allclose(path.at(0.25)(x), 0.75 * base(x) + 0.25 * ising(x))
    assert torch.equal(path.at(0.0)(x), base(x)) and torch.equal(path.at(1.0)(x), ising(x))


def test_an_end_of_a_path_is_that_end_even_where_the_other_is_impossible():
    base, _ = parts()
    hard = gb.Potential(lambda x: torch.full(x.shape[:1], -torch.inf), base.space)
    x = base.sample(3, seed=0)
    assert torch.equal(gb.Geometric(base, hard).at(0.0)(x), base(x))


def test_parameters_are_registered_and_bare_callables_accepted():
    base, ising = parts()
    assert len(list(gb.Product(base, ising).parameters())) == 3
    assert len(list(gb.Tilt(base, ising).parameters())) == 3
    product = gb.Product(ising, lambda x: x.float().sum(-1))
    assert product(base.sample(2, seed=0)).shape == (2,)


def test_mistakes_are_named():
    base, ising = parts()
    with pytest.raises(ValueError, match="expected one space"):
        gb.Product(ising, gb.Binary(5).uniform())
    with pytest.raises(ValueError, match="weights: expected 2"):
        gb.Product(base, ising, weights=[1.0])
    with pytest.raises(TypeError, match="base: expected a gibbsite"):
        gb.Tilt(ising, base)
    with pytest.raises(TypeError, match="distribution on Real"):
        gb.Pullback(base, lambda e: e, ising)


def test_pullback_is_noise_plus_potential_at_the_image():
    noise = gb.distributions.Normal.standard(2)
    model = gb.Pullback(noise, lambda e: 3 * e + 1, lambda x: -x.abs().sum(-1))
    e = noise.sample(4, seed=0)
    assert torch.allclose(model(e), noise(e) - (3 * e + 1).abs().sum(-1))
    assert torch.equal(model.push(e), 3 * e + 1)
