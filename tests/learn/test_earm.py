"""E-ARM: its gradient is that of sum_k KL(data || p_k) by enumeration, V = 3 and K = 3, and what it learns."""

import pytest
import torch

import gibbsite as gb
from gibbsite.learn.earm import effective_share, log_mean_weight, steps

from ..statistics import chi_square_bound
from .asymptotics import gradient, gradient_gap, hessian

L, D = gb.learn, gb.distributions
SPACE = gb.Tokens(3, 3, 0)


def source(seed=0, spread=1.0):
    """A trigram model whose conditionals are a quarter, a quarter and a half: 64 sequences are a deck of exactly its law."""
    g = torch.Generator().manual_seed(seed)
    halves = torch.randint(3, (4, 4), generator=g)
    constants = spread * torch.randn(4, 4, 1, generator=g)  # free: log q does not see them, the weights do
    logits = torch.tensor([1.0, 1.0, 1.0]).repeat(4, 4, 1).scatter(-1, halves[..., None], 2.0).log() + constants
    return D.Autoregressive(D.NGramTable(3, 2, logits), SPACE)


def deck(q):
    every = gb.exact.states(SPACE)
    counts = (64 * gb.exact.probabilities(q)).round().long()
    assert torch.allclose(counts / 64, gb.exact.probabilities(q), atol=1e-12)
    return every.repeat_interleave(counts, 0)


def definition(model, counts, recent=3, weighted=True):
    """-sum_k E_data log p_k(x_k, x_<k) with Z_k summed over every running context."""
    every = gb.exact.states(SPACE)
    logits, running, p = model.logits(every), model.running(every), counts / counts.sum()
    steps = logits.log_softmax(-1).gather(-1, every[..., None])[..., 0]
    loss = torch.zeros(())
    for k in range(3):
        old, new = steps[:, : max(0, k - recent)].sum(1).detach(), steps[:, max(0, k - recent) : k].sum(1)
        contexts = {}
        for row in range(len(every)):
            if running[row, k]:
                contexts.setdefault(tuple(every[row, :k].tolist()), row)
        at = torch.tensor(list(contexts.values()))
        total = logits[at, k].logsumexp(-1)
        if not weighted:  # a mutant: all contexts weigh as q says
            total = total - total.detach()
        log_z = (old[at] + new[at] + total).logsumexp(0)
        token = logits[:, k].gather(-1, every[:, k, None])[:, 0]
        loss = loss - (p * running[:, k] * (old + new + token - log_z)).sum()
    return loss


COUNTS = torch.tensor([5, 2, 0, 1, 4, 1, 3, 2, 6, 0, 1, 2, 3, 1, 4])


@pytest.mark.parametrize("recent", [0, 1, 2, 3])
def test_gradient_of_the_definition(recent, double):
    q = source()
    every = gb.exact.states(SPACE)
    assert len(every) == len(COUNTS)  # sequences that end early among them
    parameters = list(q.parameters())
    loss = L.earm(q, every.repeat_interleave(COUNTS, 0), deck(q), recent=recent)
    assert gradient_gap(loss, definition(q, COUNTS, recent), parameters) < 1e-10
    assert gradient_gap(loss, definition(q, COUNTS, recent, weighted=False), parameters) > 1e-2
    if recent < 2:
        assert gradient_gap(loss, definition(q, COUNTS, recent + 1), parameters) > 1e-2


def test_the_denominator_is_the_mean_weight_of_running_contexts(double):
    q = source()
    every, p = gb.exact.states(SPACE), gb.exact.probabilities(q)
    told = steps(q, every, 2)
    exact = (p[:, None] * told.running * told.total.exp()).sum(0).log().detach()
    assert torch.allclose(log_mean_weight(steps(q, deck(q), 2)), exact, atol=1e-12)
    given = L.earm(q, deck(q)[:5], deck(q), log_denominator=exact)
    assert torch.equal(given, L.earm(q, deck(q)[:5], deck(q), log_denominator=exact.clone()))
    own, off = L.earm(q, deck(q)[:5], deck(q)), L.earm(q, deck(q)[:5], deck(q), log_denominator=exact + 0.5)
    parameters = list(q.parameters())
    assert gradient_gap(given, own, parameters) < 1e-10 and gradient_gap(off, own, parameters) > 1e-2


def test_the_moving_average_goes_on_from_its_buffers(double):
    """D <- decay D + (1 - decay) batch, from the first batch after the start; a restored objective goes on the same."""
    q, generator = source(), torch.Generator().manual_seed(0)
    objective = L.EARM(q, start=1, decay=0.75)
    data = q.sample(8, seed=1)
    report = objective(data, seed=generator)
    assert "effective_share" not in report.metrics and float(objective.log_denominator.max()) == -torch.inf
    assert torch.allclose(report.loss, -q(data).mean(), atol=1e-12)
    batches = []
    for _ in range(3):
        batches.append(log_mean_weight(steps(q, q.sample(8, seed=copied(generator)), 2)).exp())
        objective(data, seed=generator)
    expected = 0.75 * (0.75 * batches[0] + 0.25 * batches[1]) + 0.25 * batches[2]
    assert torch.allclose(objective.log_denominator.exp(), expected, atol=1e-12)
    other = L.EARM(source(), start=1, decay=0.75)
    other.load_state_dict(objective.state_dict())
    losses = [o(data, seed=torch.Generator().manual_seed(7)).loss for o in (objective, other)]
    assert torch.equal(*losses)


def test_the_effective_share_is_that_of_draws_that_still_run(double):
    """At each place (sum w)^2 / sum w^2 of the weights, 0 for a draw that has ended; the mutant lets those weigh."""
    told = steps(source(), SPACE.check(torch.tensor([[1, 2, 1], [0, 0, 0], [2, 0, 0], [1, 1, 2]])), 2)
    running = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]).double()
    assert torch.equal(told.running, running)
    weight = running * told.total.detach().exp()
    by_place = weight.sum(0) ** 2 / (weight**2).sum(0)
    assert float(effective_share(told)) == pytest.approx(float(by_place.min()) / 4, rel=1e-12)
    assert float(effective_share(told)) < 0.5 < float(effective_share(told._replace(running=torch.ones(4, 3))))
    ended = steps(source(), torch.zeros(5, 3).long(), 2)  # nothing is drawn after the first place
    assert float(effective_share(ended)) == pytest.approx(1.0)


def test_it_lives_where_its_model_does(double, device):
    """Made of a model that has been moved, it needs no moving itself; `fit` checks all its data before the first step."""
    q = source().to(device)
    objective = L.EARM(q)
    assert objective.log_denominator.device.type == device.type
    report = objective(q.sample(8, seed=torch.Generator(device).manual_seed(0)), seed=torch.Generator(device).manual_seed(1))
    assert bool(report.loss.isfinite()) and objective.space == SPACE
    optimiser, bad = torch.optim.SGD(q.parameters(), lr=0.1), torch.ones(9, 3).long()
    bad[7] = torch.tensor([0, 1, 0])  # a token after the end
    with pytest.raises(ValueError, match="expected only eos=0 after the first eos, got 1"):
        L.fit(objective, bad, optimiser=optimiser, steps=1, batch=1, seed=0)
    assert int(objective.step) == 1  # the one above


def copied(generator):
    return torch.Generator().set_state(generator.get_state())


def test_with_few_draws_the_moving_average_has_less_bias(double):
    """2 draws a step: the mean gradient over 1,200 steps against the exact one, in the norm; half the bias at the least.

    The gap of a self-normalised ratio of two draws is many standard errors wide; the moving average's is not.
    """
    q, every = source(spread=1.5), gb.exact.states(SPACE)
    data, parameters = every.repeat_interleave(COUNTS, 0)[::3], list(q.parameters())
    counts = torch.zeros(len(every))
    for row in data:
        counts[(every == row).all(1)] += 1
    exact = gradient(definition(q, counts, 2), parameters)
    told, bias = steps(q, data, 2), {}
    from gibbsite.learn.earm import earm_of

    for decay in (0.0, 0.98):
        objective, generator = L.EARM(q, decay=decay), torch.Generator().manual_seed(0)
        total, n = torch.zeros_like(exact), 1200
        for step in range(n + 200):
            drawn = steps(q, q.sample(2, seed=generator), 2)
            objective._average(log_mean_weight(drawn), first=step == 0)
            if step >= 200:
                total += gradient(earm_of(told, drawn, objective.log_denominator), parameters) / n
        bias[decay] = float((total - exact).norm())
    assert bias[0.98] < 0.5 * bias[0.0], bias


def fisher(q, every, p):
    """The curvature of KL(p || q) at q = p."""
    parameters = list(q.parameters())
    return hessian(-(p.detach() * q(every)).sum(), parameters)


def test_learns_the_source(double):
    """Averaged iterates on fresh draws of the source: KL(source || q) is below the bound of its law at 1e-6.

    Their error has the covariance H^-1 V H^-1 / steps (Polyak and Juditsky, 1992), H the curvature of cross-entropy plus the
    definition by enumeration and V that of the gradients of 200 batches at the truth; KL is half its square in the Fisher
    metric, below its largest weight times a chi-square. The mutant weighs no contexts and turns the negative phase around.
    """
    truth = source(spread=0.0)
    every, p = gb.exact.states(SPACE), gb.exact.probabilities(truth)
    parameters = list(truth.parameters())
    curvature = hessian(definition(truth, p) - (p * truth(every)).sum(), parameters)
    objective, batch, n = L.EARM(truth, recent=3, decay=0.0), 128, 800
    generator = torch.Generator().manual_seed(0)
    rows = torch.stack(
        [gradient(objective(truth.sample(batch, seed=generator), seed=generator).loss, parameters) for _ in range(200)]
    )
    inverse = torch.linalg.pinv(curvature, hermitian=True, rtol=1e-8)
    law = inverse @ rows.T.cov() @ inverse / n
    root = torch.linalg.cholesky(law + 1e-16 * torch.eye(len(law)))
    weights = torch.linalg.eigvalsh(root.T @ fisher(truth, every, p) @ root)
    freedom = int((weights > 1e-3 * weights.max()).sum())
    bound = 0.5 * float(weights.max()) * chi_square_bound(freedom)

    def learned(sign):
        q = source(seed=5)
        objective = L.EARM(q, recent=3, decay=0.0, weight=1.0)
        optimiser, generator = torch.optim.SGD(q.parameters(), lr=0.5), torch.Generator().manual_seed(1)
        mean = torch.zeros_like(q.conditional.logits)
        for step in range(n + 300):
            x = truth.sample(batch, seed=generator)
            optimiser.zero_grad()
            if sign > 0:
                objective(x, seed=generator).loss.backward()
            else:
                told, drawn = steps(q, x, 3), steps(q, q.sample(batch, seed=generator), 3)
                (told.cross_entropy.mean() + (drawn.running * (drawn.context + drawn.token)).mean(0).sum()).backward()
            optimiser.step()
            if step >= 300:
                mean += q.conditional.logits.detach() / n
        last = D.Autoregressive(D.NGramTable(3, 2, mean), SPACE)
        return float((p * (p.log() - last(every))).sum().detach())

    assert learned(1) < bound < learned(-1)
