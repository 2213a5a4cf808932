"""Semi-Markov chains against the definition: a loop over all ways to cut each row into labelled segments."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.exact.semirings import Expectation, KBest, Log, Max

from ..statistics import fits
from .test_linear_chain import close

INF = math.inf
LENGTHS = [4, 3, 1, 0]
SemiMarkov = gb.exact.SemiMarkov


def cuts(n, longest):
    """All ways to write n as a sum of lengths up to `longest`, in order."""
    if n == 0:
        return [()]
    return [(first, *rest) for first in range(1, min(n, longest) + 1) for rest in cuts(n - first, longest)]


def random_chain(seed, L=3, K=2, forbid=0.0, device="cpu"):
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        x = 1.5 * torch.randn(shape, generator=g, dtype=torch.float64)
        return x.masked_fill((torch.rand(shape, generator=g) < forbid) & (torch.arange(K) > 0), -INF).to(device)

    segment, edge, lengths = draw(len(LENGTHS), 4, L, K), draw(K, K), torch.tensor(LENGTHS)
    reach = torch.arange(4)[:, None] + torch.arange(L) + 1 > lengths[:, None, None]
    segment = segment.masked_fill(reach[..., None].to(device), math.nan)  # what reaches beyond is nobody's business
    return SemiMarkov(segment, edge, start=draw(K), end=draw(K), lengths=lengths.to(device))


def definition(chain):
    """For each row: its states and their U."""
    T, L, K = chain.segment.shape[-3:]
    for b, n in enumerate(chain.lengths.tolist()):
        states, potentials = [], []
        for cut in cuts(n, L):
            for code in range(K ** len(cut)):
                labels = [code // K**i % K for i in range(len(cut))]
                x, u, t = torch.zeros(T, dtype=torch.int64), chain.segment.new_zeros(()), 0
                for i, (length, k) in enumerate(zip(cut, labels)):
                    x[t] = k + 1
                    u = u + chain.segment[b, t, length - 1, k] + (chain.edge[labels[i - 1], k] if i else chain.start[k])
                    t += length
                states.append(x)
                potentials.append(u + chain.end[labels[-1]] if labels else u)
        yield torch.stack(states).to(chain.segment.device), torch.stack(potentials)


kinds = pytest.mark.parametrize("kind", [{"L": 3}, {"L": 1}, {"L": 6}, {"L": 2, "forbid": 0.3}, {"L": 4, "K": 1}], ids=str)


@kinds
def test_every_answer_is_that_of_the_definition(kind, device):
    chain, other = random_chain(0, device=device, **kind), random_chain(1, device=device, **{**kind, "forbid": 0.0})
    best, marginals, total = chain.n_best(5), chain.marginals(), chain.log_partition()
    for b, ((x, u), (_, v)) in enumerate(zip(definition(chain), definition(other), strict=True)):
        log_p = u - u.logsumexp(0)
        rows = x[:, None].expand(-1, len(LENGTHS), -1)
        assert close(total[b], u.logsumexp(0)) and close(chain.score(rows)[:, b], u) and close(chain(rows)[:, b], log_p)
        order = log_p.argsort(descending=True)[:5]
        order = order[log_p[order] > -INF]
        assert torch.equal(best.labels[: len(order), b], x[order]) and close(best.log_prob[: len(order), b], log_p[order])
        assert bool((best.log_prob[len(order) :, b] == -INF).all()) and torch.equal(chain.mode()[b], x[order[0]])
        p = log_p.exp()
        assert close(chain.entropy()[b], -(p * log_p.masked_fill(p == 0, 0)).sum())
        assert close(chain.kl(other)[b], (p * (log_p - v.log_softmax(0)).masked_fill(p == 0, 0)).sum())
        begins = torch.stack([torch.einsum("n,nt->t", p, (x == k + 1).to(p)) for k in range(chain.edge.shape[0])], -1)
        assert close(marginals[b].sum(-2), begins)


@kinds
def test_gradients_are_those_of_the_definition(kind, device):
    chain = random_chain(2, device=device, **kind)
    inputs = [x.requires_grad_() for x in (chain.segment, chain.edge, chain.start, chain.end)]
    wanted = torch.stack([u[u > -INF].logsumexp(0) for _, u in definition(chain)])
    entropy = torch.stack([-(p * p.log()).sum() for p in (u[u > -INF].softmax(0) for _, u in definition(chain))])
    for got, want in ((chain.log_partition(), wanted), (chain.entropy(), entropy)):
        pairs = [torch.autograd.grad(x.sum(), inputs, retain_graph=True) for x in (got, want)]
        for one, other in zip(*pairs, strict=True):
            assert one.isfinite().all() and close(one, other)


@kinds
def test_draws_have_the_law(kind, device):
    """False-alarm probability 1e-6 a row; the mutant's transitions are left out."""
    chain = random_chain(3, device=device, **kind)
    draws = chain.sample(3000, seed=torch.Generator(device).manual_seed(0))
    mutant = SemiMarkov(chain.segment, 0 * chain.edge.clamp(min=-1), start=chain.start, end=chain.end, lengths=chain.lengths)
    wrong, told = mutant.sample(3000, seed=torch.Generator(device).manual_seed(0)), False
    for b, (x, u) in enumerate(definition(chain)):
        counts = (draws[:, b, None] == x).all(-1).sum(0)
        assert int(counts.sum()) == 3000
        if (u > -INF).sum() > 1:
            assert fits(counts[None], u.softmax(0)[None])
            told = told or not fits((wrong[:, b, None] == x).all(-1).sum(0)[None], u.softmax(0)[None])
    assert told or kind.get("K") == 1  # with one label the transitions only count segments


def test_a_single_row_is_a_distribution(double):
    g = torch.Generator().manual_seed(0)
    chain = SemiMarkov(torch.randn(4, 2, 2, generator=g), torch.randn(2, 2, generator=g))
    assert abs(gb.exact.log_z(chain).item()) < 1e-12


def test_segments_of_length_one_are_a_linear_chain(double):
    g = torch.Generator().manual_seed(0)
    node, edge, start = torch.randn(3, 5, 4, generator=g), torch.randn(4, 4, generator=g), torch.randn(4, generator=g)
    chain = gb.exact.LinearChain(node, edge, start=start)
    assert close(SemiMarkov(node[..., None, :], edge, start=start).log_partition(), chain.log_partition())


def test_semirings_agree_with_each_other(double):
    """The mean of an additive value by Expectation is that by the gradient; the best of KBest is Max."""
    chain, value = random_chain(4), random_chain(5)
    scores, values = chain._scores(), value._scores()
    both = tuple(torch.stack((s, v.masked_fill(s == -INF, 0))) for s, v in zip(scores, values))
    log_z, mean = segments(Expectation(), chain, both)
    assert close(log_z, segments(Log(), chain, scores))
    assert close(mean, value.log_partition() - chain.cross_entropy(value))
    assert close(segments(KBest(3), chain, scores)[0], segments(Max(), chain, scores))


def segments(semiring, chain, scores):
    return gb.exact.semi_markov.segment_total(semiring, *scores, chain.lengths)


segment, edge = torch.zeros(2, 4, 3, 2), torch.zeros(2, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: SemiMarkov(segment[0, 0], edge),
            "segment: expected potentials of shape (*batch, T, L, K), none of these 0",
        ),
        (lambda: SemiMarkov(segment, edge[:1]), "edge: expected shape (2, 2), got (1, 2)"),
        (lambda: SemiMarkov(segment, edge, end=edge), "end: expected shape (2,), got (2, 2)"),
        (lambda: SemiMarkov(segment + INF, edge), "segment: expected finite numbers or -inf, which forbids, got inf"),
        (
            lambda: SemiMarkov(segment, edge, lengths=torch.tensor([5, 1])),
            "lengths: expected integers from 0 to 4 of shape (2,)",
        ),
        (lambda: SemiMarkov(segment - INF, edge).mode(), "got log Z = -inf in row 0 of 2"),
        (lambda: SemiMarkov(segment, edge)(torch.zeros(3, 4).long()), "x: expected integers of shape (*, 2, 4), got"),
        (lambda: SemiMarkov(segment, edge)(torch.full((2, 4), 3)), "x: expected integers in [0, 3)"),
        (
            lambda: SemiMarkov(segment, edge).kl(SemiMarkov(segment[:1], edge)),
            "other: expected a SemiMarkov with scores of shape",
        ),
    ],
)
def test_a_mistake_is_told(call, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert words in str(raised.value)
