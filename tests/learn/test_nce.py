"""NCE and dynamic NCE: gradients of their definitions by enumeration, and what they learn."""

import math

import pytest
import torch

import gibbsite as gb

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


def test_noise_that_cannot_make_the_data_is_an_error():
    data = torch.ones(4, 3, dtype=torch.int8)
    with pytest.raises(
        ValueError, match="noise: expected a positive probability of every state of the data, got log q = -inf"
    ):
        L.NCE(ising(), Never())(data, seed=0)
    assert bool(L.NCE(ising(), Never())(0 * data, seed=0).loss.isfinite())


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
