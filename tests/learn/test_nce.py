"""NCE, dynamic and conditional: gradients of their definitions by enumeration, what they learn, and the normalisers."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.learn.conditional_nce import log_ratios

from .asymptotics import close, covariance, draws, flat, gradient, gradient_gap, hessian, minimise, spread

L = gb.learn
SPINS = gb.Binary(3)


def ising(seed=0, n=3):
    g = torch.Generator().manual_seed(seed)
    edges = torch.combinations(torch.arange(n))
    weights, field = 0.6 * torch.randn(len(edges), generator=g), 0.4 * torch.randn(n, generator=g)
    return gb.models.Ising.from_edges(n, edges, weights, field)


def bernoulli(*p):
    return gb.distributions.Bernoulli(torch.logit(torch.tensor(p)))


def decks():
    """Data with any counts of the 8 states, and noise whose counts in 64 are exactly its probabilities."""
    every = gb.exact.states(SPINS)
    noise = bernoulli(0.25, 0.5, 0.75)
    weights = (64 * gb.exact.probabilities(noise)).round().long()
    assert int(weights.sum()) == 64
    counts = torch.tensor([3, 1, 4, 1, 5, 9, 2, 7])
    return every, noise, counts, every.repeat_interleave(counts, 0), every.repeat_interleave(weights, 0)


def definition(model, zeta, noise, p_data, ratio, shift=None):
    """J of EBM-SLP 2.46 as sums over all states, with the posterior written as it is defined, p / (p + nu q)."""
    every = gb.exact.states(SPINS)
    p, q = (model(every) - zeta).exp(), gb.exact.probabilities(noise)
    nu = ratio if shift is None else shift
    told = p / (p + nu * q)
    return -(p_data * told.log()).sum() - ratio * (q * (1 - told).log()).sum()


def test_gradient_of_the_definition(double):
    model, log_z = ising(), L.Constant(1.3)
    _, noise, counts, data, negatives = decks()
    parameters = [*model.parameters(), log_z.zeta]
    loss = L.nce(model, data, negatives, noise=noise, log_z=log_z)
    p_data, ratio = counts / counts.sum(), 64 / int(counts.sum())
    assert gradient_gap(loss, definition(model, log_z.zeta, noise, p_data, ratio), parameters) < 1e-10
    mutant = definition(model, log_z.zeta, noise, p_data, ratio, shift=1.0)  # forgets log nu
    assert gradient_gap(loss, mutant, parameters) > 1e-2


def test_the_loss_is_least_at_the_truth_and_zeta_is_log_z(double):
    """With data that are exactly p, and any noise: the gradient vanishes at (theta, log Z)."""
    model = ising()
    _, noise, _, _, _ = decks()
    p, zeta = gb.exact.probabilities(model), gb.exact.log_z(model).requires_grad_()
    parameters = [*model.parameters(), zeta]
    for ratio in (0.3, 1.0, 7.0):
        assert gradient(definition(model, zeta, noise, p, ratio), parameters).abs().max() < 1e-12
        wrong = definition(model, zeta, noise, p, ratio, shift=2 * ratio)
        assert gradient(wrong, parameters).abs().max() > 1e-2


def test_recovers_the_couplings_and_log_z(double):
    """20,000 draws of p, 40,000 of q: couplings, fields and zeta within the exact asymptotic ellipse at 1e-6.

    The mutant takes log nu off as if there were one draw of noise an example.
    """
    model, log_z, n = ising(), L.Constant(), 20_000
    _, noise, _, _, _ = decks()
    every, p, q = gb.exact.states(SPINS), gb.exact.probabilities(model), gb.exact.probabilities(noise)
    with torch.no_grad():
        log_z.zeta.copy_(gb.exact.log_z(model))
    parameters = [*model.parameters(), log_z.zeta]
    truth = flat(parameters)
    told = model(every) - log_z(every) - noise(every).detach() - math.log(2)
    own, others = torch.nn.functional.softplus(-told), 2 * torch.nn.functional.softplus(told)
    curvature = hessian((p * own + q * others).sum(), parameters)
    law = covariance(curvature, spread(list(own), p, parameters) + spread(list(others), q, parameters) / 2, n)
    data, negatives = draws(p, every, n, seed=1), draws(q, every, 2 * n, seed=2)

    def found(loss):
        with torch.no_grad():
            for parameter in parameters:
                parameter.zero_()
        return minimise(loss, parameters)

    assert close(found(lambda: L.nce(model, data, negatives, noise=noise, log_z=log_z)), truth, law)

    class Shifted(torch.nn.Module):
        def forward(self, x):
            return log_z(x) - math.log(2) - 0.05 * x[:, 0]

    assert not close(found(lambda: L.nce(model, data, negatives, noise=noise, log_z=Shifted())), truth, law)


def test_the_objective_draws_its_noise(double, device):
    model, noise = ising().to(device), bernoulli(0.25, 0.5, 0.75).to(device)
    data = SPINS.uniform().sample(10, seed=0).to(device)
    objective = L.NCE(model, noise, ratio=2.5).to(device)
    report = objective(data, seed=torch.Generator(device).manual_seed(4))
    negatives = noise.sample(25, seed=torch.Generator(device).manual_seed(4))
    assert torch.equal(report.loss, L.nce(model, data, negatives, noise=noise, log_z=objective.log_z))
    assert {0 <= float(value) <= 1 for value in report.metrics.values()} == {True}
    report.loss.backward()
    assert objective.log_z.zeta.grad is not None and noise.logits.grad is None


def test_dynamic_loss_is_alpha_of_data_and_the_rest_noise(double):
    """On decks: data D, as much of q as alpha says added to it, and the noise; against the mixture by enumeration."""
    model, log_z = ising(), L.Constant(0.7)
    every, noise, _, _, deck = decks()
    counts = torch.tensor([3, 1, 4, 1, 5, 9, 2, 7])
    data = every.repeat_interleave(2 * counts, 0)  # 64 examples, 64 of q beside them: alpha = 1 / 2
    loss = L.nce(model, torch.cat((data, deck)), torch.cat((deck, deck)), noise=noise, log_z=log_z)
    q = gb.exact.probabilities(noise)
    mixture = 0.5 * counts / counts.sum() + 0.5 * q
    parameters = [*model.parameters(), log_z.zeta]
    assert gradient_gap(loss, definition(model, log_z.zeta, noise, mixture, 1.0), parameters) < 1e-10
    only_data = definition(model, log_z.zeta, noise, counts / counts.sum(), 1.0)
    assert gradient_gap(loss, only_data, parameters) > 1e-2


def test_dynamic_sizes_and_that_the_noise_learns_by_its_likelihood_only(double):
    """|B1| = (1 - alpha) / alpha |D|, |B2| = nu / alpha |D|, as the algorithm says."""
    model, noise, sizes = ising(), bernoulli(0.25, 0.5, 0.75), []

    class Counted(gb.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.space = model, SPINS

        def forward(self, x):
            sizes.append(len(x))
            return self.inner(x)

    objective = L.DynamicNCE(Counted(), noise, ratio=2.0, alpha=0.25)
    data = SPINS.uniform().sample(12, seed=0)
    report = objective(data, seed=0)
    assert sizes == [12 + 36, 96]
    own = gradient(-noise(data).mean(), [noise.logits])
    assert torch.allclose(gradient(report.loss, [noise.logits]), own, atol=1e-12)
    assert gradient(report.loss, list(model.parameters())).abs().max() > 0
    assert float(report.loss.detach()) == pytest.approx(float(report.metrics["nce"] + report.metrics["noise_loss"]))


def test_dynamic_nce_learns_the_mixture_and_its_noise(double):
    """8,000 examples; the model of all 8 states must reach alpha p_data + (1 - alpha) q, q the product of data's marginals.

    With averaged iterates the error has the covariance H^-1 V H^-1 / (steps x batch) (Polyak and Juditsky, 1992), H and V by
    enumeration at the optimum. The mutant is compared with p_data itself.
    """
    every, n, alpha = gb.exact.states(SPINS), 8000, 0.5
    p = torch.tensor([0.3, 0.05, 0.05, 0.1, 0.05, 0.1, 0.05, 0.3])
    data = draws(p, every, n, seed=0)
    p_data = torch.bincount(gb.exact.index(SPINS, data), minlength=8) / n
    model = Table(torch.zeros(8))
    noise = gb.distributions.Bernoulli.fit(data, pseudocount=0)
    q = gb.exact.probabilities(noise)
    objective = L.DynamicNCE(model, noise, ratio=1.0, alpha=alpha)
    steps, batch = 3000, 64
    optimiser = torch.optim.SGD([model.u, objective.log_z.zeta], lr=1.0)
    total = torch.zeros(8)
    generator = torch.Generator().manual_seed(1)
    for step in range(steps + 1000):
        rows = data[torch.randint(n, (batch,), generator=generator)]
        optimiser.zero_grad()
        objective(rows, seed=generator).loss.backward()
        optimiser.step()
        if step >= 1000:
            total += (model.u - objective.log_z.zeta).detach() / steps
    target = (alpha * p_data + (1 - alpha) * q).log()
    log_p = target.clone().requires_grad_()
    told = log_p - q.log()
    own, others = torch.nn.functional.softplus(-told), torch.nn.functional.softplus(told)
    mixed = alpha * p_data + (1 - alpha) * q
    curvature = hessian((mixed * own + q * others).sum(), [log_p])
    # of one example: alpha^2 V_data + alpha (1 - alpha) V_q, from B1 of that size, and nu alpha V_q from B2
    noise_part = alpha * (1 - alpha) * spread(list(own), q, [log_p]) + alpha * spread(list(others), q, [log_p])
    law = covariance(curvature, alpha**2 * spread(list(own), p_data, [log_p]) + noise_part, steps * batch)
    assert close(total, target, law)
    assert not close(total, p_data.log(), law)


class Table(gb.Model):
    """One number a state."""

    def __init__(self, u):
        super().__init__()
        self.space, self.u = SPINS, torch.nn.Parameter(u)

    def forward(self, x):
        return self.u[gb.exact.index(SPINS, x)]


# ---- conditional ----


class Tagger(torch.nn.Module):
    """A context of 0 or 1 to a model of 3 categories, one table a context; the gauge of a context is free."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, context):
        return PerContext(self.logits[context])


class PerContext(gb.Model):
    def __init__(self, logits):
        super().__init__()
        self.space, self.logits = gb.Categorical(1, 3), logits

    def forward(self, x):
        return self.logits.expand(*x.shape[:-1], 3).gather(-1, x.long())[..., 0]


class PerContextNoise(gb.Distribution):
    def __init__(self, logits):
        super().__init__()
        self.space, self.logits = gb.Categorical(1, 3), logits.log_softmax(-1)

    def forward(self, x):
        return self.logits.expand(*x.shape[:-1], 3).gather(-1, x.long())[..., 0]

    def sample(self, n, *, seed):
        source = gb.random.generator(seed)
        return gb.random.categorical(self.logits.expand(n, *self.logits.shape), source)[..., None]


class Noises(torch.nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, context):
        return PerContextNoise(self.logits[context])


def conditional():
    tagger = Tagger(torch.tensor([[0.2, -0.3, 0.5], [-1.0, 0.4, 0.1]]))
    return tagger, Noises(torch.tensor([[0.0, 0.5, -0.5], [0.3, 0.3, 0.0]]))


def sums_over_noise(tagger, noises, p, k, kind):
    """Both losses as they are defined, with the sum over every k-tuple of noise in every context (contexts alike)."""
    total = torch.zeros(())
    for context in (0, 1):
        u, log_q = tagger.logits[context], noises.logits[context].log_softmax(0).detach()
        for x in range(3):
            for tuple_ in gb.exact.states(gb.Categorical(k, 3)).tolist():
                weight = 0.5 * p[context, x] * log_q[tuple_].sum().exp()
                if kind == "ranking":
                    ids = [x, *tuple_]
                    ratio = (u[ids] - log_q[ids]).exp()
                    value = -(ratio[0] / ratio.sum()).log()
                else:
                    told = u.exp() / (u.exp() + k * log_q.exp())
                    value = -told[x].log() - (1 - told[tuple_]).log().sum()
                total = total + weight * value
    return total


@pytest.mark.parametrize("kind", ["binary", "ranking"])
def test_conditional_gradient_of_the_definition(kind, double):
    """Every context, example and pair of noise draws, weighted as it is drawn: the loss's mean is the definition exactly."""
    tagger, noises = conditional()
    p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    loss_of, k = (L.ranking_nce if kind == "ranking" else L.conditional_nce), 2
    total = torch.zeros(())
    for context in (0, 1):
        model, noise = tagger(torch.tensor([context])), noises(torch.tensor([context]))
        for x in range(3):
            for pair in gb.exact.states(gb.Categorical(k, 3)):
                every = torch.cat((torch.tensor([x]), pair))[:, None, None]
                ratios = model(every) - noise(every).detach()
                weight = 0.5 * p[context, x] * noise(every[1:]).sum().exp().detach()
                total = total + weight * loss_of(ratios)
    assert gradient_gap(total, sums_over_noise(tagger, noises, p, k, kind), [tagger.logits]) < 1e-10
    other = sums_over_noise(tagger, noises, p, k, "binary" if kind == "ranking" else "ranking")
    assert gradient_gap(total, other, [tagger.logits]) > 1e-2


def test_ranking_recovers_each_contexts_law_whatever_its_gauge(double):
    """At the truth the ranking loss has gradient 0 in any gauge; the binary loss only where each context is normalised."""
    p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    _, noises = conditional()
    shifted = Tagger(p.log() + torch.tensor([[2.0], [-1.0]]))
    assert gradient(sums_over_noise(shifted, noises, p, 2, "ranking"), [shifted.logits]).abs().max() < 1e-12
    assert gradient(sums_over_noise(shifted, noises, p, 2, "binary"), [shifted.logits]).abs().max() > 1e-2
    true = Tagger(p.log())
    assert gradient(sums_over_noise(true, noises, p, 2, "binary"), [true.logits]).abs().max() < 1e-12


@pytest.mark.parametrize("objective", [L.ConditionalNCE, L.RankingNCE])
def test_conditional_objectives_draw_per_context(objective, double):
    tagger, noises = conditional()
    context = torch.tensor([0, 1, 1, 0, 1])
    data = (context, torch.tensor([[0], [2], [1], [1], [2]]))
    objective = objective(tagger, noises, negatives=4)
    report = objective(data, seed=torch.Generator().manual_seed(3))
    ratios = log_ratios(tagger, noises, data, 4, seed=torch.Generator().manual_seed(3))
    assert ratios.shape == (5, 5)
    assert torch.equal(ratios[0], tagger.logits[context, data[1][:, 0]] - noises(context).logits.gather(1, data[1])[:, 0])
    report.loss.backward()
    assert tagger.logits.grad is not None and noises.logits.grad is None


# ---- normalisers ----


class Words(gb.Model):
    """A weight a word and a weight a pair of neighbours, over the words before the eos (which it does not read)."""

    def __init__(self, space, seed=0):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.space = space
        self.word = torch.nn.Parameter(torch.randn(space.vocabulary, generator=g))
        self.pair = torch.nn.Parameter(torch.randn(space.vocabulary, space.vocabulary, generator=g))

    def forward(self, x):
        inside = torch.arange(self.space.length, device=x.device) < self.space.lengths(x)[..., None]
        singles = (self.word[x] * inside).sum(-1)
        return singles + (self.pair[x[..., :-1], x[..., 1:]] * inside[..., 1:]).sum(-1)


def test_per_length_sums_to_one_with_each_lengths_normaliser(double):
    """Sum over l and x of p is 1 once zeta_l = log Z_l - in the gauge of `first` - and pi_l is each length's share."""
    space = gb.Tokens(length=4, vocabulary=3, eos=1)
    model, pi = Words(space), torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4])
    every = gb.exact.states(space)
    lengths, u = space.lengths(every), Words(space)(every).detach()
    exact = torch.stack([u[lengths == length].logsumexp(0) for length in range(5)])
    log_z = L.PerLength(space, pi, first=float(exact[1]))
    with torch.no_grad():
        log_z.zeta.copy_(exact[2:])
    p = (model(every) - log_z(every)).exp().detach()
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    shares = torch.stack([p[lengths == length].sum() for length in range(5)])
    assert torch.allclose(shares, pi, atol=1e-12)
    with torch.no_grad():
        log_z.zeta += 0.1  # mutant
    assert abs(float((model(every) - log_z(every)).exp().sum().detach()) - 1) > 0.05


def test_per_length_starts_where_a_flat_potential_is_normalised(double):
    space = gb.Tokens(length=3, vocabulary=5, eos=2)
    log_z = L.PerLength(space, torch.full((4,), 0.25))
    every = gb.exact.states(space)
    lengths = space.lengths(every)
    flat_z = torch.stack([(-log_z(every))[lengths == length].logsumexp(0) for length in range(4)])
    assert torch.allclose(flat_z.exp(), torch.full((4,), 4 * 0.25), atol=1e-12)  # Z_1 = 4 is the gauge
    assert float(log_z.by_length[1].detach()) == 0 and "first" not in dict(log_z.named_parameters())


def test_a_random_field_of_several_lengths_is_learned_with_its_normalisers(double):
    """NCE with exact probabilities of data and noise, minimised: log p of every sequence is the true one to 1e-3.

    (The gradient is below 1e-5 where the minimiser stops, and the loss's curvature in log p, p q / (p + q), above 0.01.)

    zeta_1 stays 0, for the weight of a word has a constant to spare at every length; the mutant forgets log pi.
    """
    space = gb.Tokens(length=3, vocabulary=3, eos=0)
    every, pi = gb.exact.states(space), torch.tensor([0.0, 0.2, 0.5, 0.3])
    kept = every[space.lengths(every) > 0]
    lengths, true = space.lengths(kept), Words(space, seed=1)(kept).detach()
    log_p = torch.empty_like(true)
    for length in (1, 2, 3):
        at = lengths == length
        log_p[at] = pi[length].log() + true[at].log_softmax(0)
    q = torch.full_like(log_p, 1 / len(kept))

    def learned(log_z):
        model = Words(space, seed=2)
        parameters = [*model.parameters(), log_z.zeta]

        def loss():
            told = model(kept) - log_z(kept) - q.log()
            plus, minus = torch.nn.functional.softplus(-told), torch.nn.functional.softplus(told)
            return (log_p.exp() * plus + q * minus).sum()

        minimise(loss, parameters, steps=2000)
        return (model(kept) - log_z(kept)).detach()

    assert float((learned(L.PerLength(space, pi)) - log_p).abs().max()) < 1e-3
    pairs_only = L.PerLength(space, pi, first=0.0)
    pairs_only.forward = lambda x: pairs_only.by_length[1] + 0 * pairs_only.zeta.sum()  # mutant: one zeta for all lengths
    assert float((learned(pairs_only) - log_p).abs().max()) > 1e-2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: L.NCE(ising(), ising()), "noise: expected a gibbsite.Distribution, got Ising"),
        (lambda: L.NCE(ising(), bernoulli(0.5, 0.5, 0.5), ratio=0), "ratio: expected a positive number, got 0"),
        (lambda: L.NCE(ising(), bernoulli(0.5, 0.5))(spins(), seed=0), "noise: expected a distribution on the model's"),
        (
            lambda: L.NCE(ising(), Never())(spins(), seed=0),
            "noise: expected a positive probability of every state of the data",
        ),
        (
            lambda: L.NCE(ising(), bernoulli(0.5, 0.5, 0.5))(spins()[:0], seed=0),
            "expected at least one of each, got 0 and 1",
        ),
        (
            lambda: L.DynamicNCE(ising(), bernoulli(0.5, 0.5, 0.5), alpha=1.5),
            "alpha: expected a number above 0 and at most 1",
        ),
        (lambda: L.PerLength(gb.Real(2), torch.ones(3)), "space: expected a gibbsite.Tokens, got Real"),
        (lambda: L.PerLength(gb.Tokens(2, 3, 0), torch.ones(3)), "probabilities: expected 3 that sum to 1"),
        (lambda: L.PerLength(gb.Tokens(2, 3, 0), torch.ones(2) / 2), "probabilities: expected finite floats of shape (3,)"),
        (
            lambda: L.PerLength.fit(gb.Tokens(2, 3, 0), torch.zeros(0, 2, dtype=torch.long)),
            "at least one sequence, got none",
        ),
        (
            lambda: L.ConditionalNCE(lambda c: c, torch.nn.Identity()),
            "conditional: expected a torch.nn.modules.Module, got f",
        ),
        (
            lambda: L.RankingNCE(Tagger(torch.zeros(2, 3)), Tagger(torch.zeros(2, 3)), 0),
            "negatives: expected a positive integer",
        ),
        (lambda: ranked(Tagger), "noise(context): expected a gibbsite.Distribution, got PerContext"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert words in str(raised.value)


def spins():
    return torch.ones(4, 3, dtype=torch.int8)


def ranked(noise):
    data = (torch.tensor([0, 1]), torch.tensor([[0], [1]]))
    return L.RankingNCE(Tagger(torch.zeros(2, 3)), noise(torch.zeros(2, 3)))(data, seed=0)


class Never(gb.Distribution):
    """Noise that never sets the first bit."""

    def __init__(self):
        super().__init__()
        self.space = SPINS

    def forward(self, x):
        return torch.where(x[..., 0] == 0, -math.log(4), -math.inf)

    def sample(self, n, *, seed):
        x = SPINS.uniform().sample(n, seed=seed)
        x[:, 0] = 0
        return x


def test_data_of_an_impossible_length_are_told():
    space = gb.Tokens(length=2, vocabulary=3, eos=0)

    class Uniform(gb.Distribution):
        def __init__(self):
            super().__init__()
            self.space = space

        def forward(self, x):
            return torch.full(x.shape[:-1], -math.log(len(gb.exact.states(space))))

        def sample(self, n, *, seed):
            every = gb.exact.states(space)
            return every[gb.random.integers(len(every), (n,), gb.random.generator(seed))]

    log_z = L.PerLength(space, torch.tensor([0.0, 0.0, 1.0]))
    objective = L.NCE(Words(space), Uniform(), log_z=log_z)
    assert bool(objective(torch.tensor([[1, 2]]), seed=0).loss.isfinite())
    with pytest.raises(ValueError, match="the data have a length that is impossible to PerLength"):
        objective(torch.tensor([[1, 0]]), seed=0)
