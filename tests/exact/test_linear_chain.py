"""Linear chains against the definition: a loop over all label sequences of the real positions, under masks of any kind."""

import itertools
import math

import pytest
import torch

import gibbsite as gb
from gibbsite.exact import LinearChain, chain_forward, chain_loops, chain_scaled

from ..statistics import fits

INF = math.inf
MASKS = [
    [1, 1, 1, 1],  # full
    [1, 1, 1, 0],  # right pad
    [0, 1, 1, 1],  # left pad
    [1, 0, 1, 1],  # a hole
    [1, 0, 0, 1],  # a wider one
    [0, 1, 0, 1],  # pad and hole
    [1, 0, 1, 0],
    [0, 0, 1, 0],  # one label
    [0, 0, 0, 0],  # none
]


def random_chain(seed, *, per_position=True, own_ends=True, K=3, masks=MASKS, forbid=0.0, device="cpu", dtype=torch.float64):
    """Random potentials of which a share is forbidden, never label 0: something is left."""
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        x = 1.5 * torch.randn(shape, generator=g, dtype=torch.float64)
        return x.masked_fill((torch.rand(shape, generator=g) < forbid) & (torch.arange(K) > 0), -INF).to(device, dtype)

    mask = torch.tensor(masks, dtype=torch.bool)
    B, T = mask.shape
    node, edge = draw(B, T, K), draw(B, T - 1, K, K) if per_position else draw(K, K)
    start, end = (draw(B, K), draw(B, K)) if own_ends else (draw(K), draw(K))
    node = torch.where(mask.to(device)[..., None], node, math.nan)  # what stands beyond the mask is nobody's business
    return LinearChain(node, edge, start=start, end=end, mask=mask.to(device))


KINDS = [{"per_position": p, "own_ends": e, "forbid": f} for p in (0, 1) for e in (0, 1) for f in (0.0, 0.3)]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture(params=["loops", "products", "logarithms"])
def way(request, monkeypatch):
    """log Z by compiled loops where there are any, by products of matrices where they are sure, and in logarithms alone."""
    if request.param != "loops":
        monkeypatch.setattr(chain_loops, "covers", lambda *_: False)
    if request.param == "logarithms":
        monkeypatch.setattr(chain_scaled, "log_partition", chain_forward.log_partition)


def definition(chain):
    """For each row: all its label sequences, (n, T) with 0 beyond the mask, and their U, one at a time."""
    B, T, K = chain.node.shape
    shape = (B, T - 1, K, K)
    edge, start, end = chain.edge.expand(shape), chain.start.expand(B, K), chain.end.expand(B, K)
    for b in range(B):
        real = chain.mask[b].nonzero()[:, 0].tolist()
        sequences, potentials = [], []
        for labels in itertools.product(range(K), repeat=len(real)):
            u = torch.zeros((), dtype=chain.node.dtype, device=chain.node.device)
            for place, (t, label) in enumerate(zip(real, labels)):
                u = u + chain.node[b, t, label]
                u = u + (start[b, label] if place == 0 else edge[b, t - 1, labels[place - 1], label])
            if real:
                u = u + end[b, labels[-1]]
            x = torch.zeros(T, dtype=torch.int64)
            x[real] = torch.tensor(labels, dtype=torch.int64)
            sequences.append(x)
            potentials.append(u)
        yield torch.stack(sequences).to(chain.node.device), torch.stack(potentials)


def close(x, y, tolerance=1e-10):
    return bool(((x == y) | ((x - y).abs() < tolerance)).all())


@every_kind
@pytest.mark.parametrize("seed", range(3))
def test_log_partition_probabilities_and_marginals(way, kind, seed, device):
    chain = random_chain(seed, device=device, **kind)
    log_z, marginals, pairs = chain.log_partition(), chain.marginals(), chain.edge_marginals()
    for b, (x, u) in enumerate(definition(chain)):
        assert close(log_z[b], u.logsumexp(0))
        rows = x[:, None].expand(-1, len(MASKS), -1)
        assert close(chain.score(rows)[:, b], u) and close(chain(rows)[:, b], u - u.logsumexp(0))
        assert chain(rows)[:, b].exp().sum().item() == pytest.approx(1, abs=1e-12)
        p = (u - u.logsumexp(0)).exp()
        views = chain.space.embed(x, p.dtype) * chain.mask[b, :, None]
        assert close(marginals[b], torch.einsum("n,ntk->tk", p, views))
        real, wanted = chain.mask[b].nonzero()[:, 0].tolist(), torch.zeros_like(pairs[b])
        for left, right in itertools.pairwise(real):
            wanted[right - 1] = torch.einsum("n,ni,nj->ij", p, views[:, left], views[:, right])
        assert close(pairs[b], wanted)


def test_an_edge_that_leaves_is_not_the_one_that_enters():
    """The mutant bridges a hole by the edge behind the position before it."""
    chain = random_chain(0, masks=[[1, 0, 1, 1]])
    edge = chain.edge.clone()
    edge[:, [0, 1]] = edge[:, [1, 0]]
    mutant = LinearChain(chain.node, edge, start=chain.start, end=chain.end, mask=chain.mask)
    ((_, u),) = definition(chain)
    assert close(chain.log_partition(), u.logsumexp(0)) and not close(mutant.log_partition(), u.logsumexp(0), 1e-3)


@every_kind
def test_gradients_are_those_of_the_definition(way, kind, device):
    """The first, and those of the squared norm of the first: under -inf none is NaN."""
    chain = random_chain(5, device=device, **kind)
    inputs = [x.requires_grad_() for x in (chain.node, chain.edge, chain.start, chain.end)]
    wanted = torch.stack([u[u > -INF].logsumexp(0) for _, u in definition(chain)])
    results = []
    for total in (chain.log_partition(), wanted):
        first = torch.autograd.grad((total * torch.arange(1, 10, device=device)).sum(), inputs, create_graph=True)
        second = torch.autograd.grad(sum(x.square().sum() for x in first), inputs)
        results.append((*first, *second))
    for got, want in zip(*results, strict=True):
        assert got.isfinite().all() and close(got, want)


@every_kind
def test_marginals_and_entropy_can_be_differentiated(way, kind, device):
    chain = random_chain(6, device=device, **kind)
    inputs = [x.requires_grad_() for x in (chain.node, chain.edge, chain.start, chain.end)]
    entropies = [(lambda p: -(p * p.log()).sum())(u[u > -INF].softmax(0)) for _, u in definition(chain)]
    assert close(chain.entropy(), torch.stack(entropies))
    for got, want in zip(*(torch.autograd.grad(h.sum(), inputs) for h in (chain.entropy(), torch.stack(entropies)))):
        assert got.isfinite().all() and close(got, want)
    assert chain.marginals().requires_grad and not chain.marginals().isnan().any()
    gradient = torch.autograd.grad(chain.marginals()[..., 0].sum(), chain.node)[0]
    expected = sum((u.softmax(0) @ (x == 0).to(u) * chain.mask[b]).sum() for b, (x, u) in enumerate(definition(chain)))
    assert close(gradient, torch.autograd.grad(expected, chain.node)[0])


@every_kind
def test_the_best_sequences(kind, device):
    chain = random_chain(7, device=device, **kind)
    best = chain.n_best(30)
    for b, (x, u) in enumerate(definition(chain)):
        order = u.argsort(descending=True)[:30]
        log_p = (u - u.logsumexp(0))[order]
        found = int((log_p > -INF).sum())
        assert close(best.log_prob[:found, b], log_p[:found]) and bool((best.log_prob[found:, b] == -INF).all())
        assert torch.equal(best.labels[:found, b], x[order[:found]])
        assert torch.equal(chain.mode()[b], x[order[0]])


@every_kind
def test_entropies_between_chains(way, kind, device):
    p, q = (
        random_chain(8, device=device, **{**kind, "forbid": 0.0}),
        random_chain(9, device=device, **{**kind, "forbid": 0.0}),
    )
    for b, ((_, u), (_, v)) in enumerate(zip(definition(p), definition(q))):
        log_p, log_q = u.log_softmax(0), v.log_softmax(0)
        assert close(p.cross_entropy(q)[b], -(log_p.exp() * log_q).sum())
        assert close(p.kl(q)[b], (log_p.exp() * (log_p - log_q)).sum())
    assert close(p.kl(p), torch.zeros(len(MASKS), device=device, dtype=p.node.dtype))


def test_a_law_that_another_forbids_is_infinitely_far():
    node = torch.zeros(3, 2)
    p, q = LinearChain(node, torch.zeros(2, 2)), LinearChain(node, torch.tensor([[0.0, 0.0], [-INF, 0.0]]))
    assert p.kl(q) == INF and q.kl(p).item() == pytest.approx(math.log(8) - math.log(4), abs=1e-6)


def sure(u):
    """Whether there is one sequence only, so that there is no law to test."""
    return int((u > -INF).sum()) == 1


@every_kind
def test_draws_have_the_law(kind, device):
    """False-alarm probability 1e-6 a row; the mutant's end potentials are left out."""
    chain = random_chain(10, device=device, **kind)
    draws = chain.sample(4000, seed=torch.Generator(device).manual_seed(0))
    assert bool((draws[:, ~chain.mask] == 0).all())
    for b, (x, u) in enumerate(definition(chain)):
        counts = (draws[:, b, None] == x).all(-1).sum(0)
        assert int(counts.sum()) == 4000 and (sure(u) or fits(counts[None], u.softmax(0)[None]))
    start = chain.start.expand(len(MASKS), 3)
    mutant = LinearChain(chain.node, chain.edge, start=start, mask=chain.mask).sample(4000, seed=0)
    laws = [((mutant[:, b, None] == x).all(-1).sum(0), u) for b, (x, u) in enumerate(definition(chain))]
    assert not all(sure(u) or fits(counts[None], u.softmax(0)[None]) for counts, u in laws)


@every_kind
def test_each_position_on_its_own(kind, device):
    chain = random_chain(11, device=device, **kind)
    decoded = chain.posterior_decode()
    assert torch.equal(decoded, chain.marginals().argmax(-1))
    confidence, p = chain.confidence(decoded), chain.marginals()
    assert close(confidence, p.amax(-1)) and bool((confidence[~chain.mask] == 0).all())
    assert close(chain.confidence(decoded.expand(2, -1, -1))[1], confidence)


@every_kind
def test_partial_labels(kind, device):
    """log p(all labels are allowed) by the definition, and the law that is left."""
    chain = random_chain(12, device=device, **kind)
    allowed = torch.rand(chain.node.shape, generator=torch.Generator().manual_seed(0)).to(device) < 0.6
    allowed[..., 0] = True
    within, log_p = chain.constrain(allowed), chain.log_prob_of(allowed)
    for b, (x, u) in enumerate(definition(chain)):
        kept = (allowed[b].gather(-1, x.T).T | ~chain.mask[b]).all(-1)
        assert close(log_p[b], u[kept].logsumexp(0) - u.logsumexp(0))
        assert close(within.log_partition()[b], u[kept].logsumexp(0))


def test_one_label_allowed_everywhere_is_its_probability(device):
    chain = random_chain(13, device=device)
    y = chain.sample(1, seed=0)[0]
    assert close(chain.log_prob_of(chain.space.embed(y) == 1), chain(y))


def test_a_single_chain_is_a_distribution(double):
    """Without a batch: sums to 1 by `gb.exact.log_z`, and kernels take it as a model."""
    g = torch.Generator().manual_seed(0)
    chain = LinearChain(torch.randn(4, 3, generator=g), torch.randn(3, 3, generator=g))
    assert abs(gb.exact.log_z(chain).item()) < 1e-12
    p, K = gb.exact.probabilities(chain), gb.exact.transition_matrix(gb.sample.Gibbs(), chain)
    assert (p @ K - p).abs().sum() < 1e-10
    assert chain.sample(5, seed=0).shape == (5, 4) and chain.mode().shape == (4,)


@every_kind
def test_the_float_view_has_the_same_value_and_a_gradient(kind, device):
    """U(z) is multilinear: its gradient is U with label k at t less U without t, where both are possible."""
    chain = random_chain(14, device=device, **kind)
    y = chain.sample(3, seed=torch.Generator(device).manual_seed(0))
    z = chain.space.embed(y, torch.float64).requires_grad_()
    assert close(chain(z), chain(y))
    (gradient,) = torch.autograd.grad(chain.score(z).sum(), z)
    for t, k in itertools.product(range(4), range(3)):
        changed = y.clone()
        changed[..., t] = k
        value = chain.score(changed)
        first_order = chain.score(y) + gradient[..., t, k] - (gradient * z.detach())[..., t, :].sum(-1)
        forbidden = value == -INF
        assert close(value[~forbidden], first_order[~forbidden]) and bool((first_order[forbidden] < -1e200).all())


def test_autocast_changes_nothing(device):
    chain = random_chain(15, device=device, dtype=torch.float32)
    y = chain.sample(3, seed=0)

    def answers():
        return chain(y), chain(chain.space.embed(y)), chain.marginals(), chain.entropy(), chain.n_best(3).log_prob

    wanted = answers()
    with torch.autocast(device.type, torch.bfloat16):
        assert all(torch.equal(one, other) for one, other in zip(answers(), wanted, strict=True))


def test_gradient_informed_kernels_take_a_chain(double):
    g = torch.Generator().manual_seed(0)
    edge = torch.randn(3, 3, generator=g).masked_fill(torch.eye(3) > 0, -INF)
    chain = LinearChain(torch.randn(3, 3, generator=g), edge)
    p, K = gb.exact.probabilities(chain), gb.exact.transition_matrix(gb.sample.MH(gb.sample.Informed()), chain)
    assert (p @ K - p).abs().sum() < 1e-10


def test_where_pytorch_crf_is_right(double):
    """Full rows and right pads; with holes in a mask its values are wrong."""
    peer = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")
    g = torch.Generator().manual_seed(0)
    weights = [torch.randn(shape, generator=g) for shape in ((5,), (5, 5), (5,))]
    with torch.random.fork_rng():
        crf = peer.CRF(5, batch_first=True)
    crf.start_transitions.data, crf.transitions.data, crf.end_transitions.data = weights
    node, y = torch.randn(4, 9, 5, generator=g), torch.randint(5, (4, 9), generator=g)
    mask = torch.arange(9) < torch.tensor([[9], [1], [4], [8]])
    chain = LinearChain(node, weights[1], start=weights[0], end=weights[2], mask=mask)
    assert close(crf(node, y, mask=mask, reduction="none"), chain(y))
    assert crf.decode(node, mask=mask) == [row[real].tolist() for row, real in zip(chain.mode(), mask)]


@pytest.mark.parametrize("T", [1, 2])
def test_short_chains(T, double):
    g = torch.Generator().manual_seed(T)
    edges = torch.randn(T - 1, 3, 3, generator=g)
    chain = LinearChain(torch.randn(2, T, 3, generator=g), edges, start=torch.randn(3, generator=g))
    every = gb.exact.states(chain.space)[:, None].expand(-1, 2, -1)
    assert close(chain(every).logsumexp(0), torch.zeros(2))
    assert chain.edge_marginals().shape == (2, T - 1, 3, 3)
    assert close(chain.entropy(), -(chain(every).exp() * chain(every)).sum(0))


def test_batches_of_several_dimensions(double):
    g = torch.Generator().manual_seed(0)
    node, edge = torch.randn(2, 5, 4, 3, generator=g), torch.randn(5, 3, 3, 3, generator=g)
    mask = torch.rand(2, 5, 4, generator=g) < 0.6
    chain = LinearChain(node, edge, mask=mask)
    row = LinearChain(node[1, 3], edge[3], mask=mask[1, 3])
    y = chain.sample(7, seed=0)
    assert y.shape == (7, 2, 5, 4) and chain(y).shape == (7, 2, 5) and chain.n_best(2).labels.shape == (2, 2, 5, 4)
    assert close(chain(y)[:, 1, 3], row(y[:, 1, 3])) and close(chain.marginals()[1, 3], row.marginals())
    assert close(chain.edge_marginals()[1, 3], row.edge_marginals()) and close(chain.entropy()[1, 3], row.entropy())


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(half, device):
    """To what rounding to float32 allows; the mutant accumulates in the half type itself, and misses by far more."""
    chain = random_chain(3, masks=[[1] * 300], own_ends=False, dtype=half, device=device)
    inputs = [x.requires_grad_() for x in (chain.node, chain.edge, chain.start, chain.end)]
    exact = LinearChain(*(x.detach().double() for x in inputs[:2]), start=chain.start.double(), end=chain.end.double())
    total = chain.log_partition()
    assert total.dtype == torch.float32
    bound = 300 * 8 * torch.finfo(torch.float32).eps  # a few roundings a position, of numbers below 8
    assert abs(total.item() - exact.log_partition().item()) < bound
    assert abs(total.to(half).item() - exact.log_partition().item()) > bound
    (gradient,) = torch.autograd.grad(total.sum(), chain.node)
    assert gradient.dtype == half and close(gradient.double(), exact.marginals(), float(torch.finfo(half).eps))


def test_marginals_of_long_sequences_keep_their_digits(way, device):
    """Levels are taken out of alpha: log Z is thousands, the marginals are exact to a few roundings of numbers near 1."""
    g = torch.Generator().manual_seed(0)
    node, edge = torch.randn(4, 2000, 5, generator=g) + 5, torch.randn(5, 5, generator=g)
    single, double = LinearChain(node.to(device), edge.to(device)), LinearChain(node.double(), edge.double())
    assert (single.marginals().double().cpu() - double.marginals()).abs().max() < 64 * torch.finfo(torch.float32).eps
    ratio = single.log_partition().double().cpu() / double.log_partition()
    assert (ratio - 1).abs().max() < 4 * torch.finfo(torch.float32).eps


def test_close_sequences_are_told_apart_at_the_end_of_a_long_chain(device):
    """By 1e-5, where the score's own last digit in single precision is 1e-3."""
    node = torch.tensor([7.3, 6.3]).repeat(2000, 1)
    node[-1, 1] = 7.3 + 1e-5
    chain = LinearChain(node.to(device), torch.zeros(2, 2, device=device))
    for labels in (chain.mode(), *chain.n_best(2).labels[:1]):
        assert labels[-1] == 1 and not labels[:-1].any()


def test_where_gradients_are_off(way, device):
    chain = random_chain(0, device=device, forbid=0.3)
    with torch.no_grad():
        quiet = chain.marginals(), chain.entropy()
    with torch.inference_mode():
        quieter = random_chain(0, device=device, forbid=0.3)
        results = quieter.marginals(), quieter.entropy()
    for x, y in zip(quiet, results):
        assert close(x, y) and not x.requires_grad


def test_potentials_that_are_learned_are_parameters():
    node, edge = torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(2, 2))
    chain = LinearChain(node, edge, start=torch.zeros(2))
    assert {name for name, _ in chain.named_parameters()} == {"node", "edge"}
    (-chain(torch.tensor([0, 1, 1]))).backward()
    assert close(node.grad.sum(-1), torch.zeros(3)) and edge.grad.abs().sum() > 0
    assert chain.double().log_partition().dtype == torch.float64


node, edge = torch.zeros(2, 3, 4), torch.zeros(4, 4)
mask = torch.ones(2, 3, dtype=torch.bool)
forbidden = LinearChain(node, torch.full((4, 4), -INF))
plain = LinearChain(node, edge, mask=mask)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LinearChain(node.long(), edge), "node: expected floats, log-potentials, got torch.int64"),
        (
            lambda: LinearChain(node[0, 0], edge),
            "node: expected potentials of shape (*batch, T, K) with at least 1 position",
        ),
        (lambda: LinearChain(node[..., :1], edge[:1, :1]), "2 labels, got shape (2, 3, 1)"),
        (
            lambda: LinearChain(node, edge[:3]),
            "edge: expected shape (4, 4) or, an edge a position, (2, 2, 4, 4), got (3, 4)",
        ),
        (lambda: LinearChain(node, edge, start=edge[0, :3]), "start: expected shape (4,) or (2, 4), got (3,)"),
        (lambda: LinearChain(node, edge, end=torch.zeros(3, 4)), "end: expected shape (4,) or (2, 4), got (3, 4)"),
        (lambda: LinearChain(node, edge, mask=mask.long()), "mask: expected booleans of shape (2, 3), True where"),
        (
            lambda: LinearChain(node, edge, mask=mask[0]),
            "expected booleans of shape (2, 3), True where there is a label, got bool",
        ),
        (
            lambda: LinearChain(node + INF, edge),
            "node: expected finite numbers or -inf, which forbids, got inf at [0, 0, 0]",
        ),
        (
            lambda: LinearChain(node, edge * math.nan),
            "edge: expected finite numbers or -inf, which forbids, got nan at [0, 0]",
        ),
        (
            lambda: forbidden.log_partition(),
            "got log Z = -inf in row 0 of 2: -inf means that each one meets a potential",
        ),
        (lambda: forbidden.mode(), "got log Z = -inf in row 0 of 2"),
        (lambda: forbidden.sample(1, seed=0), "got log Z = -inf in row 0 of 2"),
        (lambda: plain(torch.full((2, 3), 4)), "x: expected integers in [0, 4) of shape (*, 3), got 4 at [0, 0]"),
        (lambda: plain(torch.zeros(3, dtype=torch.long)), "x: expected integers of shape (*, 2, 3), got torch.int64 (3,)"),
        (
            lambda: plain(torch.zeros(2, 3)),
            "x: expected the one-hot view of integers in [0, 4) of shape (*, 3), got float32",
        ),
        (lambda: plain(torch.zeros(3, 3, 4)), "x: expected the one-hot view of shape (*, 2, 3, 4), got (3, 3, 4)"),
        (lambda: plain.n_best(0), "k: expected a positive integer, got 0"),
        (
            lambda: plain.kl(LinearChain(node[:1], edge)),
            "other: expected a LinearChain with the same batch, positions and mask",
        ),
        (lambda: plain.kl(LinearChain(torch.zeros(2, 3, 2), torch.zeros(2, 2))), "other: expected a chain on Categorical"),
        (lambda: plain.constrain(mask), "allowed: expected booleans of shape (2, 3, 4), got torch.bool (2, 3)"),
        (
            lambda: plain.constrain(node > 0),
            "allowed: expected at least one label at each position of the mask, got none at",
        ),
    ],
)
def test_a_mistake_is_told(call, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert words in str(raised.value)
