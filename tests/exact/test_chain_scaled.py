"""Products in scaled probabilities: sure where nothing can be lost, logarithms where it could; the same numbers."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from gibbsite.exact import chain_forward, chain_loops, chain_paths, chain_scaled

INF = math.inf


def potentials(seed, scale=1.0, forbid=0.0, B=5, T=7, K=4, per_position=False):
    """Random potentials, of which a share is forbidden, never label 0; edges of their own beyond a row's end are far off."""
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        x = scale * torch.randn(shape, generator=g, dtype=torch.float64)
        return x.masked_fill((torch.rand(shape, generator=g) < forbid) & (torch.arange(K) > 0), -INF)

    lengths = torch.randint(T + 1, (B,), generator=g)
    edge = draw(B, T - 1, K, K) if per_position else draw(K, K)
    if per_position:
        edge = torch.where((torch.arange(1, T) < lengths[:, None])[..., None, None], edge, 5000.0)
    return [draw(B, T, K), edge, draw(K), draw(K)], lengths


def both(weights, lengths):
    """log Z, and the gradient of a weighted sum of it, by products and in logarithms."""
    results = []
    for way in (chain_scaled, chain_forward):
        leaves = [x.clone().requires_grad_() for x in weights]
        log_z = way.log_partition(*leaves, lengths)
        value = torch.where(log_z > -INF, log_z, 0) @ torch.arange(1.0, 1 + len(log_z), dtype=log_z.dtype)
        results.append((log_z, *torch.autograd.grad(value, leaves, materialize_grads=True)))
    return zip(*results, strict=True)


def same(x, y):
    return torch.allclose(x, y, rtol=1e-10, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    some.integers(0, 1000),
    some.sampled_from([0.1, 3.0, 40.0, 300.0]),
    some.sampled_from([0.0, 0.3, 0.8]),
    some.integers(1, 9),
    some.booleans(),
)
def test_products_and_logarithms_are_the_same_numbers(seed, scale, forbid, T, per_position):
    for one, other in both(*potentials(seed, scale, forbid, T=T, per_position=per_position and T > 1)):
        assert same(one, other)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("forbid", [0.0, 0.5])
def test_usual_potentials_are_sure(forbid, per_position):
    weights, lengths = potentials(0, 3.0, forbid, T=200, per_position=per_position)
    assert chain_scaled.forward(*weights, lengths).sure


def test_one_table_shown_at_every_position_is_read_once():
    """What marginals of pairs are taken of: the slopes are apart, the forward pass is that of the table."""
    (node, edge, start, end), lengths = potentials(4)
    weights = [node, edge.expand(5, 6, 4, 4), start, end]
    assert chain_scaled.forward(*weights, lengths).E.shape == (4, 4)
    results = []
    for way in (chain_scaled, chain_forward):
        leaf = weights[1].detach().requires_grad_()
        results.append(torch.autograd.grad(way.log_partition(node, leaf, start, end, lengths).sum(), leaf)[0])
    assert results[0].shape == (5, 6, 4, 4) and same(*results)


CASES = {
    "a label that falls behind at every step, and is the only one that may end": (
        torch.tensor([[[0.0, -90.0]] * 20]),
        torch.tensor([[0.0, -INF], [-INF, 0.0]]),
        torch.tensor([-INF, 0.0]),
    ),
    "a node out of range of all others": (
        torch.tensor([[[0.0, -800.0]] * 2]),
        torch.tensor([[0.0, -INF], [-INF, 0.0]]),
        torch.tensor([-INF, 0.0]),
    ),
    "edges out of range": (
        torch.tensor([[[0.0, -INF], [0.0, 0.0], [-INF, 0.0]]]),
        torch.tensor([[0.0, -800.0], [-800.0, -800.0]]),
        torch.tensor([0.0, 0.0]),
    ),
}


@pytest.mark.parametrize(("node", "edge", "end"), CASES.values(), ids=CASES.keys())
def test_what_would_be_lost_goes_in_logarithms(node, edge, end):
    """The mutant trusts the products, and loses all that there is."""
    weights = [x.double() for x in (node, edge, torch.zeros(2), end)]
    lengths = torch.tensor([node.shape[1]])
    passed = chain_scaled.forward(*weights, lengths)
    assert not passed.sure
    wanted = chain_forward.log_partition(*weights, lengths)
    assert same(chain_scaled.log_partition(*weights, lengths), wanted)
    assert wanted.isfinite().all() and not same(passed.log_z, wanted)


def test_wide_nodes_are_sure_where_every_label_may_follow():
    """What is lost could not have mattered: nodes that range over thousands, and edges that range over 240."""
    g = torch.Generator().manual_seed(0)
    node = 2000 * torch.randn(4, 30, 5, generator=g, dtype=torch.float64)
    edge = 240 * torch.rand(5, 5, generator=g, dtype=torch.float64)
    weights, lengths = [node, edge, *torch.zeros(2, 5, dtype=torch.float64)], torch.full((4,), 30)
    assert chain_scaled.forward(*weights, lengths).sure
    for one, other in both(weights, lengths):
        assert same(one, other)


def test_rows_without_a_label_sequence_do_not_harm_the_others():
    weights, lengths = potentials(1, T=5)
    lengths[:] = 5
    weights[0][2, 3] = -INF
    log_z, node, *_ = (one for one, _ in both(weights, lengths))
    assert log_z[2] == -INF and log_z[[0, 1, 3, 4]].isfinite().all() and bool((node[2] == 0).all())
    for one, other in both(weights, lengths):
        assert torch.allclose(one, other)


def test_best_paths_in_torch_are_those_of_the_loops():
    """Labels beyond a chain are 0 in both."""
    weights, lengths = potentials(3, forbid=0.3)
    (score, labels), (wanted, there) = chain_paths.best_paths(1, *weights, lengths), chain_loops.best_path(*weights, lengths)
    assert torch.equal(labels[:, 0], there) and same(score[:, 0], wanted)


def test_single_precision_and_narrower_products_are_not_used():
    """Under autocast, and where float32 products are cut short, the sums stay in double precision."""
    weights, lengths = potentials(2)
    single = [x.float() for x in weights]
    wanted = chain_scaled.log_partition(*single, lengths)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(chain_scaled.log_partition(*single, lengths), wanted)
    assert torch.allclose(wanted.double(), chain_forward.log_partition(*weights, lengths), rtol=1e-5)
