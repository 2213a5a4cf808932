"""Tree CRFs against the definition: a loop over all binary trees of each row with all labels."""

import itertools
import math

import pytest
import torch

import gibbsite as gb
from gibbsite.exact.semirings import Expectation, KBest, Log, Max
from gibbsite.exact.tree import tree_total

from ..statistics import fits
from .test_linear_chain import close

INF = math.inf
LENGTHS = [4, 3, 2, 1, 0]
TreeCRF = gb.exact.TreeCRF


def trees(i, j):
    """All binary trees over words i, ..., j: sets of spans."""
    if i == j:
        return [((i, j),)]
    return [((i, j), *a, *b) for m in range(i, j) for a in trees(i, m) for b in trees(m + 1, j)]


def random_tree(seed, K=1, forbid=0.0, device="cpu", lengths=LENGTHS):
    g, T = torch.Generator().manual_seed(seed), max(lengths)
    span = 1.5 * torch.randn(len(lengths), T, T, K, generator=g, dtype=torch.float64)
    forbidden = (torch.rand(span.shape, generator=g) < forbid) & (torch.arange(K) > 0)
    beyond = torch.ones(T, T).tril(-1).bool() | (torch.arange(T) >= torch.tensor(lengths)[:, None, None])
    span = span.masked_fill(forbidden, -INF).masked_fill(beyond[..., None], math.nan)  # ignored
    return TreeCRF(span.to(device), lengths=torch.tensor(lengths, device=device))


def definition(model):
    """For each row: its states and their U."""
    T, K = model.span.shape[-2:]
    for b, n in enumerate(model.lengths.tolist()):
        states, potentials = [], []
        for tree in trees(0, n - 1) if n else [()]:
            for labels in itertools.product(range(K), repeat=len(tree)):
                x, u = torch.zeros(T, T, dtype=torch.int64), model.span.new_zeros(())
                for (i, j), k in zip(tree, labels):
                    x[i, j] = k + 1
                    u = u + model.span[b, i, j, k]
                states.append(x)
                potentials.append(u)
        yield torch.stack(states).to(model.span.device), torch.stack(potentials)


kinds = pytest.mark.parametrize(
    "kind", [{}, {"K": 2, "lengths": [3, 2, 1, 0]}, {"K": 3, "forbid": 0.4, "lengths": [2, 3]}, {"lengths": [5, 0]}], ids=str
)


@kinds
def test_every_answer_is_that_of_the_definition(kind, device):
    model, other = random_tree(0, device=device, **kind), random_tree(1, device=device, **{**kind, "forbid": 0.0})
    best, marginals, total = model.n_best(5), model.marginals(), model.log_partition()
    for b, ((x, u), (_, v)) in enumerate(zip(definition(model), definition(other), strict=True)):
        log_p, rows = u - u.logsumexp(0), x[:, None].expand(-1, len(model.lengths), -1, -1)
        assert close(total[b], u.logsumexp(0)) and close(model.score(rows)[:, b], u) and close(model(rows)[:, b], log_p)
        order = log_p.argsort(descending=True)[:5]
        order = order[log_p[order] > -INF]
        assert torch.equal(best.labels[: len(order), b], x[order]) and close(best.log_prob[: len(order), b], log_p[order])
        assert torch.equal(model.mode()[b], x[order[0]])
        p = log_p.exp()
        assert close(model.entropy()[b], -(p * log_p.masked_fill(p == 0, 0)).sum())
        assert close(model.kl(other)[b], (p * (log_p - v.log_softmax(0)).masked_fill(p == 0, 0)).sum())
        for k in range(model.span.shape[-1]):
            assert close(marginals[b, ..., k], torch.einsum("n,nij->ij", p, (x == k + 1).to(p)))


@kinds
def test_gradients_are_those_of_the_definition(kind, device):
    model = random_tree(2, device=device, **kind)
    model.span.requires_grad_()
    wanted = torch.stack([u[u > -INF].logsumexp(0) for _, u in definition(model)])
    entropy = torch.stack([-(p * p.log()).sum() for p in (u[u > -INF].softmax(0) for _, u in definition(model))])
    for got, want in ((model.log_partition(), wanted), (model.entropy(), entropy)):
        one, other = (torch.autograd.grad(x.sum(), model.span, retain_graph=True)[0] for x in (got, want))
        assert one.isfinite().all() and close(one, other)


@kinds
def test_draws_have_the_law(kind, device):
    """False-alarm probability 1e-6 a row; the mutant's words are joined with no regard to which."""
    model = random_tree(3, device=device, **kind)
    draws = model.sample(3000, seed=torch.Generator(device).manual_seed(0))
    flat = model.span.clone()
    flat[:, 0, 1:] = 0
    flat[:, 1:, 2:] = 0
    wrong = TreeCRF(flat, lengths=model.lengths).sample(3000, seed=torch.Generator(device).manual_seed(0))
    told = False
    for b, (x, u) in enumerate(definition(model)):
        counts = (draws[:, b, None] == x).flatten(2).all(-1).sum(0)
        assert int(counts.sum()) == 3000
        if (u > -INF).sum() > 1:
            assert fits(counts[None], u.softmax(0)[None])
            told = told or not fits((wrong[:, b, None] == x).flatten(2).all(-1).sum(0)[None], u.softmax(0)[None])
    assert told


@pytest.mark.parametrize(("T", "K"), [(2, 2), (3, 1)])
def test_a_single_row_is_a_distribution(T, K, double):
    """All states, those that are no trees included: brackets that cross, or are too few, or written below the diagonal."""
    model = TreeCRF(torch.randn(T, T, K, generator=torch.Generator().manual_seed(0)))
    assert abs(gb.exact.log_z(model).item()) < 1e-12
    assert int((gb.exact.probabilities(model) > 0).sum()) == len(trees(0, T - 1)) * K ** (2 * T - 1)


def test_the_number_of_trees_is_catalans(double):
    counts = [TreeCRF(torch.zeros(n, n, 1)).log_partition().exp().round().item() for n in range(1, 10)]
    assert counts == [math.comb(2 * n, n) / (n + 1) for n in range(9)]


def test_semirings_agree_with_each_other(double):
    model, value = random_tree(4), random_tree(5)
    (span,), (other,) = model._scores(), value._scores()
    log_z, mean = tree_total(Expectation(), torch.stack((span, other.masked_fill(span == -INF, 0))), model.lengths)
    assert close(log_z, tree_total(Log(), span, model.lengths))
    assert close(mean, value.log_partition() - model.cross_entropy(value))
    assert close(tree_total(KBest(3), span, model.lengths)[0], tree_total(Max(), span, model.lengths))


def test_batches_of_several_dimensions(double):
    g = torch.Generator().manual_seed(0)
    span, lengths = torch.randn(2, 3, 4, 4, 2, generator=g), torch.tensor([[4, 2, 0], [1, 3, 4]])
    model = TreeCRF(span, lengths=lengths)
    x = model.sample(5, seed=0)
    assert x.shape == (5, 2, 3, 4, 4) and model(x).shape == (5, 2, 3) and model.marginals().shape == span.shape
    assert close(model(x)[:, 1, 1], TreeCRF(span[1, 1], lengths=lengths[1, 1])(x[:, 1, 1]))


span = torch.zeros(2, 3, 3, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: TreeCRF(span[..., :2, :]),
            "span: expected potentials of shape (*batch, T, T, K), T and K positive, got shape",
        ),
        (lambda: TreeCRF(span + INF), "span: expected finite numbers or -inf, which forbids, got inf at [0, 0, 0, 0]"),
        (lambda: TreeCRF(span, lengths=torch.tensor([4, 1])), "lengths: expected integers from 0 to 3 of shape (2,)"),
        (lambda: TreeCRF(span - INF).mode(), "got log Z = -inf in row 0 of 2"),
        (lambda: TreeCRF(span)(torch.zeros(3, 3).long()), "x: expected integers of shape (*, 2, 3, 3), got"),
        (lambda: TreeCRF(span)(torch.full((2, 3, 3), 3)), "x: expected integers in [0, 3)"),
        (
            lambda: TreeCRF(span).kl(TreeCRF(span[:1])),
            "other: expected a TreeCRF with scores of shape (2, 3, 3, 2), as here",
        ),
    ],
)
def test_a_mistake_is_told(call, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert words in str(raised.value)
