"""Compiled linear chains: log Z and its gradient against enumeration and a float64 recursion, at any range of weights."""

import pytest
import torch

from gibbsite._fast import chain
from gibbsite.exact import chain_loops, chain_paths

from .chains import by_recursion, draw, scores

SIZES = [(1, 1, 1), (5, 4, 3), (17, 9, 5), (3, 12, 32), (6, 7, 33), (2, 6, 65)]


def bound(given):
    """What rounding may do to log Z: K + 20 operations a step, on sums of positive terms that keep relative errors."""
    labels, positions = given[0].shape[-1], given[0].shape[1]
    return (labels + 20) * positions * torch.finfo(given[0].dtype).eps


def gradients(function, given, weight):
    leaves = [t.detach().clone().requires_grad_() for t in given[:-1]]
    z = function(*leaves, given[-1])
    kept = z.isfinite()
    total = (weight.to(z.dtype) * z)[kept].sum()
    return z.detach(), torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)


def check(given):
    weight = torch.linspace(-1, 2, len(given[0]), dtype=torch.float64)
    z, slopes = gradients(chain_loops.log_partition, given, weight)
    exact, expected = gradients(by_recursion, [*(t.double() for t in given[:-1]), given[-1]], weight)
    assert z.dtype == given[0].dtype
    assert torch.equal(z.isfinite(), exact.isfinite())
    kept, error = exact.isfinite(), bound(given)
    positions, rounding = given[0].shape[1], torch.finfo(torch.float64).eps
    # the recursion in float64 keeps whole scores: each step rounds a number of their size
    own = positions * float(exact[kept].abs().max()) * rounding if kept.any() else 0.0
    torch.testing.assert_close(z[kept].double(), exact[kept], atol=error + own, rtol=torch.finfo(z.dtype).eps)
    counts = len(given[0]) * positions * float(weight.abs().max())  # what a slope sums, of errors forward and backward
    for slope, reference in zip(slopes, expected):
        torch.testing.assert_close(slope.double(), reference, atol=4 * (error + own) * counts, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("positions", [False, True], ids=["one table", "a table a position"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1.0, 12.0, 60.0, 1000.0])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_log_z_and_expected_counts_are_those_of_float64(size, scale, forbidden, positions, dtype):
    check(draw(*size, seed=sum(size), scale=scale, forbidden=forbidden, positions=positions, dtype=dtype))


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_log_z_and_marginals_by_enumeration(length, positions):
    node, edge, start, end, _ = draw(1, 4, 3, seed=2, forbidden=0.2, positions=positions)
    given = [t.requires_grad_() for t in (node, edge, start, end)]
    z = chain_loops.log_partition(*given, torch.tensor([length]))
    tables = edge[0] if positions else edge.expand(3, 3, 3)
    every, score = scores(node[0], tables, start, end, length)
    torch.testing.assert_close(z[0], score.logsumexp(0), atol=1e-13, rtol=0)
    marginal = torch.autograd.grad(z.sum(), node)[0][0]
    p = score.detach().softmax(0)
    for t in range(4):
        for k in range(3):
            expected = sum(float(p[n]) for n, y in enumerate(every) if t < length and y[t] == k)
            assert abs(float(marginal[t, k]) - expected) < 1e-13


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_gradcheck(positions, scale):
    *weights, lengths = draw(3, 4, 3, seed=1, scale=scale, positions=positions)
    given = [t.requires_grad_() for t in weights]
    with torch.random.fork_rng(devices=[]):
        assert torch.autograd.gradcheck(lambda *w: chain_loops.log_partition(*w, lengths), given)
        assert torch.autograd.gradgradcheck(lambda *w: chain_loops.log_partition(*w, lengths), given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_what_lies_beyond_a_chain_is_not_read(dtype):
    node, edge, start, end, lengths = draw(9, 6, 4, seed=3, dtype=dtype)
    spoiled = node.clone()
    spoiled[torch.arange(6) >= lengths[:, None]] = torch.nan
    ones, rest = torch.ones(9), (edge, start, end, lengths)
    z, slopes = gradients(chain_loops.log_partition, (node, *rest), ones)
    again, spoiled_slopes = gradients(chain_loops.log_partition, (spoiled, *rest), ones)
    assert torch.equal(z, again)
    for a, b in zip(slopes, spoiled_slopes):
        assert torch.equal(a, b)
    assert not spoiled_slopes[0][torch.arange(6) >= lengths[:, None]].any()


@pytest.mark.parametrize("positions", [False, True])
def test_an_impossible_chain_has_no_gradient_and_spoils_none(positions):
    node, edge, start, end, _ = draw(2, 3, 3, seed=4, positions=positions)
    node[0, 1] = -torch.inf
    given = [t.requires_grad_() for t in (node, edge, start, end)]
    z = chain_loops.log_partition(*given, torch.tensor([3, 3]))
    assert z[0] == -torch.inf and z[1].isfinite()
    for slope, weight in zip(torch.autograd.grad(z[1], given), given):
        assert slope.isfinite().all() and slope.shape == weight.shape
    z = chain_loops.log_partition(*given, torch.tensor([3, 3]))
    assert not torch.autograd.grad(z.sum(), node)[0][0].any()


def test_nan_is_kept():
    node, edge, start, end, lengths = draw(3, 4, 3, seed=5)
    node[0, 2, 1] = torch.nan
    node.requires_grad_()
    z = chain_loops.log_partition(node, edge, start, end, lengths)
    assert z[0].isnan() and z[1:].isfinite().all()
    assert torch.autograd.grad(z.sum(), node)[0][0].isnan().any()


def test_no_positions_at_all():
    node, edge, start, end = torch.zeros(2, 0, 3, requires_grad=True), torch.zeros(3, 3), torch.zeros(3), torch.zeros(3)
    z = chain_loops.log_partition(node, edge, start, end, torch.zeros(2, dtype=torch.int64))
    assert z.tolist() == [0, 0]
    z.sum().backward()


def test_what_scaling_would_lose_is_found(monkeypatch):
    """Label 1 has exp(-95) of the first position's mass, too little for float32, and in the end nearly all of it."""
    node, edge = torch.tensor([[[0.0, -95.0], [-50.0, 0.0], [-50.0, 0.0]]]), torch.zeros(2, 2)
    edge[0, 1] = edge[1, 0] = -torch.inf
    given = (node, edge, torch.zeros(2), torch.zeros(2), torch.tensor([3]))
    check(given)
    table = chain.table
    monkeypatch.setattr(chain, "table", lambda edge: table(edge)._replace(strict=False))
    with pytest.raises(AssertionError):
        check(given)


def test_ordinary_weights_take_the_scaled_loop():
    for forbidden in (0.0, 0.2):
        given = draw(4, 30, 6, seed=6, scale=3.0, forbidden=forbidden, dtype=torch.float32)
        given[0][given[0] == -torch.inf] = 0
        kept = chain_loops._forward(chain_loops._arrays(given))
        assert not kept.lost.any() and not len(kept.rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_long_chains_and_many_chains(dtype):
    check(draw(40, 3, 4, seed=7, dtype=dtype))
    check(draw(1, 3000, 3, seed=8, scale=5.0, dtype=dtype))


def test_a_second_backward_pass_gives_the_same():
    node, edge, start, end, lengths = draw(18, 6, 5, seed=9)
    edge.requires_grad_()
    z = chain_loops.log_partition(node, edge, start, end, lengths).sum()
    first, second = (torch.autograd.grad(z, edge, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second) and first.any()


@pytest.mark.parametrize("positions", [False, True], ids=["one table", "a table a position"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_the_best_labels_by_enumeration(length, forbidden, positions):
    node, edge, start, end, _ = draw(1, 4, 5, seed=11, forbidden=forbidden, positions=positions)
    value, labels = chain_loops.best_path(node, edge, start, end, torch.tensor([length]))
    every, score = scores(node[0], edge[0] if positions else edge.expand(3, 5, 5), start, end, length)
    torch.testing.assert_close(value[0], score.max(), atol=1e-13, rtol=0)
    assert tuple(labels[0].tolist()) == (*every[int(score.argmax())], *[0] * (4 - length))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("positions", [False, True], ids=["one table", "a table a position"])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("size", [*SIZES, (3, 400, 4)], ids=str)
def test_the_best_score_is_that_of_float64_and_of_its_labels(size, scale, positions, dtype):
    given = draw(*size, seed=sum(size), scale=scale, forbidden=0.2, positions=positions, dtype=dtype)
    node, edge, start, end = (t.double() for t in given[:-1])
    value, labels = chain_loops.best_path(*given)
    best = chain_paths.best_paths(1, node, edge, start, end, given[-1])[0][:, 0]
    largest = max(float(t[t.isfinite()].abs().max()) for t in given[:-1] if t.numel())
    # choices that the rounding of sums of two weights turned; float64 keeps and rounds sums of up to 2 T weights
    own = 4 * size[1] ** 2 * largest * torch.finfo(torch.float64).eps
    error, rounding = torch.finfo(dtype).eps * 6 * size[1] * largest, torch.finfo(dtype).eps
    torch.testing.assert_close(value.double(), best, atol=error + own, rtol=rounding)
    for row, length in enumerate(given[-1].tolist()):
        y = labels[row].tolist()
        assert not any(y[length:])
        if length and value[row] > -torch.inf:
            total = start[y[0]] + end[y[length - 1]] + sum(node[row, t, y[t]] for t in range(length))
            tables = edge[row] if positions else edge.expand(size[1] - 1, *edge.shape)
            total += sum(tables[t, y[t], y[t + 1]] for t in range(length - 1))
            torch.testing.assert_close(value[row].double(), total, atol=own, rtol=rounding)


def test_no_best_labels_where_all_are_forbidden():
    node, edge, start, end, _ = draw(2, 3, 3, seed=4)
    node[0, 1] = -torch.inf
    value, labels = chain_loops.best_path(node, edge, start, end, torch.tensor([3, 3]))
    assert value[0] == -torch.inf and value[1].isfinite() and not labels[0].any()


def test_the_best_of_a_long_chain_is_as_sure_as_of_a_short_one():
    """2^16 positions that add 1000 each, and a choice of 2^-7 between the labels of the last: sums in float32 lose it."""
    node = torch.full((1, 1 << 16, 2), 1000.0)
    node[0, -1, 1] += 2.0**-7
    zeros = torch.zeros(2)
    _, labels = chain_loops.best_path(node, torch.zeros(2, 2), zeros, zeros, torch.tensor([1 << 16]))
    assert labels[0, -1] == 1
    whole = node.sum(1)[0]
    assert whole[0] == whole[1], "the mutant: whole scores are the same"


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(chain_loops, "_WORTH", 0)
    given, weight, threads = draw(70, 9, 5, seed=12, dtype=torch.float32), torch.ones(70), torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            results.append(gradients(chain_loops.log_partition, given, weight))
    finally:
        torch.set_num_threads(threads)
    for z, slopes in results[1:]:
        assert torch.equal(z, results[0][0])
        assert torch.equal(slopes[0], results[0][1][0])
        torch.testing.assert_close(slopes[1], results[0][1][1], rtol=1e-5, atol=0)  # torch's product sums in another order
