"""Learning in the space of the noise: the push-forward's law by integration, the gradient, the buffer, the step size."""

import math

import pytest
import torch
from torch import Tensor

import gibbsite as gb
from gibbsite.distributions import FixedScale, LatentNormal, Normal
from gibbsite.learn import Adaptive, Contrastive, Persistent, Pushed, Replay, Weighted
from gibbsite.sample import MALA, Followed, Independent, Langevin

from ..statistics import fits

CHAINS, SCALE = 20_000, 0.3
EDGES = torch.linspace(-2.5, 2.5, 41, dtype=torch.float64)


class Bend(torch.nn.Module):
    """h -> tanh(2 h): two peaks."""

    def forward(self, h):
        return torch.tanh(2 * h)


class Waves(gb.Model):
    """V(x) = a cos 3x - b x^2, with two parameters."""

    def __init__(self):
        super().__init__()
        self.space = gb.Real(1)
        self.weights = torch.nn.Parameter(torch.tensor([0.8, 0.5]))

    def forward(self, x):
        return (torch.stack((torch.cos(3 * x), -x.square()), -1)[..., 0, :] * self.weights).sum(-1)


def generator():
    return LatentNormal(FixedScale(Bend(), SCALE), 1, 1)


def masses(tilt) -> Tensor:
    """The probability of each bin of x under q(x) exp tilt(x) / Z, by integrating over h (midpoints) and x."""
    h = torch.special.ndtri((torch.arange(2000) + 0.5) / 2000)
    x = torch.linspace(-2.5, 2.5, 4001)
    x = (x[1:] + x[:-1]) / 2
    density = torch.exp(-0.5 * ((x[:, None] - torch.tanh(2 * h)) / SCALE) ** 2).mean(1) * tilt(x[:, None]).exp()
    bins = density.view(40, 100).sum(1)
    return bins / bins.sum()


def counts(x: Tensor) -> Tensor:
    return torch.histc(x, 40, -2.5, 2.5)[None]


def exact(own: LatentNormal, model: gb.Model) -> Tensor:
    """Draws of e from N(e) exp V(T(e)) / Z by rejection, V at most 0.8."""
    e = own.noise().sample(12 * CHAINS, seed=5)
    uniform = torch.rand(len(e), generator=torch.Generator().manual_seed(6))
    return e[uniform.log() < (model(own.push(e)).detach() - 0.8)][:CHAINS]


@pytest.mark.parametrize("jump", [False, True])
def test_chains_in_the_noise_have_the_tilted_law_in_x(jump, double):
    """Exact draws, moved, are still draws of q exp V / Z: bins of x, chi-square at 1e-6. The mutant is q, not tilted."""
    own, model = generator(), Waves()
    e = exact(own, model)
    assert len(e) == CHAINS
    kernel = Followed(MALA(0.6), by=gb.sample.MH(Independent(own.noise()))) if jump else MALA(0.6)
    source = Pushed(Persistent(kernel, e, steps=3), own.noise(), own.push)
    x = source.draw(model, torch.zeros(1, 1), seed=torch.Generator().manual_seed(0)).x
    with torch.no_grad():
        assert fits(counts(x), masses(model)[None])
        assert not fits(counts(x), masses(lambda x: 0 * x[:, 0])[None])
    assert torch.equal(x, own.push(source.source.x))


def test_the_gradient_is_that_of_the_tilted_likelihood(double):
    """With weighted noise, autograd of mean V(T(e)) weighted is that of log mean exp V(T(e)); the decoder gets none."""
    own, model = LatentNormal(FixedScale(gb.models.perceptron(1, 1), SCALE), 1, 1), Waves()
    source, data = Pushed(Weighted(own.noise(), 200), own.noise(), own.push), torch.randn(20, 1, generator=gen(1))
    found = torch.autograd.grad(Contrastive(model, source)(data, seed=gen(2)).loss, model.weights)[0]
    x = own.push(own.noise().sample(200, seed=gen(2))).detach()
    defined = torch.autograd.grad(model(x).logsumexp(0) - model(data).mean(), model.weights)[0]
    unweighted = torch.autograd.grad(model(x).mean() - model(data).mean(), model.weights)[0]
    assert torch.allclose(found, defined, atol=1e-12) and not torch.allclose(found, unweighted, atol=1e-6)
    assert all(p.grad is None for p in own.parameters())


def gen(seed):
    return torch.Generator().manual_seed(seed)


STILL = Langevin(1e-12)  # leaves the chains where they start, to see where that is


def replay(**options):
    return Replay(STILL, Normal.standard(4), kept=2, slots=30, steps=1, seed=0, **{"most": 0.6, "ramp": 10, **options})


def test_every_slot_is_used_and_keeps_the_first_entries_only(double):
    source = replay(most=0.0)
    before, seen = source.x.clone(), []
    for step in range(3):
        seen.append(source.draw(Normal.standard(4), torch.zeros(10, 1), seed=gen(step)).x)
    assert source.x.shape == (30, 2) and (source.x != before).all()
    assert torch.equal(source.x, torch.cat(seen)[:, :2])
    source.draw(Normal.standard(4), torch.zeros(20, 1), seed=gen(9))
    assert torch.equal(source.x[20:], torch.cat(seen)[20:, :2]) and not torch.equal(source.x[:20], torch.cat(seen)[:20, :2])
    assert {"x", "turn", "updates"} <= set(source.state_dict())


def test_slots_are_used_with_a_probability_that_rises(double):
    """Of 6,000 chains at update t a share p_t = 0.6 min(1, t / 10) starts at its slot; 4.9 standard deviations each.

    The mutant is the probability of the update before.
    """
    source = Replay(STILL, Normal.standard(4), kept=2, slots=6000, steps=1, most=0.6, ramp=10, seed=0)
    for update in range(13):
        old = source.x.clone()
        x = source.draw(Normal.standard(4), torch.zeros(6000, 1), seed=gen(100 + update)).x
        kept = (x[:, :2] - old).abs().max(1).values < 1e-9
        p = 0.6 * min(1, update / 10)
        assert abs(float(kept.double().mean()) - p) <= 4.9 * math.sqrt(p * (1 - p) / 6000)
        if 0 < update <= 10:
            assert abs(float(kept.double().mean()) - (p - 0.06)) > 4.9 * math.sqrt(p * (1 - p) / 6000)
    assert (x[:, 2:].std(0) - 1).abs().max() < 4.9 / math.sqrt(2 * 6000)  # e_x: always drawn anew


def test_the_step_follows_a_sharpening_energy(double):
    """The scale falls a thousandfold over 300 updates: the adapted step keeps its acceptance, a fixed one loses it."""

    def last(source, fixed):
        for step in range(300):
            model = Normal.diagonal(torch.zeros(3), 10 ** (-step / 100))
            acceptance = source.draw(model, None, seed=gen(step)).acceptance
        return float(acceptance)

    start = Normal.standard(3).sample(200, seed=0)
    adapted = Adaptive(Persistent(MALA(1.0), start, steps=3), MALA, start=1.0, rate=0.2)
    assert last(adapted, False) > 0.3 and last(Persistent(MALA(1.0), start, steps=3), True) < 0.05


def test_the_step_is_its_recursion_and_is_saved(double):
    model, start = Normal.standard(3), Normal.standard(3).sample(50, seed=0)
    source = Adaptive(Persistent(MALA(1.0), start), MALA, start=0.7, target=0.6, rate=0.1)
    log_step = math.log(0.7)
    for step in range(5):
        assert source.step_size == pytest.approx(math.exp(log_step))
        log_step += 0.1 * (float(source.draw(model, None, seed=gen(step)).acceptance) - 0.6)
    other = Adaptive(Persistent(MALA(1.0), start), MALA, start=0.1, target=0.6, rate=0.1)
    other.load_state_dict(source.state_dict())
    assert torch.equal(*(s.draw(model, None, seed=gen(9)).x for s in (source, other)))


def test_mistakes_are_told():
    noise = Normal.standard(4)
    with pytest.raises(ValueError, match="slots: expected at least the 40 chains of a mini-batch, got 30"):
        replay().draw(noise, torch.zeros(40, 1), seed=gen(0))
    with pytest.raises(ValueError, match="noise, kept: expected vectors of at least 5 entries"):
        Replay(STILL, noise, kept=5, slots=3, steps=1, seed=0)
    with pytest.raises(ValueError, match="target: expected a number above 0 and below 1"):
        Adaptive(Persistent(MALA(1.0), torch.zeros(2, 3)), MALA, start=0.1, target=1.0)
