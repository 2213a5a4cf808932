"""Residual models of text: the law of joint sampling and the bounds of perplexity and steps, beside enumeration."""

import math
from itertools import pairwise, product

import pytest
import torch

import gibbsite as gb
from gibbsite.apps.text.choice import Best, Resampled
from gibbsite.apps.text.residual_bounds import log_z_after
from tests.statistics import fits

T, D = gb.text, gb.distributions
SPACE = gb.Tokens(length=2, vocabulary=3, eos=0)
STATES = gb.exact.states(SPACE)


def model(space=SPACE, seed=0, strength=2.0):
    """A base whose tokens hang on each other, in double precision, and a potential that the tokens do not share out."""
    table = torch.randn((space.vocabulary + 1, space.vocabulary), generator=torch.Generator().manual_seed(seed))
    base = D.Autoregressive(D.NGramTable(space.vocabulary, 1, table.double()), space)
    return gb.Tilt(
        base, lambda x: strength * torch.sin(x.double() @ torch.arange(1.0, space.length + 1, device=x.device).double())
    )


def law(tilt, n):
    """The law of one of n candidates kept by exp V, by going over all sets of n candidates."""
    log_q, v = gb.exact.potentials(tilt.base), gb.exact.potentials(tilt.potential)
    found = torch.zeros(len(v), dtype=torch.float64)
    for places in product(range(len(v)), repeat=n):
        places = torch.tensor(places)
        found.index_add_(0, places, log_q[places].sum().exp() * v[places].softmax(0))
    return found


def place(x):
    return (x.cpu()[:, None] == STATES).all(-1).long().argmax(1)


def drawn(tilt, n):
    """The law of `residual_sample`, read off its own code: candidates one at a time, every outcome of each decision."""
    found = torch.zeros(len(STATES), dtype=torch.float64)

    def step(rows, script):
        return T.residual_sample(tilt, len(rows), n=n, seed=script, batch=len(rows)).x

    for x, _, log_p in gb.exact.outcomes(step, 1):
        found.index_add_(0, place(x), log_p.exp())
    return found


@torch.no_grad()
def test_the_law_of_n_candidates_is_that_of_the_enumeration(monkeypatch):
    """The mutant keeps each candidate as often as any other, whatever its weight."""
    tilt = model()
    for n in (1, 2, 3):
        assert (drawn(tilt, n) - law(tilt, n)).abs().sum() < 1e-10, n
    assert (law(tilt, 1) - gb.exact.probabilities(tilt.base)).abs().sum() < 1e-10
    distance = [float((law(tilt, n) - gb.exact.probabilities(tilt)).abs().sum()) for n in (1, 2, 3)]
    assert distance[0] > distance[1] > distance[2] > 1e-3
    monkeypatch.setattr(Resampled, "takes", lambda self, v, source: gb.random.bernoulli(torch.zeros(len(v)), source))
    assert (drawn(tilt, 2) - law(tilt, 2)).abs().sum() > 1e-2


@torch.no_grad()
def test_blocks_do_not_change_the_law(device):
    """Blocks of 3 and 1, of 4 at once, and after one another: chi-square with a false alarm of 1e-6; the mutant is n = 1."""
    tilt, draws = model().to(device), 4000
    for batch in (3, 4 * draws, draws // 2):
        found = T.residual_sample(tilt, draws if batch > 3 else 400, n=4, seed=0, batch=batch)
        counts = torch.bincount(place(found.x), minlength=len(STATES))
        assert found.drawn == 4 * len(found.x) and fits(counts[None], law(tilt.cpu(), 4)[None]), batch
        tilt.to(device)
    assert not fits(counts[None], law(tilt.cpu(), 1)[None])


@torch.no_grad()
def test_a_truncated_base_and_a_prefix(device):
    space = gb.Tokens(4, 3, 0)
    whole = model(space).to(device)
    cut = gb.Tilt(whole.base.truncated(top_k=2), whole.potential)
    found = T.residual_sample(cut, 50, n=20, seed=0, prefix=[2, 1])
    assert found.x[:, :2].tolist() == [[2, 1]] * 50 and bool((cut.base(found.x) > -math.inf).all())
    assert bool((found.ess > 1).all()) and bool((found.ess < 20).all())
    again = T.residual_sample(cut, 50, n=20, seed=0, prefix=torch.tensor([2, 1]))
    assert torch.equal(found.x, again.x)


def test_the_effective_size_is_that_of_all_candidates():
    source, v = torch.Generator().manual_seed(0), torch.randn(3, 12, generator=torch.Generator().manual_seed(1))
    x = torch.arange(12).expand(3, 12)[..., None]
    for kept in (Resampled(), Best()):
        for block in (slice(0, 5), slice(5, 6), slice(6, 12)):
            kept.add(x[:, block], v[:, block], source)
        assert torch.allclose(kept.ess, torch.tensor([gb.estimate.weights.ess(row) for row in v]).double())
    assert kept.x[:, 0].tolist() == v.argmax(1).tolist()


@torch.no_grad()
def test_independence_sampling_is_the_chain_of_the_same_proposals(device):
    """One step leaves q exp V / Z where it is: exactly, off the kernel's own code."""
    tilt = model()
    kernel, p = gb.sample.MH(gb.sample.Independent(tilt.base)), gb.exact.probabilities(tilt)

    def step(rows, script):
        return kernel.step(tilt, kernel.init(tilt, STATES[rows]), script)[0].x

    after = torch.zeros_like(p)
    for x, origin, log_p in gb.exact.outcomes(step, len(STATES)):
        after.index_add_(0, place(x), p[origin] * log_p.exp())
    assert (after - p).abs().sum() < 1e-10 and (gb.exact.probabilities(tilt.base) - p).abs().sum() > 0.1


@torch.no_grad()
def test_impossible_candidates_are_never_kept():
    base = model().base
    tilt = gb.Tilt(base, lambda x: torch.where(x[..., 0] == 1, 0.0, -math.inf))
    assert bool((T.residual_sample(tilt, 100, n=100, seed=0, batch=64).x[:, 0] == 1).all())
    with pytest.raises(ValueError, match="V is -inf at each of n=3 candidates"):
        T.residual_sample(gb.Tilt(base, lambda x: x[..., 0] * -math.inf - math.inf), 1, n=3, seed=0)


@torch.no_grad()
def test_many_candidates_are_held_a_block_at_a_time():
    """Of 10,000 candidates the base and V never see more than a block together, whatever is asked of them."""
    tilt, rows = model(gb.Tokens(4, 3, 0)), []
    tilt.base.conditional.register_forward_pre_hook(lambda module, args: rows.append(len(args[0])))
    tilt.potential.register_forward_pre_hook(lambda module, args: rows.append(len(args[0])))
    assert T.residual_sample(tilt, 2, n=5000, seed=0, batch=500).drawn == 10_000
    T.residual_perplexity(tilt, [[1, 2, 1, 2]], 10_000, seed=0, batch=500)
    assert max(rows) == 500 and rows.count(500) >= 40


def exact_steps(tilt, x):
    """log p(x_t | x_<t) by enumerating all sequences that begin with each prefix."""
    u = gb.exact.potentials(tilt).double()
    every = gb.exact.states(tilt.space)
    total = [u[(every[:, :t] == x[:t]).all(1)].logsumexp(0) for t in range(len(x) + 1)]
    return torch.stack([after - before for before, after in pairwise(total)])


@torch.no_grad()
@pytest.mark.parametrize("x", [[1, 2, 1, 2], [2, 1, 0, 0]], ids=["full", "ended"])
def test_steps_lie_between_their_bounds_and_the_last_place_is_exact(x, device):
    """The ends are means of 1000 draws each; their middles' errors, 5 of the delta method's (1e-6), are let outside."""
    tilt, x, n = model(gb.Tokens(4, 3, 0), strength=1.0).to(device), torch.tensor(x), 1000
    steps = T.residual_steps(tilt, x, n, seed=0)
    exact = exact_steps(tilt.cpu(), x)[: len(steps.lower)]
    slack = 5 * 2**0.5 * (1 / steps.ess - 1 / n).clamp(min=0).sqrt().amax().cpu()
    lower, upper = steps.lower.cpu(), steps.upper.cpu()
    assert (
        bool((lower - slack < exact).all()) and bool((exact < upper + slack).all()) and bool((lower <= upper + 1e-12).all())
    )
    if len(lower) == 4:
        assert abs(float(lower[3] - exact[3])) < 1e-10 and abs(float(upper[3] - exact[3])) < 1e-10 and steps.ess[3] == n
        assert abs(float(tilt.base.after(x[:3])(x[3:]) - exact[3])) > 1e-2  # the mutant: without V


@torch.no_grad()
def test_a_step_holds_every_pair_of_values_within_the_two_bounds(device):
    """The corners of the rectangle of both log Z lie in the step's interval; the mutant takes the same end of both."""
    tilt, x = model(gb.Tokens(4, 3, 0)).to(device), torch.tensor([1, 2, 1, 2], device=device)
    source = gb.random.generator(0, device)
    found = [log_z_after(tilt, x[:t], 20, source) for t in range(5)]
    steps = T.residual_steps(tilt, x, 20, seed=0)
    for t, (before, after) in enumerate(pairwise(found)):
        log_q = float(tilt.base.logits(x[None])[0, t].log_softmax(-1)[x[t]])
        corners = [log_q + a - b for a in (after.lower, after.upper) for b in (before.lower, before.upper)]
        assert min(corners) == pytest.approx(float(steps.lower[t])) and max(corners) == pytest.approx(float(steps.upper[t]))
        if t < 2:
            assert abs(log_q + after.lower - before.lower - float(steps.lower[t])) > 1e-3


@torch.no_grad()
def test_log_z_after_a_prefix(device):
    """Sampled, enumerated where one token is free, and V itself where none is."""
    tilt = model(gb.Tokens(4, 3, 0), strength=1.0)
    every, source = gb.exact.states(tilt.space), torch.Generator().manual_seed(0)
    for prefix in ([], [1], [1, 2], [1, 2, 2], [1, 2, 2, 1], [1, 0], [1, 0, 0, 0]):
        t, begun = len(prefix), torch.tensor(prefix, dtype=torch.long)
        rows = every[(every[:, :t] == begun).all(1)]
        exact = float((tilt(rows) - tilt.base(rows).logsumexp(0)).logsumexp(0))
        found = log_z_after(tilt, begun, 1000, source, 256)
        slack = 1e-10 + 5 * math.sqrt(max(0.0, 1 / found.ess - 1 / 1000))
        assert found.lower - slack < exact < found.upper + slack, prefix
        assert (found.lower == found.upper) == (t >= 3 or 0 in prefix), prefix


@torch.no_grad()
@pytest.mark.parametrize("given", [0, 1])
def test_perplexity_lies_in_its_interval(given, device):
    """A false alarm of 1e-6 a prefix, as above; the mutant leaves log Z out."""
    tilt, n = model(gb.Tokens(4, 3, 0), strength=1.0).to(device), 1000
    x = torch.tensor([[1, 2, 1, 2], [2, 1, 0, 0], [1, 1, 1, 0]])
    found = T.residual_perplexity(tilt, x, n, seed=0, given=given)
    steps = [exact_steps(tilt.cpu(), row)[given : int(tilt.space.lengths(row)) + 1] for row in x]
    tokens = sum(map(len, steps))
    exact = math.exp(-sum(float(s.sum()) for s in steps) / tokens)
    slack = math.exp(5 * math.sqrt(1 / found.ess - 1 / n) * len(x) / tokens)
    assert found.tokens == tokens and found.lower / slack < exact < found.upper * slack and found.n == n
    assert f"from n = 1,000 with ESS {found.ess:,.1f}" in str(found)
    if not given:
        left_out = math.exp(-float(tilt(x).sum()) / tokens)
        assert not found.lower / slack < left_out < found.upper * slack


@torch.no_grad()
def test_a_potential_of_nothing_gives_the_bases_perplexity():
    tilt = gb.Tilt(model().base, lambda x: x[..., 0].double() * 0)
    x = torch.tensor([[1, 2], [2, 0]])
    found = T.residual_perplexity(tilt, x, 10, seed=0)
    assert found.lower == pytest.approx(D.perplexity(tilt.base, x)) == found.upper and found.ess == pytest.approx(10)


def test_mistakes_are_told():
    tilt = model()
    with pytest.raises(TypeError, match=r"tilt.base: expected a gibbsite\.distributions\.Autoregressive, got Uniform"):
        T.residual_sample(gb.Tilt(gb.Binary(3).uniform(), lambda x: x.sum(-1)), n=2, seed=0)
    with pytest.raises(TypeError, match=r"tilt: expected a gibbsite\.\w+\.?Tilt|tilt: expected a gibbsite\.Tilt"):
        T.residual_perplexity(tilt.base, STATES, 10, seed=0)
    with pytest.raises(ValueError, match="n: expected a positive integer, got 0"):
        T.residual_sample(tilt, n=0, seed=0)
    with pytest.raises(ValueError, match="n: expected an integer of at least 2, got 1"):
        T.residual_steps(tilt, STATES[0], 1, seed=0)
    with pytest.raises(ValueError, match=r"U\(x\): expected finite values, got nan"):
        T.residual_sample(gb.Tilt(tilt.base, lambda x: x[..., 0] * math.nan), n=2, seed=0)
    with pytest.raises(ValueError, match=r"U\(x\): expected one number a state"):
        T.residual_sample(gb.Tilt(tilt.base, lambda x: x.double()), n=2, seed=0)
    with pytest.raises(ValueError, match="x: expected sequences, got none"):
        T.residual_perplexity(tilt, STATES[:0], 10, seed=0)
    with pytest.raises(ValueError, match="x: expected one sequence of length 2, got 4 tokens"):
        T.residual_steps(tilt, STATES[:2], 10, seed=0)
    with pytest.raises(ValueError, match="prefix: expected tokens other than eos"):
        T.residual_perplexity(tilt, [[0, 0]], 10, seed=0, given=1)
