"""The compiled loops draw from the law of their kernels: one step from every state against the exact transition matrix."""

import itertools

import pytest
import torch

import gibbsite as gb
from gibbsite.sample.compiled import Compiled, OnCompiledModel

from ..statistics import fits

S = gb.sample
HELD = torch.tensor([False, True, False, False])
DRAWS = 4000


def graph(scale=1.0):
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]])
    weights = scale * torch.tensor([0.3, 0.6, 0.2, 0.5, 0.4])
    return gb.models.Ising.from_edges(4, edges, weights, scale * torch.tensor([0.2, -0.3, 0.1, 0.4]))


def ring(scale=1.0):
    return gb.models.Ising.from_edges(
        4, torch.tensor([[0, 1], [1, 2], [2, 3], [0, 3]]), torch.tensor(0.4 * scale), 0.2 * scale
    )


def dense(scale=1.0):
    matrix = scale * torch.randn(4, 4, generator=torch.Generator().manual_seed(1)).triu(1)
    return gb.models.Ising(matrix + matrix.T, scale * torch.tensor([0.1, 0.2, -0.5, 0.0]))


def tempered(scale=1.0):
    base = gb.distributions.Bernoulli(torch.tensor([0.5, -1.0, 0.3, 0.0]))
    return gb.Product(gb.Geometric(base, graph(scale)).at(0.7), gb.Binary(4).uniform(), weights=[1.1, 0.4])


def rbm(scale=1.0):
    g = torch.Generator().manual_seed(2)
    return gb.models.RBM.from_weights(
        scale * torch.randn(3, 4, generator=g), scale * torch.randn(4, generator=g), scale * torch.randn(3, generator=g)
    )


CASES = [
    (S.GibbsSweep(), graph),
    (S.GibbsSweep(clamp=HELD), graph),
    (S.GibbsSweep(), dense),
    (S.Gibbs(), graph),
    (S.Gibbs(sites=3, clamp=HELD), graph),
    (S.BlockGibbs(), ring),  # one coupling, one field: bit-packed
    (S.BlockGibbs(clamp=HELD), ring),
    (S.BlockGibbs(blocks=[[0], [1, 3], [2]]), ring),
    (S.BlockGibbs(), graph),
    (S.MH(S.Informed()), graph),
    (S.MH(S.Informed(balance=S.Power(1.4), clamp=HELD)), graph),
    (S.MH(S.Informed(how="exact")), dense),
    (S.MH(S.PathAuxiliary()), graph),
    (S.MH(S.PathAuxiliary(5, balance=S.Power(1.4), clamp=HELD)), graph),
    (S.MH(S.PathAuxiliary(1)), graph),
    (S.MH(S.PathAuxiliary()), tempered),
    (S.MH(S.DiscreteLangevin(0.5)), graph),
    (S.MH(S.DiscreteLangevin(0.8, balance=S.Power(1.4), clamp=HELD)), graph),
    (S.MH(S.DiscreteLangevin(2.0, how="exact")), graph),
    (S.MH(S.DiscreteLangevin(1.0)), tempered),
    (S.GibbsSweep(), tempered),
    (S.Gibbs(clamp=HELD), tempered),
    (S.MH(S.Informed()), tempered),
    (S.Wolff(), graph),
    (S.Wolff(clamp=HELD), graph),
    (S.SwendsenWang(), graph),
    (S.SwendsenWang(clamp=HELD), graph),
    (S.BlockGibbs(), rbm),
    (S.MH(S.Informed()), rbm),
    (S.MH(S.Informed(clamp=HELD)), rbm),
]


def frequencies(kernel, model, times=1):
    every = gb.exact.states(model.space)
    x = every.repeat_interleave(DRAWS, 0)
    runner = S.compiled(S.Repeat(kernel, times) if times > 1 else kernel, model, x)
    assert isinstance(runner, Compiled)
    state, info = runner.step(model, runner.init(model, x), torch.Generator().manual_seed(11))
    assert torch.allclose(state.u, model(state.x).detach(), atol=1e-5)
    assert bool(((info.acceptance >= 0) & (info.acceptance <= 1)).all())
    rows = torch.arange(len(every)).repeat_interleave(DRAWS)
    counts = torch.bincount(rows * len(every) + gb.exact.index(model.space, state.x), minlength=len(every) ** 2)
    return counts.view(len(every), len(every))


@pytest.mark.parametrize(
    ("kernel", "make"), CASES, ids=lambda v: type(v).__name__ if isinstance(v, S.Kernel) else v.__name__
)
def test_one_compiled_step_has_the_law_of_the_kernel_and_not_that_of_another_model(kernel, make):
    counts = frequencies(kernel, make())
    assert fits(counts, gb.exact.transition_matrix(kernel, make().double()))
    assert not fits(counts, gb.exact.transition_matrix(kernel, make(1.3).double()))


@pytest.mark.parametrize("kernel", [S.GibbsSweep(), S.MH(S.Informed()), S.BlockGibbs()])
def test_three_steps_at_once_have_the_law_of_three(kernel):
    counts, matrix = frequencies(kernel, ring(), 3), gb.exact.transition_matrix(kernel, ring().double())
    assert fits(counts, torch.linalg.matrix_power(matrix, 3))
    assert not fits(counts, torch.linalg.matrix_power(matrix, 1))


@pytest.mark.parametrize(
    ("kernel", "make"), CASES, ids=lambda v: type(v).__name__ if isinstance(v, S.Kernel) else v.__name__
)
def test_every_kept_state_has_the_law_of_the_kernel(kernel, make):
    """Of three kept states with two steps before each, the second and third from the one before (false alarm 1e-6)."""
    model = make()
    x = model.space.uniform().sample(1, seed=0).expand(40_000, -1)
    chain = gb.run(kernel, model, x, steps=6, thin=2, seed=1)
    right, wrong = (gb.exact.transition_matrix(kernel, m.double()).matrix_power(2) for m in (make(), make(1.3)))
    index = gb.exact.index(model.space, chain.samples)
    for before, after in itertools.pairwise(index):
        counts = torch.zeros(right.shape).index_put_((before, after), torch.ones(len(before)), accumulate=True)
        assert fits(counts, right) and not fits(counts, wrong)
    assert torch.allclose(chain.u, gb.exact.potentials(model)[index].float(), atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "make"), CASES, ids=lambda v: type(v).__name__ if isinstance(v, S.Kernel) else v.__name__
)
def test_states_without_their_potentials_are_the_same_states(kernel, make):
    model = make()
    x = gb.exact.states(model.space)
    runner = S.compiled(S.Repeat(kernel, 3), model, x)
    assert isinstance(runner, Compiled)
    state, info = runner.step(model, runner.init(model, x), torch.Generator().manual_seed(5))
    moved, same = runner.moved(model, x, torch.Generator().manual_seed(5))
    assert torch.equal(moved, state.x) and torch.equal(info.acceptance, same.acceptance) and info.cost == same.cost
    assert not torch.equal(moved, runner.moved(model, x, torch.Generator().manual_seed(6))[0])
    with pytest.raises(ValueError, match=r"integers in \[0, 2\)"):
        runner.moved(model, 2 * x, torch.Generator())


def test_what_the_table_does_not_cover_stays_with_the_kernel():
    x = gb.Binary(4).uniform().sample(2, seed=0)
    for kernel, model in (
        (S.GibbsSweep(), graph().double()),
        (S.MH(S.Informed(draws=3)), graph()),
        (S.MH(S.Informed(balance=S.Barker())), graph()),
        (S.MH(S.Informed(how="exact")), rbm()),
        (S.BlockGibbs(clamp=HELD), rbm()),
        (S.MH(S.PathAuxiliary(balance=S.Minimum())), graph()),
        (S.MH(S.PathAuxiliary()), dense()),
        (S.MH(S.DiscreteLangevin(balance=S.Barker())), graph()),
        (S.Unadjusted(S.DiscreteLangevin()), graph()),
    ):
        assert S.compiled(kernel, model, x) is kernel


def pair(edges):
    return gb.models.Ising.from_edges(4, torch.tensor(edges), torch.tensor([0.9, 0.9]))


@pytest.mark.parametrize("kernel", [S.GibbsSweep(), S.BlockGibbs(), S.MH(S.Informed())])
def test_another_graph_loaded_over_the_first_is_seen(kernel):
    """Structures and colour classes are kept between calls; a state dict with another graph must renew them."""
    before, after = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
    model = pair(before)
    frequencies(kernel, model)
    model.load_state_dict(pair(after).state_dict())
    counts = frequencies(kernel, model)
    assert fits(counts, gb.exact.transition_matrix(kernel, pair(after).double()))
    assert not fits(counts, gb.exact.transition_matrix(kernel, pair(before).double()))
    assert all({0, 2} - set(members.tolist()) for members in model.classes)


COSTED = [
    S.GibbsSweep(clamp=HELD),
    S.Gibbs(3),
    S.BlockGibbs(blocks=[[0], [1, 3], [2]]),
    S.MH(S.Informed(how="exact")),
    S.MH(S.Informed()),
    S.MH(S.PathAuxiliary()),
    S.MH(S.DiscreteLangevin(0.5)),
    S.Wolff(),
    S.SwendsenWang(),
]


@pytest.mark.parametrize("kernel", COSTED)
def test_costs_are_those_of_the_kernel_and_so_is_the_acceptance(kernel):
    model, x = ring(), gb.exact.states(gb.Binary(4)).repeat(50, 1)
    plain, fast = (gb.run(kernel, m, x, steps=200, seed=0) for m in (ring().double(), model))
    assert fast.cost == plain.cost
    # both means are over 160,000 dependent steps of 800 chains; the compiled one averages coin flips: 5 sd of each
    spread = 5 * (plain.acceptance.std() + fast.acceptance.std()) / 800**0.5 + 1e-9
    assert abs(fast.accept_rate - plain.accept_rate) < float(spread)


def test_combinators_and_tempering_compile_what_they_hold():
    model, x = graph(), gb.exact.states(gb.Binary(4)).repeat(500, 1)
    inner = S.Cycle([S.GibbsSweep(), S.MH(S.Informed())])
    for kernel in (inner, S.Mixture([S.GibbsSweep(), S.Wolff()]), S.Repeat(inner, 2)):
        runner = S.compiled(kernel, model, x)
        parts = runner.kernel.kernels if isinstance(runner, S.Repeat) else runner.kernels
        assert all(isinstance(part, Compiled) for part in parts)
        state, _ = runner.step(model, runner.init(model, x), torch.Generator().manual_seed(0))
        assert state.x.shape == x.shape
    tempering = S.Tempering(S.GibbsSweep(), model.space.uniform(), (0.0, 0.5, 1.0))
    chain = gb.run(tempering, model, x, steps=60, seed=1)
    counts = torch.bincount(gb.exact.index(model.space, chain.samples[-1]), minlength=16)
    assert fits(counts[None], gb.exact.probabilities(model)[None])
    assert not fits(counts[None], gb.exact.probabilities(graph(1.3))[None])


class Sharper(S.Kernel):
    """A kernel of someone else's, whose steps are on a model that is made of the one it is given."""

    def init(self, model, x):
        return S.MALA(0.3).init(gb.Tempered(model, 2.0), x)

    def step(self, model, state, generator):
        return S.MALA(0.3).step(gb.Tempered(model, 2.0), state, generator)


@pytest.mark.parametrize(
    "kernel",
    [
        S.Tempering(S.MALA(0.3), gb.distributions.Normal.standard(2), (0.0, 0.5, 1.0)),
        S.Repeat(S.Cycle([S.Repeat(S.MALA(0.3), 2), S.HMC(0.3, 2)]), 2),
        Sharper(),
    ],
    ids=["tempering", "nested", "of another's"],
)
def test_bursts_of_kernels_that_make_models_of_a_perceptron_are_their_steps(kernel):
    """Between kept states steps come in bursts, where the perceptron's score is a compiled loop's."""
    model, x = gb.models.MLP(gb.Real(2), (8,), seed=0), torch.zeros(4, 2)
    single, burst = (gb.run(kernel, model, x, steps=12, thin=thin, seed=0) for thin in (1, 3))
    assert torch.allclose(burst.samples, single.samples[2::3], atol=1e-4) and burst.cost == single.cost
    assert bool((burst.samples[1:] != burst.samples[:-1]).any())


def test_weights_are_read_anew_after_learning():
    model, kernel = graph(), S.MH(S.Informed())
    frequencies(kernel, model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.3)
    assert fits(frequencies(kernel, model), gb.exact.transition_matrix(kernel, graph(1.3).double()))


def test_the_same_seed_gives_the_same_draws_and_the_kernel_is_deterministic_in_it():
    model = gb.models.Ising.lattice(6, coupling=0.4)
    x = model.space.uniform().sample(20, seed=0)
    for kernel in (S.GibbsSweep(), S.BlockGibbs(), S.MH(S.Informed()), S.Wolff()):
        one, two, three = (gb.run(kernel, model, x, steps=20, seed=s).samples for s in (1, 1, 2))
        assert torch.equal(one, two) and not torch.equal(one, three)


def test_couplings_that_are_not_finite_stop_the_run():
    model = graph()
    with torch.no_grad():
        model.pairs.weights[0] = torch.nan
    x = torch.zeros(2, 4, dtype=torch.int8)
    with pytest.raises(ValueError, match="not finite"):
        S.compiled(S.GibbsSweep(), model, x).step(model, S.State(x, torch.zeros(2)), torch.Generator())


def test_steps_do_not_write_into_the_state_they_were_given():
    model = graph()
    x = gb.exact.states(model.space)
    runner = S.compiled(S.GibbsSweep(), model, x)
    state = runner.init(model, x)
    runner.step(model, state, torch.Generator().manual_seed(0))
    assert torch.equal(state.x, gb.exact.states(model.space))


@pytest.mark.parametrize(
    "kernel", [S.GibbsSweep(), S.BlockGibbs(), S.SwendsenWang(), S.MH(S.Informed())], ids=lambda k: type(k).__name__
)
def test_energy_of_a_lattice_against_kaufman(kernel):
    """Mean U of a 12 x 12 torus at K = 0.3 within 5.6 standard errors (two-sided 1e-6: Student, 64 chains)."""
    model, coupling = gb.models.Ising.lattice(12, coupling=0.3), torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(gb.exact.kaufman_log_z(12, 12, coupling), coupling)
    x, per_sweep = model.space.uniform().sample(64, seed=0), 300 if isinstance(kernel, S.MH) else 1
    result = gb.moments(
        kernel, model, x, steps=400 * per_sweep, warmup=100 * per_sweep, thin=per_sweep, seed=1, statistic=model
    )
    error = float((result.mean.detach() - 0.3 * exact) / result.stderr.detach())
    assert abs(error) < 5.6
    wrong = float((result.mean.detach() - 0.31 * exact) / result.stderr.detach())
    assert abs(wrong) > 5.6


@pytest.mark.parametrize(
    "activation", [torch.nn.functional.silu, torch.tanh, torch.nn.functional.softplus, torch.nn.functional.relu]
)
def test_a_compiled_perceptron_has_the_same_potential_and_score(activation):
    model = gb.models.MLP(gb.Real((2, 3)), (16, 8), activation=activation, seed=0)
    x = torch.randn(50, 2, 3, generator=torch.Generator().manual_seed(0))
    runner = S.compiled(S.Langevin(0.1), model, x)
    assert isinstance(runner, OnCompiledModel)
    for _ in range(2):
        twin = runner.swap(model)
        (u, gradient), (same, score) = gb.score(model, x), gb.score(twin, x)
        assert torch.allclose(u, same, atol=1e-5) and torch.allclose(gradient, score, atol=1e-5)
        with torch.no_grad():  # the twin sees weights that move in place
            for parameter in model.parameters():
                parameter.add_(0.1)
    one = runner.step(model, runner.init(model, x), torch.Generator().manual_seed(1))[0]
    other = runner.kernel.step(model, runner.kernel.init(model, x), torch.Generator().manual_seed(1))[0]
    assert torch.allclose(one.x, other.x, atol=1e-5)


def _readout(model):
    model.readout.weight = torch.nn.Parameter(3 * model.readout.weight.detach())


def _layer(model):
    model.layers[1].weight = torch.nn.Parameter(2 * model.layers[1].weight.detach())


def _activation(model):
    model.activation = torch.relu


@pytest.mark.parametrize("change", [_readout, _layer, _activation])
def test_a_network_changed_after_a_run_is_seen(change):
    model, x = gb.models.MLP(gb.Real(2), (8, 8), seed=0), torch.zeros(2, 2)
    gb.run(S.HMC(0.1, 3), model, x, steps=2, seed=0)
    change(model)
    chain = gb.run(S.HMC(0.1, 3), model, x, steps=2, seed=0)
    assert torch.allclose(chain.u, model(chain.samples), atol=1e-5)


def test_a_network_can_be_tempered():
    model, kernel = gb.models.MLP(gb.Real(2), (8,), seed=0), S.MALA(0.3)
    tempering = S.Tempering(kernel, gb.distributions.Normal.standard(2), (0.0, 0.5, 1.0))
    chain = gb.run(tempering, model, torch.zeros(4, 2), steps=3, seed=0)
    assert torch.allclose(chain.u, model(chain.samples), atol=1e-5)
