"""The Ising model: definition, conventions, exact values, blocks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gb
from gibbsite.model import Model
from gibbsite.models.classes import draw_class
from gibbsite.models.graph import lattice_edges

from .helpers import assert_site_logits_exact, dense_ising, draw, stationarity_gap

CRITICAL = math.log(1 + math.sqrt(2)) / 2
DENSITY_3 = {-18: 2, -10: 18, -6: 48, -2: 198, 2: 144, 6: 102}
DENSITY_4 = {0: 20524, 32: 2, 24: 32, 20: 64, 16: 424, 12: 1728, 8: 6688, 4: 13568}
DENSITY_4 |= {-e: n for e, n in DENSITY_4.items()}


def test_potential_is_its_definition(device):
    model = dense_ising().to(device)
    x = gb.exact.states(model.space).to(device)
    J, h, s = model.couplings, model.field, 2.0 * x - 1
    slow = [sum(J[i, j] * r[i] * r[j] for i in range(5) for j in range(i)) + sum(h[i] * r[i] for i in range(5)) for r in s]
    assert (model(x) - torch.stack(slow)).abs().max() < 1e-12
    assert (model(x.double()) - model(x)).abs().max() < 1e-12
    assert model(x.view(4, 8, 5)).shape == (4, 8)
    assert model(x[0]).shape == ()


@pytest.mark.parametrize(("side", "density"), [(3, DENSITY_3), (4, DENSITY_4)])
def test_density_of_states(side, density):
    model = gb.models.Ising.lattice(side, coupling=1.0)
    energy, count = (-gb.exact.potentials(model)).round().long().unique(return_counts=True)
    assert dict(zip(energy.tolist(), count.tolist(), strict=True)) == density


@pytest.mark.parametrize(
    ("side", "log_z", "energy", "heat"),
    [
        (4, 0.970119716172, -1.56562378764, 0.783266825929),
        (8, 0.939715324829, -1.49158910744, 1.14555923989),
        (16, 0.932196314981, -1.45306485281, 1.4987049594),
        (64, 0.929851631694, -1.42393838983, 2.19221139314),
    ],
)
def test_kaufman_at_the_critical_coupling(side, log_z, energy, heat):
    def slope(k):
        K = torch.tensor(k, dtype=torch.float64, requires_grad=True)
        return float(torch.autograd.grad(gb.exact.kaufman_log_z(side, side, K), K)[0]) / side**2

    assert gb.exact.kaufman_log_z(side, side, CRITICAL).item() / side**2 == pytest.approx(log_z, rel=1e-11)
    assert -slope(CRITICAL) == pytest.approx(energy, rel=1e-11)
    # five-point difference: step^4 (side^4 a derivative) and rounding / step are both below 1e-8 here
    h = 1e-4
    second = (8 * (slope(CRITICAL + h) - slope(CRITICAL - h)) - slope(CRITICAL + 2 * h) + slope(CRITICAL - 2 * h)) / (12 * h)
    assert CRITICAL**2 * second == pytest.approx(heat, rel=1e-7)


@pytest.mark.parametrize("K", [0.1, CRITICAL, 0.7])
def test_lattice_log_z_is_kaufmans_and_its_derivative_the_energy(K, double):
    model = gb.models.Ising.lattice(4, coupling=K)
    assert abs(gb.exact.log_z(model) - gb.exact.kaufman_log_z(4, 4, K)) < 1e-10
    k = torch.tensor(K, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(gb.exact.kaufman_log_z(4, 4, k), k)
    mean = (gb.exact.probabilities(model) * gb.exact.potentials(model)).sum() / K
    assert abs(mean - first) < 1e-9


def test_theta_counts_every_edge_twice():
    theta, x = 0.1, gb.Binary(16).uniform().sample(50, seed=0)
    model = gb.models.Ising.from_theta(4, theta=theta)
    A = torch.zeros(16, 16)
    i, j = lattice_edges((4, 4)).T
    A[i, j] = A[j, i] = 1
    s = 2.0 * x - 1
    assert torch.allclose(model(x), theta * (s @ A * s).sum(-1), atol=1e-5)
    assert not torch.allclose(gb.models.Ising.lattice(4, coupling=theta)(x), model(x), atol=1e-2)  # the mutant: K = theta


@pytest.mark.parametrize(("theta", "log_z"), [(0.1, 73.4530978038), (0.25, 103.272975418), (0.5, 200.727975551)])
def test_theta_lattice_partition_functions(theta, log_z):
    model = gb.models.Ising.from_theta(10, theta=theta)
    K = float(model.pairs.weights.detach()[0])
    assert len(model.edges) == 200
    assert gb.exact.kaufman_log_z(10, 10, 2 * theta).item() == pytest.approx(log_z, rel=1e-11)
    assert pytest.approx(2 * theta, rel=1e-6) == K


@given(st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_closed_form_enumeration_and_taylor_agree(sites, seed):
    model = dense_ising(sites, seed)
    assert_site_logits_exact(model)
    x = gb.exact.states(model.space)
    # U is linear in each bit, so that one gradient gives the exact change
    assert (gb.site_logits(model, x, "taylor")[1] - gb.site_logits(model, x)[1]).abs().max() < 1e-10


def test_closed_form_on_a_graph():
    edges = torch.tensor([[0, 1], [3, 1], [2, 4]])
    assert_site_logits_exact(gb.models.Ising.from_edges(6, edges, draw(3), draw(6, seed=1)))
    assert_site_logits_exact(gb.models.Ising.from_edges(3, torch.zeros(0, 2, dtype=torch.long), draw(0), draw(3, seed=1)))


def test_erdos_renyi_has_the_degree_and_scale_asked_for():
    model = gb.models.Ising.erdos_renyi(400, degree=4, scale=0.5, seed=0)
    again = gb.models.Ising.erdos_renyi(400, degree=4, scale=0.5, seed=0)
    assert torch.equal(model.edges, again.edges)
    # about 800 edges, a binomial: 4.9 sd each way, false alarm 1e-6; the scale likewise (sd of a sample sd: .5 / sqrt 1600)
    assert abs(len(model.edges) - 800) < 4.9 * math.sqrt(800)
    assert abs(model.pairs.weights.std() - 0.5) < 4.9 * 0.5 / math.sqrt(2 * 660)
    other = gb.models.Ising.erdos_renyi(400, degree=6, scale=0.25, seed=0)  # the mutant fails both
    assert abs(len(other.edges) - 800) > 4.9 * math.sqrt(800)
    assert abs(other.pairs.weights.std() - 0.5) > 4.9 * 0.5 / math.sqrt(2 * 660)


def test_the_papers_erdos_renyi_graph_is_at_scale_one():
    """GWG's appendix F.2: U = s^T J s over a symmetric J with entries from N(0, 1/4), so that each edge counts twice.

    About 400 edges; the sd of their sample sd is .5 / sqrt(2 n), 4.9 of them a false alarm of 1e-6.
    """
    model = gb.models.Ising.erdos_renyi(200, degree=4, scale=1.0, seed=0)
    x = model.space.uniform().sample(20, seed=1)
    J, s = model.couplings.detach() / 2, 2.0 * x - 1
    assert torch.allclose(model(x), (s @ J * s).sum(-1), atol=1e-3)
    entries = J[tuple(model.edges.T)]
    bound = 4.9 * 0.5 / math.sqrt(2 * len(entries))
    assert abs(entries.std() - 0.5) < bound
    mutant = gb.models.Ising.erdos_renyi(200, degree=4, scale=0.5, seed=0).couplings.detach() / 2
    assert abs(mutant[tuple(model.edges.T)].std() - 0.5) > bound


def test_theta_lattices_may_be_open():
    one = gb.models.Ising.from_theta(3, theta=0.1, periodic=False)
    two = gb.models.Ising.lattice(3, coupling=0.2, periodic=False)
    assert len(one.edges) == 12 and torch.equal(one.couplings, two.couplings)


CLAMP = torch.tensor([True, False, False, True])


def ring():
    return gb.models.Ising.from_edges(4, lattice_edges((4,)), draw(4, seed=3), draw(4, seed=4))


@pytest.mark.parametrize("clamp", [None, CLAMP])
@pytest.mark.parametrize("model", [ring(), dense_ising(4)], ids=["ring", "dense"])
@pytest.mark.parametrize("kernel", [gb.sample.BlockGibbs, gb.sample.Gibbs, gb.sample.GibbsSweep])
def test_gibbs_is_stationary(kernel, model, clamp):
    assert stationarity_gap(kernel(clamp=clamp), model, clamp) < 1e-10


def test_given_blocks_are_stationary_and_coupled_ones_refused():
    model = ring()
    assert stationarity_gap(gb.sample.BlockGibbs(blocks=[[1, 3], [0, 2]]), model) < 1e-10
    with pytest.raises(ValueError, match="sites 0 and 1 are coupled and both in block 0"):
        gb.sample.BlockGibbs(blocks=[[0, 1], [2, 3]]).init(model, gb.exact.states(model.space))


def test_the_stationarity_test_rejects_a_block_of_coupled_sites():
    model = ring()
    model._coloured = (model.pairs, model.pairs.structure_version, [torch.tensor([0, 1]), torch.tensor([2, 3])])  # forced
    assert stationarity_gap(gb.sample.BlockGibbs(), model) > 1e-3


def test_dense_blocks_stay_right_when_learning_couples_more_pairs():
    model = gb.models.Ising(torch.zeros(3, 3, dtype=torch.float64))
    assert model.blocks == 3
    with torch.no_grad():
        model.pairs.weight += 1.0
    assert stationarity_gap(gb.sample.BlockGibbs(), model) < 1e-10


def test_lattices_have_two_blocks():
    assert gb.models.Ising.lattice(4, coupling=0.3).blocks == 2
    assert gb.models.Ising.lattice((4, 6), coupling=0.3, periodic=False).space == gb.Binary(24)


def test_draw_class_holds_clamped_sites():
    model = ring()
    x = model.space.uniform().sample(5, seed=0)
    source = torch.Generator().manual_seed(0)
    assert torch.equal(draw_class(model, torch.tensor([0, 3]), x, source, CLAMP), x)


@pytest.mark.parametrize("field", [torch.zeros(3), torch.zeros(5, 5), float("nan")])
def test_field_refused(field):
    with pytest.raises(ValueError, match="field: expected"):
        gb.models.Ising(torch.zeros(5, 5), field)


@pytest.mark.parametrize("x", [torch.zeros(2, 4, dtype=torch.int8), torch.zeros(2, 4)])
def test_states_of_another_shape_refused(x):
    with pytest.raises(ValueError, match="x: expected"):
        dense_ising(5)(x)


def test_learned_parameters_are_the_couplings_and_the_field():
    assert isinstance(dense_ising(), Model)
    assert {n for n, _ in dense_ising().named_parameters()} == {"field", "pairs.weight"}


def test_couplings_may_be_numpys_and_sides_are_integers():
    couplings = np.array([[0.0, 0.5], [0.5, 0.0]])
    assert torch.equal(gb.models.Ising(couplings).couplings, torch.as_tensor(couplings))
    assert gb.models.Ising.lattice(np.int64(3), coupling=0.1).space == gb.Binary(9)
    for side in (3.0, (3, 2.0), 0):
        with pytest.raises(ValueError, match="side: expected a positive integer"):
            gb.models.Ising.lattice(side, coupling=0.1)


def test_couplings_are_exact_in_the_type_asked_for():
    """0.4 in float32 is another number, which `.double()` keeps: the mutant."""
    edges = torch.tensor([[0, 1], [1, 2]])
    for model in (
        gb.models.Ising.lattice(4, coupling=0.4, field=0.1, dtype=torch.float64),
        gb.models.Ising.from_edges(3, edges, 0.4, 0.1, dtype=torch.float64),
        gb.models.Ising.from_edges(3, edges, torch.tensor([0.4, 0.4], dtype=torch.float64), 0.1),
    ):
        assert set(model.pairs.weights.tolist()) == {0.4} and set(model.field.tolist()) == {0.1}
    model = gb.models.Ising.lattice(4, coupling=0.4, dtype=torch.float64)
    assert abs(gb.exact.log_z(model) - gb.exact.kaufman_log_z(4, 4, 0.4)) < 1e-13
    mutant = gb.models.Ising.lattice(4, coupling=0.4).double()
    assert abs(gb.exact.log_z(mutant) - gb.exact.kaufman_log_z(4, 4, 0.4)) > 1e-8
    assert gb.models.Ising.lattice(4, coupling=0.4).field.dtype == torch.float32


def test_numbers_follow_the_default_type(double):
    assert gb.models.Ising.lattice(4, coupling=0.4).pairs.weights[0].item() == 0.4
    assert gb.models.Ising.from_theta(4, theta=0.2).pairs.weights[0].item() == 0.4
    assert gb.models.Ising.erdos_renyi(9, seed=0).pairs.weights.dtype == torch.float64
