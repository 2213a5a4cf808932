"""The contrastive loss: its gradient is that of -log p by enumeration, and what it learns with weighted negatives."""

import torch

import gibbsite as gb
from gibbsite.learn.contrastive import Drawn

from .asymptotics import close, covariance, draws, flat, gradient, gradient_gap, hessian, spread

L = gb.learn
SPINS = gb.Binary(3)
COUNTS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 7])


class Table(gb.Model):
    """U(x) = u_x + b sum(x): a weight a state, and one parameter that all states share."""

    def __init__(self, p):
        super().__init__()
        self.space, self.u, self.b = SPINS, torch.nn.Parameter(p.log()), torch.nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        return self.u[gb.exact.index(SPINS, x)] + self.b * self.space.embed(x).sum(-1)


def ising():
    return gb.models.Ising.from_edges(
        3, torch.tensor([[0, 1], [0, 2], [1, 2]]), torch.tensor([0.5, -0.4, 0.3]), torch.tensor([0.2, -0.1, 0.3])
    )


def negative_log_likelihood(model, data):
    """-mean log p(x), with log Z by enumeration."""
    return model(gb.exact.states(SPINS)).logsumexp(0) - model(data).mean()


def test_gradient_of_the_likelihood_with_negatives_that_are_exactly_the_models(double):
    """p in 64ths, so that a deck of 64 states has it. Mutants: data and negatives exchanged, negatives uniform."""
    every = gb.exact.states(SPINS)
    weights = torch.tensor([1, 2, 4, 8, 16, 20, 10, 3])
    model = Table(weights / 64)
    data, deck = every.repeat_interleave(COUNTS, 0), every.repeat_interleave(weights, 0)
    parameters, defined = list(model.parameters()), negative_log_likelihood(model, data)
    assert gradient_gap(L.contrastive(model, data, deck), defined, parameters) < 1e-12
    assert gradient_gap(L.contrastive(model, deck, data), defined, parameters) > 1e-2
    assert gradient_gap(L.contrastive(model, data, every), defined, parameters) > 1e-2


def test_gradient_of_the_likelihood_with_all_states_weighted(double):
    """Log-weights are those of the states in any gauge; the mutant forgets them."""
    model, every = ising(), gb.exact.states(SPINS)
    data, log_p = every.repeat_interleave(COUNTS, 0), gb.exact.probabilities(model).detach().log()
    parameters, defined = list(model.parameters()), negative_log_likelihood(model, data)
    assert gradient_gap(L.contrastive(model, data, every, log_p + 7.0), defined, parameters) < 1e-12
    assert gradient_gap(L.contrastive(model, data, every), defined, parameters) > 1e-2


def test_the_objective_adds_what_its_source_learns(double):
    """The loss is the contrastive one plus the source's, whose gradient reaches the source's parameters alone."""
    model, own = ising(), torch.nn.Parameter(torch.tensor(2.0))
    every = gb.exact.states(SPINS)

    class Fixed(L.Negatives):
        def draw(self, model, data, *, seed):
            return Drawn(every[:3], loss=own.square())

    report = L.Contrastive(model, Fixed())(every[3:], seed=torch.Generator())
    parameters = list(model.parameters())
    plain = L.contrastive(model, every[3:], every[:3])
    assert gradient_gap(report.loss, plain, parameters) == 0
    assert float(gradient(report.loss, [own])) == 4.0 and float((report.loss - plain).detach()) == 4.0
    assert torch.equal(report.metrics["gap"], plain.detach())


def test_weighted_negatives_recover_the_couplings(double):
    """Monte Carlo maximum likelihood: 20,000 data and 20,000 draws of q, once; couplings and fields within the ellipse.

    The maximiser of mean U(data) - log mean exp(U) / q has the covariance H^-1 (cov_p f / n + E_q (p / q)^2 (f - E f)(f -
    E f)^T / m) H^-1, H = cov_p f, all by enumeration (Geyer, 1994). The mutant's weights are to the power 0.9.
    """
    model, n, m = ising(), 20_000, 20_000
    q = gb.distributions.Bernoulli(torch.tensor([0.4, -0.3, 0.2]))
    parameters, every, p = list(model.parameters()), gb.exact.states(SPINS), gb.exact.probabilities(model).detach()
    truth, data = flat(parameters), draws(p, every, n, seed=1)
    losses = list(model(every).logsumexp(0) - model(every))
    curvature = hessian((p * torch.stack(losses)).sum(), parameters)
    of_data = spread(losses, p, parameters)
    rows = torch.stack([gradient(loss, parameters) for loss in losses])
    of_draws = rows.T @ ((p.square() / q(every).exp().detach())[:, None] * rows)
    law = covariance(curvature, of_data / n + of_draws / m, 1)

    def found(objective):
        with torch.no_grad():
            for parameter in parameters:
                parameter.zero_()
        optimiser = torch.optim.SGD(parameters, lr=0.5)
        for _ in range(150):  # the curvature lies in 0.5 to 2.5: the start is forgotten to 1e-10
            optimiser.zero_grad()
            objective().backward()
            optimiser.step()
        assert gradient(objective(), parameters).abs().max() < 1e-6
        return flat(parameters)

    source = L.Weighted(q, m)
    assert close(found(lambda: L.Contrastive(model, source)(data, seed=torch.Generator().manual_seed(3)).loss), truth, law)
    x = source.draw(model, data, seed=torch.Generator().manual_seed(3)).x
    assert not close(found(lambda: L.contrastive(model, data, x, 0.9 * (model(x) - q(x)).detach())), truth, law)
