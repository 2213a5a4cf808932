"""Models, wrapped callables, and what happens when U is wrong."""

import pytest
import torch

import gibbsite as gb
from gibbsite.model import as_model, dtype_of, evaluate

S = gb.sample


def test_a_callable_works_everywhere_a_model_does(double):
    space, field = gb.Binary(5), torch.linspace(-1, 1, 5)

    def potential(x):
        return space.embed(x) @ field

    model = gb.distributions.Bernoulli(field)
    expected = torch.log1p(field.exp()).sum()
    assert float(gb.exact.log_z(potential, space=space) - expected) == pytest.approx(0, abs=1e-12)
    assert gb.score(potential, torch.zeros(1, 5), space=space)[1].tolist() == [field.tolist()]
    _u, change = gb.site_logits(potential, torch.zeros(1, 5, dtype=torch.int8), space=space)
    assert change[0, :, 1].tolist() == pytest.approx(field.tolist())
    matrix = gb.exact.transition_matrix(S.MH(S.Informed()), potential, space=space)
    assert float((gb.exact.probabilities(model) @ matrix - gb.exact.probabilities(model)).abs().sum().detach()) < 1e-10
    chain = gb.run(S.Gibbs(), potential, space.uniform().sample(3, seed=0), steps=4, seed=0, space=space)
    assert chain.samples.shape == (4, 3, 5)


def test_a_callable_without_a_space_is_refused():
    with pytest.raises(TypeError, match="a plain callable needs space="):
        as_model(lambda x: x)
    with pytest.raises(TypeError, match="wrap a callable"):
        S.Gibbs().init(lambda x: x.sum(-1), torch.zeros(1, 3, dtype=torch.int8))
    with pytest.raises(ValueError, match="the model lives on"):
        as_model(gb.Binary(3).uniform(), gb.Binary(4))


def _nan_at_three_ones(x):
    z = gb.Binary(4).embed(x).sum(-1)
    return torch.where(z == 3, torch.nan, z)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_non_finite_potential_at_the_start_names_the_first_bad_state(value):
    x = torch.tensor([[0, 0], [1, 1], [1, 1]], dtype=torch.int8)
    model = gb.Potential(lambda x: torch.where(x[..., 0] == 1, value, 0.0), gb.Binary(2))
    with pytest.raises(ValueError, match=r"got (nan|inf|-inf) at state \[1\] of \(3,\): x = \[1, 1\]; 2 of 3 states"):
        S.Gibbs().init(model, x)


@pytest.mark.parametrize(
    "kernel", [S.Gibbs(), S.GibbsSweep(), S.MH(S.RandomFlips()), S.MH(S.Informed(how="exact")), S.HammingBall(4, 1)]
)
def test_a_nan_met_on_the_way_stops_the_run(kernel):
    with pytest.raises(ValueError, match="got nan at state"):
        gb.run(kernel, _nan_at_three_ones, gb.Binary(4).uniform().sample(8, seed=3), steps=50, seed=0, space=gb.Binary(4))


@pytest.mark.parametrize("kernel", [S.Gibbs(), S.MH(S.RandomFlips()), S.MH(S.Informed(how="exact")), S.HammingBall(4, 2)])
def test_impossible_states_are_never_entered(kernel, double):
    space = gb.Binary(4)

    def potential(x):  # states with three ones have probability 0
        z = space.embed(x).sum(-1)
        return torch.where(z == 3, -torch.inf, z)

    model = gb.Potential(potential, space)
    p, states = gb.exact.probabilities(model), gb.exact.states(space)
    allowed = states.sum(-1) != 3
    assert float(p[~allowed].sum()) == 0
    chain = gb.run(kernel, model, states[allowed], steps=50, seed=0)
    assert not (chain.samples.sum(-1) == 3).any()


def test_u_of_the_wrong_shape_is_refused():
    model = gb.Potential(lambda x: x.float(), gb.Binary(3))
    with pytest.raises(ValueError, match=r"one number a state, shape \(2,\), got shape \(2, 3\)"):
        evaluate(model, torch.zeros(2, 3, dtype=torch.int8))


def test_the_potential_of_relaxed_bits_needs_a_float_view():
    model = gb.Potential(lambda x: torch.tensor([0.0, 1.0])[x[..., 0].long()], gb.Binary(2))
    _u, gradient = gb.score(model, torch.zeros(1, 2))
    assert gradient.tolist() == [[0.0, 0.0]]  # constant in its float view: Gibbs-With-Gradients is then a random walk


def test_dtype_of_follows_the_parameters():
    assert dtype_of(gb.distributions.Bernoulli(torch.zeros(2, dtype=torch.float64))) == torch.float64
    assert dtype_of(gb.Binary(2).uniform()) == torch.get_default_dtype()


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_u_must_be_floats(dtype):
    model = gb.Potential(lambda x: x.sum(-1).to(dtype), gb.Binary(3))
    with pytest.raises(TypeError, match=r"U\(x\): expected floats, got torch"):
        evaluate(model, torch.zeros(2, 3, dtype=torch.int8))


def test_a_function_that_returns_no_tensor_is_named():
    model = gb.Potential(lambda x: float(x.detach().sum()), gb.Real(2))
    for use in (lambda: evaluate(model, torch.zeros(1, 2)), lambda: gb.score(model, torch.zeros(1, 2))):
        with pytest.raises(TypeError, match=r"U\(x\): expected a tensor, one float a state, got float"):
            use()


def test_plain_callables_are_refused_with_the_way_out():
    def plain(x):
        return -x.square().sum(-1)

    x, normal = torch.zeros(4, 2), gb.distributions.Normal.standard(2)
    for kernel in (S.MALA(0.1), S.HMC(0.1), S.MH(S.Independent(normal))):
        with pytest.raises(TypeError, match="wrap a callable"):
            kernel.init(plain, x)


def test_any_callable_with_a_space_is_a_model_everywhere():
    A, ising = S.adapt, gb.models.Ising.lattice((2, 3), coupling=0.3)
    space, real = gb.Binary(6), gb.Real(2)

    def plain(x):
        return -x.square().sum(-1)

    def bits(x):
        return space.embed(x).sum(-1)

    points, spins = torch.zeros(4, 2), torch.zeros(4, 6, dtype=torch.int8)
    one = A.step_size(S.MALA, plain, points, target=0.5, steps=3, seed=0, space=real)
    two = A.step_size(S.MALA, gb.Potential(plain, real), points, target=0.5, steps=3, seed=0)
    assert one.kernel.step_size == two.kernel.step_size and torch.equal(one.x, two.x)
    assert A.best(S.MALA, [0.1], plain, points, steps=2, seed=0, space=real).x.shape == (4, 2)
    for adapt in (A.diagonal_mass, A.dense_mass):
        assert adapt(lambda e, m: S.HMC(e, 2, m), plain, points, steps=5, seed=0, space=real).x.shape == (4, 2)
    tuned = S.tuned_ladder(S.Tempering(S.Gibbs(), space.uniform()), bits, spins, rounds=1, steps=4, seed=0, space=space)
    assert tuned.kernel.betas[-1] == 1 and tuned.x.shape == spins.shape
    assert gb.Tempered(bits, 0.5, space=space)(spins + 1).tolist() == [3.0] * 4
    for path in (gb.Geometric(bits, ising), gb.Geometric(ising, bits)):
        assert torch.allclose(path.at(0.5)(spins), (bits(spins) + ising(spins)) / 2)
