"""Pseudo-likelihood and ratio matching: gradients of their definitions by enumeration, and what they learn."""

import pytest
import torch

import gibbsite as gb
from gibbsite.learn.pseudo_likelihood import some_sites

from .asymptotics import close, covariance, draws, flat, gradient, gradient_gap, hessian, minimise, spread

L = gb.learn


def ising(n=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    edges = torch.combinations(torch.arange(n))
    return gb.models.Ising.from_edges(
        n, edges, 0.5 * torch.randn(len(edges), generator=g), 0.3 * torch.randn(n, generator=g), dtype=torch.float64
    )


MODELS = {"bits": ising, "categories": lambda: gb.models.MLP(gb.Categorical(3, 3), (5,), seed=3).double()}


def conditional_tables(model):
    """log p(x_i = k | rest) of every state, site and value by enumeration of the joint, never by site_logits."""
    space, every = model.space, gb.exact.states(model.space)
    log_p = model(every).log_softmax(0)
    table = []
    for site in range(space.sites):
        columns = []
        for k in range(space.states):
            other = every.clone()
            other[:, site] = k
            columns.append(log_p[gb.exact.index(space, other)])
        table.append(torch.stack(columns, -1))
    return every, torch.stack(table, 1).log_softmax(-1)


def pseudo(every, logs, counts):
    own = logs.gather(-1, every.long()[..., None])[..., 0]
    return -(counts * own.sum(1)).sum() / counts.sum()


def squares(every, logs, counts):
    hit = torch.nn.functional.one_hot(every.long(), logs.shape[-1])
    return 0.5 * (counts * (logs.exp() - hit).square().sum((1, 2))).sum() / counts.sum()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("loss", "definition"), [(L.pseudo_likelihood, pseudo), (L.ratio_matching, squares)], ids=["pseudo", "ratio"]
)
def test_gradient_of_the_definition(make, loss, definition, double):
    model = make().double()
    parameters = list(model.parameters())
    every, logs = conditional_tables(model)
    counts = torch.arange(1, len(every) + 1) % 5
    data = every.repeat_interleave(counts, 0)
    assert float((loss(model, data) - definition(every, logs, counts)).detach()) == pytest.approx(0, abs=1e-12)
    assert gradient_gap(loss(model, data), definition(every, logs, counts), parameters) < 1e-10
    mutant = logs[:, torch.arange(model.space.sites) != 1]  # forgets a site
    other = every[:, torch.arange(model.space.sites) != 1]
    assert gradient_gap(loss(model, data), definition(other, mutant, counts), parameters) > 1e-2


def test_ratio_matching_on_bits_is_hyvarinens(double):
    """sum_i g(p(x) / p(x flipped at i))^2, g(u) = 1 / (1 + u); the mutant has the ratio upside down."""
    model = ising()
    every, p = gb.exact.states(model.space)[:7], gb.exact.probabilities(model)
    own = p[:7]
    found, wrong = torch.zeros(()), torch.zeros(())
    for site in range(4):
        other = every.clone()
        other[:, site] = 1 - other[:, site]
        flipped = p[gb.exact.index(model.space, other)]
        found, wrong = found + (1 / (1 + own / flipped)).square().mean(), wrong + (1 / (1 + flipped / own)).square().mean()
    loss = float(L.ratio_matching(model, every).detach())
    assert loss == pytest.approx(float(found), rel=1e-12) and loss != pytest.approx(float(wrong), rel=1e-3)


def test_a_block_of_sites_is_right_on_average(double):
    """Over all 6 pairs of 4 sites the mean is the full loss exactly; without n / m it is half of it."""
    model, data = ising(), ising().space.uniform().sample(32, seed=0)
    pairs = torch.combinations(torch.arange(4))
    blocks = torch.stack([L.pseudo_likelihood(model, data, pair.expand(32, 2)) for pair in pairs]).mean()
    full, parameters = L.pseudo_likelihood(model, data), list(model.parameters())
    assert gradient_gap(blocks, full, parameters) < 1e-12 < 0.4 < gradient_gap(blocks / 2, full, parameters)


def test_every_block_of_sites_is_as_likely(device):
    """Chi-square over the 6 pairs of 4 sites, 1e-6; no site is drawn twice."""
    from ..statistics import fits

    sites = some_sites(gb.Binary(4), 6000, 2, seed=0, device=device).cpu().sort(1).values
    assert bool((sites[:, 0] < sites[:, 1]).all())
    counts = torch.bincount(4 * sites[:, 0] + sites[:, 1], minlength=16)
    allowed = torch.zeros(16)
    for a, b in torch.combinations(torch.arange(4)).tolist():
        allowed[4 * a + b] = 1 / 6
    assert fits(counts[None], allowed[None])
    assert not fits(counts[None], torch.where(torch.arange(16) == 1, 0.25, 0.15)[None] * (allowed > 0))


@pytest.mark.parametrize("loss", [L.pseudo_likelihood, L.ratio_matching], ids=["pseudo", "ratio"])
def test_recovers_the_couplings(loss, double):
    """20,000 exact draws: couplings and fields within the estimator's exact asymptotic ellipse at 1e-6.

    The mutant learns from data whose first bit is flipped in one example of twenty.
    """
    model, n = ising(), 20_000
    parameters = list(model.parameters())
    truth, every, p = flat(parameters), gb.exact.states(model.space), gb.exact.probabilities(model)
    losses = [loss(model, state[None]) for state in every]
    curvature = hessian((p * torch.stack(losses)).sum(), parameters)
    law = covariance(curvature, spread(losses, p, parameters), n)
    data = draws(p, every, n, seed=1)
    with torch.no_grad():
        for parameter in parameters:
            parameter.zero_()
    assert close(minimise(lambda: loss(model, data), parameters), truth, law)
    coin = torch.rand(n, generator=torch.Generator().manual_seed(2)) < 0.05
    data[coin, 0] = 1 - data[coin, 0]
    assert not close(minimise(lambda: loss(model, data), parameters), truth, law)


def test_objectives_are_their_losses(double):
    model, data = ising(), ising().space.uniform().sample(8, seed=0)
    assert torch.equal(L.PseudoLikelihood(model)(data, seed=0).loss, L.pseudo_likelihood(model, data))
    assert torch.equal(L.RatioMatching(model)(data, seed=0).loss, L.ratio_matching(model, data))
    sites = some_sites(model.space, 8, 2, 5, data.device)
    block = L.PseudoLikelihood(model, sites=2)(data, seed=torch.Generator().manual_seed(5)).loss
    assert torch.equal(block, L.pseudo_likelihood(model, data, sites))
    assert gradient(block, list(model.parameters())).abs().max() > 0
