"""The Potts model: definition, gauge, lattices, blocks."""

import math
from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gb
from gibbsite.models import potts_couplings

from .helpers import assert_site_logits_exact, dense_potts, draw, sparse_potts, stationarity_gap

MODELS = pytest.mark.parametrize("model", [dense_potts(), sparse_potts()], ids=["dense", "sparse"])


def slow_potential(model, x):
    J, h = model.couplings.detach(), model.fields.detach()
    pairs = sum(J[i, x[i], j, x[j]] for i in range(len(x)) for j in range(i + 1, len(x)))
    return float(pairs + sum(h[i, x[i]] for i in range(len(x))))


@MODELS
def test_potential_is_its_definition(model, device):
    model = deepcopy(model).to(device)
    x = gb.exact.states(model.space).to(device)
    slow = torch.tensor([slow_potential(model, row) for row in x], dtype=torch.float64, device=device)
    assert (model(x) - slow).abs().max() < 1e-12
    assert (model(model.space.embed(x, torch.float64)) - slow).abs().max() < 1e-12
    assert model(x[:9].view(3, 3, -1)).shape == (3, 3)
    assert model(x[0]).shape == ()


def test_large_and_small_batches_agree(monkeypatch):
    model, x = dense_potts(), gb.exact.states(dense_potts().space)
    small = model(x)
    monkeypatch.setattr(potts_couplings, "_GATHER", 0)
    assert (model(x) - small).abs().max() < 1e-12


@MODELS
def test_both_paths_give_the_parameters_the_same_gradient(model):
    x = gb.exact.states(model.space)[::5]
    by_states = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    by_view = torch.autograd.grad(model(model.space.embed(x, torch.float64)).square().sum(), list(model.parameters()))
    assert all((a - b).abs().max() < 1e-10 for a, b in zip(by_states, by_view, strict=True))


@given(st.integers(1, 4), st.integers(2, 3), st.integers(0, 10_000), st.booleans())
@settings(max_examples=30, deadline=None)
def test_closed_form_enumeration_and_taylor_agree(sites, states, seed, dense):
    if dense:
        model = dense_potts(sites, states, seed)
    else:
        edges = torch.triu_indices(sites, sites, 1).T[:: 1 + seed % 3]
        model = gb.models.Potts.from_edges(
            sites, states, edges, draw(len(edges), states, states, seed=seed), draw(sites, states, seed=seed + 1)
        )
    assert_site_logits_exact(model)
    x = gb.exact.states(model.space)
    assert (gb.site_logits(model, x, "taylor")[1] - gb.site_logits(model, x)[1]).abs().max() < 1e-10


def test_sparse_and_dense_are_one_model():
    sparse = sparse_potts()
    dense = gb.models.Potts(sparse.couplings.detach(), sparse.fields.detach())
    x = gb.exact.states(sparse.space)
    assert (sparse(x) - dense(x)).abs().max() < 1e-12
    assert torch.equal(dense.edges, sparse.edges)
    assert (dense.pairs.edge_tables() - sparse.pairs.edge_tables()).abs().max() == 0


def test_an_edge_written_either_way_round_is_one_edge():
    W = draw(1, 3, 3)
    one = gb.models.Potts.from_edges(2, 3, torch.tensor([[0, 1]]), W)
    two = gb.models.Potts.from_edges(2, 3, torch.tensor([[1, 0]]), W.mT)
    assert torch.equal(one.couplings, two.couplings)
    assert one(torch.tensor([2, 1])) == W[0, 2, 1]


def test_a_learned_dense_weight_counts_by_its_symmetric_part():
    model = dense_potts()
    x = gb.exact.states(model.space)
    with torch.no_grad():
        before = model(x)
        noise = draw(3, 3, 3, 3, seed=9)
        model.pairs.weight += noise - noise.permute(2, 3, 0, 1)
        model.pairs.weight[range(3), :, range(3)] += 1.0
        assert (model(x) - before).abs().max() < 1e-12
        assert (model(model.space.embed(x, torch.float64)) - before).abs().max() < 1e-12
    assert_site_logits_exact(model)


@MODELS
def test_zero_sum_gauge_keeps_the_probabilities(model):
    gauge = model.zero_sum()
    assert (gb.exact.probabilities(gauge) - gb.exact.probabilities(model)).abs().max() < 1e-12
    assert gauge.couplings.sum(1).abs().max() < 1e-12
    assert gauge.couplings.sum(3).abs().max() < 1e-12
    assert gauge.fields.sum(1).abs().max() < 1e-12
    again = gauge.zero_sum()
    assert (again.couplings - gauge.couplings).abs().max() < 1e-12
    assert (again.fields - gauge.fields).abs().max() < 1e-12
    mutant = gb.models.Potts(gauge.pairs, model.fields.detach())  # fields that did not take what the couplings lost
    assert (gb.exact.probabilities(mutant) - gb.exact.probabilities(model)).abs().max() > 1e-3


@pytest.mark.parametrize(("sites", "states", "K"), [(3, 3, 0.7), (5, 4, -0.4), (7, 2, 1.1)])
def test_ring_log_z(sites, states, K, double):
    model = gb.models.Potts.lattice((sites,), states=states, coupling=K)
    z = (math.exp(K) + states - 1) ** sites + (states - 1) * (math.exp(K) - 1) ** sites
    assert abs(gb.exact.log_z(model).item() - math.log(z)) < 1e-10


def test_two_states_are_ising_with_twice_the_coupling(double):
    potts = gb.models.Potts.lattice(3, states=2, coupling=0.8, field=torch.tensor([0.0, 0.4]))
    ising = gb.models.Ising.lattice(3, coupling=0.4, field=0.2)
    assert (gb.exact.probabilities(potts) - gb.exact.probabilities(ising)).abs().max() < 1e-12


CLAMP = torch.tensor([False, True, False])


@pytest.mark.parametrize("clamp", [None, CLAMP])
@pytest.mark.parametrize("kernel", [gb.sample.BlockGibbs, gb.sample.Gibbs, gb.sample.GibbsSweep])
@pytest.mark.parametrize("model", [dense_potts(), sparse_potts(4, 2)], ids=["dense", "sparse"])
def test_gibbs_is_stationary(model, kernel, clamp):
    if clamp is not None:
        clamp = torch.nn.functional.pad(clamp, (0, model.space.sites - 3))
    assert stationarity_gap(kernel(clamp=clamp), model, clamp) < 1e-10


def test_the_stationarity_test_rejects_a_block_of_coupled_sites():
    model = sparse_potts(4, 2)
    assert stationarity_gap(gb.sample.BlockGibbs(blocks=[[0, 2], [1, 3]]), model) < 1e-10
    with pytest.raises(ValueError, match="sites 1 and 2 are coupled and both in block 1"):
        gb.sample.BlockGibbs(blocks=[[0, 3], [1, 2]]).init(model, gb.exact.states(model.space))
    model._coloured = (model.pairs, model.pairs.structure_version, [torch.tensor([0, 3]), torch.tensor([1, 2])])  # forced
    assert stationarity_gap(gb.sample.BlockGibbs(), model) > 1e-3


def test_dense_blocks_are_single_sites_whatever_the_values():
    assert gb.models.Potts(torch.zeros(3, 2, 3, 2)).blocks == 3
    assert gb.models.Potts.lattice(4, states=3, coupling=1.0).blocks == 2


def test_bonds_of_a_ferromagnet():
    model = gb.models.Potts.lattice((4,), states=3, coupling=0.5, field=torch.tensor([0.1, 0.0, -0.1]))
    x = gb.exact.states(model.space)
    for m in (model, gb.models.Potts(model.couplings.detach() + 0, model.fields.detach())):
        edges, strength, fields = m.bonds()
        agree = x[:, edges[:, 0]] == x[:, edges[:, 1]]
        u = (agree * strength).sum(-1) + fields[torch.arange(4), x].sum(-1)
        assert (u - model(x)).abs().max() < 1e-5
    for bad in (gb.models.Potts.lattice((4,), states=3, coupling=-0.5), sparse_potts()):
        with pytest.raises(ValueError, match="sites 0 and 1"):
            bad.bonds()


@pytest.mark.parametrize(
    ("couplings", "message"),
    [
        (torch.zeros(2, 3, 2), "shape \\(sites, states, sites, states\\)"),
        (torch.zeros(2, 3, 3, 2), "shape \\(sites, states, sites, states\\)"),
        (torch.zeros(2, 3, 2, 3, dtype=torch.long), "floats"),
        (torch.full((2, 3, 2, 3), float("nan")), "finite"),
        (torch.arange(36.0).view(2, 3, 2, 3), "J\\[j, b, i, a\\]"),
        (torch.ones(2, 3, 2, 3), "zero diagonal blocks"),
    ],
)
def test_couplings_refused(couplings, message):
    with pytest.raises(ValueError, match=message):
        gb.models.Potts(couplings, torch.zeros(2, 3))


@pytest.mark.parametrize("fields", [torch.zeros(2), torch.zeros(3, 2), torch.full((2, 3), float("inf"))])
def test_fields_refused(fields):
    with pytest.raises(ValueError, match="fields: expected"):
        gb.models.Potts(torch.zeros(2, 3, 2, 3), fields)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.zeros(2, 2, 2), r"weights: expected finite floats of shape \(pairs, 3, 3\)"),
        (torch.zeros(1, 3, 3), "weights: expected finite floats of shape \\(2, states"),
        (torch.zeros(2, 3, 3, dtype=torch.long), "weights: expected finite floats"),
        (torch.full((2, 3, 3), float("nan")), "weights: expected finite"),
    ],
)
def test_edge_weights_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        gb.models.Potts.from_edges(3, 3, torch.tensor([[0, 1], [1, 2]]), weights)


@pytest.mark.parametrize("x", [torch.zeros(2, 4, dtype=torch.long), torch.zeros(2, 3, 2), torch.tensor(1)])
def test_states_of_another_shape_refused(x):
    with pytest.raises(ValueError, match="x: expected"):
        dense_potts()(x)


def test_the_lattices_coupling_is_exact_in_the_type_asked_for():
    model = gb.models.Potts.lattice(3, states=3, coupling=0.4, field=0.1, dtype=torch.float64)
    assert model.couplings.max().item() == 0.4 != gb.models.Potts.lattice(3, states=3, coupling=0.4).double().couplings.max()
    assert model.fields.dtype == torch.float64 and model.fields[0, 0].item() == 0.1
