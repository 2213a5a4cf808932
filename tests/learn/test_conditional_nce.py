"""Conditional NCE, binary and ranking: gradients of their definitions by enumeration, and what they are least at."""

import pytest
import torch

import gibbsite as gb
from gibbsite.learn.conditional_nce import log_ratios

from .asymptotics import close, covariance, gradient, gradient_gap, hessian, minimise, spread

L = gb.learn


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


@pytest.mark.parametrize("kind", ["binary", "ranking"])
def test_recovers_each_contexts_law(kind, double):
    """40,000 pairs with 2 draws of noise each: log p(x | context) within the ellipse at 1e-6.

    Its covariance is that of the minimiser of a mean over (context, x, noise), by enumeration of these 54. Ranking leaves a
    constant a context free: the potential of each context's first state is then held at 0. The mutants leave log k out, or
    the noise's own log q.
    """
    p, n, k = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]), 40_000, 2
    _, noises = conditional()
    loss_of = L.ranking_nce if kind == "ranking" else L.conditional_nce
    free = torch.nn.Parameter(p.log().flatten() if kind == "binary" else (p.log() - p.log()[:, :1])[:, 1:].flatten())

    class Given(torch.nn.Module):
        """The tagger with its potentials made of `free`: each context's first is 0 where a constant is free."""

        def forward(self, context):
            tables = free.view(2, -1)
            logits = tables if kind == "binary" else torch.nn.functional.pad(tables, (1, 0))
            return PerContext(logits[context])

    given, weights, losses = Given(), [], []
    for context in (0, 1):
        model, noise = given(torch.tensor([context])), noises(torch.tensor([context]))
        for x in range(3):
            for pair in gb.exact.states(gb.Categorical(k, 3)):
                every = torch.cat((torch.tensor([x]), pair))[:, None, None]
                losses.append(loss_of(model(every) - noise(every).detach()))
                weights.append(0.5 * p[context, x] * noise(every[1:]).sum().exp().detach())
    weight = torch.stack(weights)
    curvature = hessian((weight * torch.stack(losses)).sum(), [free])
    law, truth = covariance(curvature, spread(losses, weight, [free]), n), free.detach().clone()
    source = torch.Generator().manual_seed(0)
    context = torch.randint(2, (n,), generator=source)
    data = (context, torch.multinomial(p[context], 1, generator=source))

    def found(wrong):
        with torch.no_grad():
            free.zero_()
        return minimise(lambda: loss_of(wrong(log_ratios(given, noises, data, k, seed=1))), [free])

    assert close(found(lambda ratios: ratios), truth, law)
    if kind == "binary":
        assert not close(found(lambda ratios: ratios + torch.tensor(float(k)).log()), truth, law)
    draws = PerContextNoise(noises.logits.detach()[context]).sample(k, seed=1)
    log_q = noises.logits.detach().log_softmax(-1)[context].gather(1, torch.cat((data[1][None], draws))[..., 0].T).T
    assert not close(found(lambda ratios: ratios + log_q), truth, law)


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


def test_noise_of_another_batch_is_an_error():
    tagger, noises = conditional()
    objective = L.RankingNCE(tagger, noises)
    with pytest.raises(ValueError, match=r"noise: expected sample\(1\) of shape \(1, 3, 1\)"):
        objective((torch.tensor([0, 1]), torch.tensor([[0], [1], [2]])), seed=0)
    with pytest.raises(TypeError, match=r"noise\(context\): expected a gibbsite.Distribution, got PerContext"):
        L.RankingNCE(tagger, Tagger(torch.zeros(2, 3)))((torch.tensor([0]), torch.tensor([[0]])), seed=0)
