"""Dependency trees against the definition: of all ways to give each word a head, those that are projective trees."""

import itertools
import math

import pytest
import torch

import gibbsite as gb
from gibbsite.exact.dependency import dependency_total
from gibbsite.exact.semirings import Expectation, KBest, Log, Max

from ..statistics import fits
from .test_linear_chain import close

INF = math.inf
LENGTHS = [4, 3, 2, 1, 0]
DependencyCRF = gb.exact.DependencyCRF


def is_projective_tree(heads):
    """One root, from which all words are reached, and every arc's words between are below its head."""
    if not heads:
        return True
    if heads.count(0) != 1:
        return False

    def ancestors(j):
        seen = []
        while heads[j] and j not in seen:
            seen.append(j)
            j = heads[j] - 1
        return [*seen, j] if not heads[j] else None

    above = [ancestors(j) for j in range(len(heads))]
    if None in above:
        return False
    return all(h - 1 in above[m] for j, h in enumerate(heads) if h for m in range(min(j, h - 1), max(j, h - 1)))


def random_tree(seed, forbid=0.0, device="cpu", lengths=LENGTHS):
    g, T = torch.Generator().manual_seed(seed), max(lengths)
    arc = 1.5 * torch.randn(len(lengths), T, T, generator=g, dtype=torch.float64)
    kept = torch.eye(T).bool() | torch.eye(T).roll(1, 1).triu().bool()  # the first word as root, each the head of the next
    arc = arc.masked_fill((torch.rand(arc.shape, generator=g) < forbid) & ~kept, -INF)
    real = torch.arange(T) < torch.tensor(lengths)[:, None]
    arc = arc.masked_fill(~(real[:, :, None] & real[:, None]), math.nan)  # ignored
    return DependencyCRF(arc.to(device), lengths=torch.tensor(lengths, device=device))


def definition(model):
    """For each row: its states and their U."""
    T = model.arc.shape[-1]
    for b, n in enumerate(model.lengths.tolist()):
        states, potentials = [], []
        for heads in itertools.product(range(n + 1), repeat=n):
            if is_projective_tree(heads):
                arcs = [model.arc[b, h - 1 if h else j, j] for j, h in enumerate(heads)]
                states.append(torch.tensor(heads + (0,) * (T - n), dtype=torch.int64))
                potentials.append(torch.stack(arcs).sum() if arcs else model.arc.new_zeros(()))
        yield torch.stack(states).to(model.arc.device), torch.stack(potentials)


kinds = pytest.mark.parametrize("kind", [{}, {"forbid": 0.4}, {"lengths": [5, 2]}], ids=str)


@kinds
def test_every_answer_is_that_of_the_definition(kind, device):
    model, other = random_tree(0, device=device, **kind), random_tree(1, device=device, **{**kind, "forbid": 0.0})
    best, marginals, total = model.n_best(5), model.marginals(), model.log_partition()
    for b, ((x, u), (_, v)) in enumerate(zip(definition(model), definition(other), strict=True)):
        log_p, rows = u - u.logsumexp(0), x[:, None].expand(-1, len(model.lengths), -1)
        assert close(total[b], u.logsumexp(0)) and close(model.score(rows)[:, b], u) and close(model(rows)[:, b], log_p)
        order = log_p.argsort(descending=True)[:5]
        order = order[log_p[order] > -INF]
        assert torch.equal(best.labels[: len(order), b], x[order]) and close(best.log_prob[: len(order), b], log_p[order])
        assert torch.equal(model.mode()[b], x[order[0]])
        p = log_p.exp()
        assert close(model.entropy()[b], -(p * log_p.masked_fill(p == 0, 0)).sum())
        assert close(model.kl(other)[b], (p * (log_p - v.log_softmax(0)).masked_fill(p == 0, 0)).sum())
        for i, j in itertools.product(range(int(model.lengths[b])), repeat=2):
            assert close(marginals[b, i, j], p[x[:, j] == (0 if i == j else i + 1)].sum())


@kinds
def test_gradients_are_those_of_the_definition(kind, device):
    model = random_tree(2, device=device, **kind)
    model.arc.requires_grad_()
    wanted = torch.stack([u[u > -INF].logsumexp(0) for _, u in definition(model)])
    entropy = torch.stack([-(p * p.log()).sum() for p in (u[u > -INF].softmax(0) for _, u in definition(model))])
    for got, want in ((model.log_partition(), wanted), (model.entropy(), entropy)):
        one, other = (torch.autograd.grad(x.sum(), model.arc, retain_graph=True)[0] for x in (got, want))
        assert one.isfinite().all() and close(one, other)


@kinds
def test_draws_have_the_law(kind, device):
    """False-alarm probability 1e-6 a row; the mutant is told nothing about the root."""
    model = random_tree(3, device=device, **kind)
    draws = model.sample(3000, seed=torch.Generator(device).manual_seed(0))
    flat = model.arc.clone()
    flat.diagonal(0, -2, -1).zero_()
    wrong = DependencyCRF(flat, lengths=model.lengths).sample(3000, seed=torch.Generator(device).manual_seed(0))
    told = False
    for b, (x, u) in enumerate(definition(model)):
        counts = (draws[:, b, None] == x).all(-1).sum(0)
        assert int(counts.sum()) == 3000
        if (u > -INF).sum() > 1:
            assert fits(counts[None], u.softmax(0)[None])
            told = told or not fits((wrong[:, b, None] == x).all(-1).sum(0)[None], u.softmax(0)[None])
    assert told


def test_a_single_row_is_a_distribution(double):
    """All heads: cycles, forests, arcs that cross and words that are their own heads have probability 0."""
    model = DependencyCRF(torch.randn(4, 4, generator=torch.Generator().manual_seed(0)))
    assert abs(gb.exact.log_z(model).item()) < 1e-12
    assert int((gb.exact.probabilities(model) > 0).sum()) == 30


def test_the_number_of_projective_trees(double):
    counts = [DependencyCRF(torch.zeros(n, n)).log_partition().exp().round().item() for n in range(1, 10)]
    assert counts == [math.comb(3 * n + 1, n) / (n + 1) for n in range(9)]


def test_semirings_agree_with_each_other(double):
    model, value = random_tree(4), random_tree(5)
    (arc,), (other,) = model._scores(), value._scores()
    log_z, mean = dependency_total(Expectation(), torch.stack((arc, other.masked_fill(arc == -INF, 0))), model.lengths)
    assert close(log_z, dependency_total(Log(), arc, model.lengths))
    assert close(mean, value.log_partition() - model.cross_entropy(value))
    assert close(dependency_total(KBest(3), arc, model.lengths)[0], dependency_total(Max(), arc, model.lengths))


arc = torch.zeros(2, 3, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: DependencyCRF(arc[..., :2]),
            "arc: expected potentials of shape (*batch, T, T), T positive, got shape (2, 3, 2)",
        ),
        (lambda: DependencyCRF(arc * math.nan), "arc: expected finite numbers or -inf, which forbids, got nan at [0, 0, 0]"),
        (lambda: DependencyCRF(arc, lengths=torch.tensor([1])), "lengths: expected integers from 0 to 3 of shape (2,)"),
        (lambda: DependencyCRF(arc - INF).mode(), "got log Z = -inf in row 0 of 2"),
        (lambda: DependencyCRF(arc)(torch.zeros(3).long()), "x: expected integers of shape (*, 2, 3), got"),
        (lambda: DependencyCRF(arc)(torch.full((2, 3), 4)), "x: expected integers in [0, 4)"),
    ],
)
def test_a_mistake_is_told(call, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert words in str(raised.value)
