"""Negatives from generators, on linear normal generators where every law and gradient is known in closed form."""

import math

import pytest
import torch
from torch import Tensor

import gibbsite as gb
from gibbsite.distributions import FixedScale, LatentNormal, Normal
from gibbsite.learn import Contrastive, Cooperative, Exclusive, FromData, Refined, Revised
from gibbsite.sample import HMC, SGHMC, SGLD, Langevin

CHAINS, A, S, PRECISION = 100_000, 0.9, 0.6, 1.7
EPS, DELTA, STEPS = 0.5, 1.0, 2


def generator(a=A, s=S, bias=False):
    """x = a h + s e, both scalars in a vector of one entry; with `bias`, plus b, which starts at 0."""
    network = torch.nn.utils.skip_init(torch.nn.Linear, 1, 1, bias=bias)
    with torch.no_grad():
        network.weight.fill_(a)
        if bias:
            network.bias.zero_()
    return LatentNormal(FixedScale(network, s), 1, 1)


def target():
    return Normal(torch.zeros(1), torch.tensor([[1 / PRECISION]]))


def joint_covariance(a=A, s=S):
    return torch.tensor([[1, a], [a, a**2 + s**2]])


def propagated(covariance: Tensor, moves) -> Tensor:
    """The covariance after x -> M x + noise of covariance Q, for each (M, Q)."""
    for m, q in moves:
        covariance = m @ covariance @ m.T + q
    return covariance


ALONG_H = torch.tensor([-(1 + A**2 / S**2), A / S**2], dtype=torch.float64)  # grad_h log q(h, x), as a row times (h, x)
ALONG_X = torch.tensor([A / S**2, -1 / S**2], dtype=torch.float64)  # grad_x log q(h, x)
OF_P = torch.tensor([0, -PRECISION], dtype=torch.float64)
OTHER = torch.tensor([1.0, 0], dtype=torch.float64) + DELTA**2 / 2 * ALONG_H  # h* without its noise


def sgld(along_x: Tensor, star: float) -> tuple[Tensor, Tensor]:
    """z' = z + eps^2/2 (grad_h, grad_x) + eps xi; h* = OTHER z + delta xi* moves x by `star` times its noise."""
    m = torch.eye(2, dtype=torch.float64) + EPS**2 / 2 * torch.stack((ALONG_H, along_x))
    q = torch.diag(torch.tensor([EPS**2, EPS**2 + (EPS**2 / 2 * star * DELTA) ** 2], dtype=torch.float64))
    return m, q


def revision(mutant: str = "") -> Tensor:
    """The exact law of (h, x) after the steps of algorithm 8."""
    pull_other = torch.tensor([0, -1 / S**2]) + A / S**2 * OTHER  # grad_x log q(h*, x), h* without its noise
    first, later = sgld(OF_P, 0.0), sgld(OF_P + ALONG_X - pull_other, A / S**2)
    moves = {
        "": [first] + [later] * (STEPS - 1),
        "h* is h": [first] * STEPS,
        "h* at the first step": [later] * STEPS,
        "without log q(h*, x)": [sgld(OF_P + ALONG_X, 0.0)] * STEPS,
        "log q(h*, x) added": [first] + [sgld(OF_P + ALONG_X + pull_other, A / S**2)] * (STEPS - 1),
    }[mutant]
    return propagated(joint_covariance(), moves)


def odd(z: Tensor, covariance: Tensor) -> float:
    """The largest z-score of the second moments of z, in coordinates in which they should be the identity's."""
    w = torch.linalg.solve_triangular(torch.linalg.cholesky(covariance), z.T, upper=False)
    scale = (1 + torch.eye(2)).sqrt() / math.sqrt(len(z))
    return float(((w @ w.T / len(z) - torch.eye(2)) / scale).abs().max())


BOUND = 5.1  # the normal quantile of 1e-6 over three moments, two-sided


@pytest.mark.parametrize("mutant", ["h* is h", "h* at the first step", "without log q(h*, x)", "log q(h*, x) added"])
def test_revised_pairs_have_the_exact_law_of_algorithm_8(mutant, double):
    source, seed = Revised(generator(), SGLD(EPS), Langevin(DELTA), STEPS), torch.Generator().manual_seed(0)
    z = source.revise(target(), source.generator.sample(CHAINS, seed=seed), seed)
    assert odd(z, revision()) < BOUND < odd(z, revision(mutant))


def test_small_steps_leave_the_law_of_the_model_in_x(double):
    """The fixed point of SGHMC's many small steps: x within its statistical error and the O(eps) bias, q's own far off."""
    source, seed = Revised(generator(), SGHMC(0.1, 0.5), Langevin(0.02), 120), torch.Generator().manual_seed(0)
    z = source.revise(target(), source.generator.sample(20_000, seed=seed), seed)
    z_score = lambda variance: abs(float(z[:, 1].square().mean()) / variance - 1) * math.sqrt(len(z) / 2)  # noqa: E731
    bias = 0.02 * math.sqrt(len(z) / 2)  # SGHMC's own variance on N(0, 1) at this step is off by less than 1 %
    assert z_score(1 / PRECISION) < 4.9 + bias < z_score(A**2 + S**2)


def test_the_generator_ascends_the_likelihood_of_revised_pairs(double):
    """The gradient of Drawn.loss is that of -mean log q(h, x) at the pairs, and the model's is the contrastive one."""
    source = Revised(generator(), SGLD(EPS), Langevin(DELTA), STEPS)
    model = gb.models.MLP(gb.Real(1), (4,), seed=0)
    data = target().sample(30, seed=0)
    report = Contrastive(model, source)(data, seed=torch.Generator().manual_seed(1))
    weight = source.generator.decoder.mean.weight
    found = torch.autograd.grad(report.loss, [weight, *model.parameters()])
    seed = torch.Generator().manual_seed(1)
    h, x = source.generator.split(source.revise(model, source.generator.sample(30, seed=seed), seed).detach())
    by_hand = -((x - weight.detach() * h) * h).mean() / S**2
    assert torch.allclose(found[0], by_hand[None, None])
    expected = torch.autograd.grad(gb.learn.contrastive(model, data, x), list(model.parameters()))
    assert all(torch.allclose(a, b) for a, b in zip(found[1:], expected, strict=True))


def cooperation(inner_steps: int) -> Tensor:
    """The exact law of (h, x): Langevin on p moves x alone, then Langevin on q(h | x) moves h alone."""
    eye = torch.eye(2, dtype=torch.float64)
    x_moves = eye + EPS**2 / 2 * torch.stack((torch.zeros(2, dtype=torch.float64), OF_P))
    h_moves = eye + DELTA**2 / 2 * torch.stack((ALONG_H, torch.zeros(2, dtype=torch.float64)))
    noises = torch.diag(torch.tensor([0, EPS**2])), torch.diag(torch.tensor([DELTA**2, 0]))
    return propagated(joint_covariance(), [(x_moves, noises[0])] * STEPS + [(h_moves, noises[1])] * inner_steps)


def test_cooperative_pairs_have_the_law_of_the_two_chains(double):
    """Read off the source's loss, -mean log q, whose second moments it is; the mutant does not move h."""
    source, model = Cooperative(generator(), Langevin(EPS), Langevin(DELTA), STEPS, 3), target()
    drawn = source.draw(model, torch.zeros(CHAINS, 1), seed=torch.Generator().manual_seed(0))
    weight = source.generator.decoder.mean.weight
    (slope,) = torch.autograd.grad(drawn.loss, weight)

    def z(c: Tensor) -> float:
        """slope = -mean (x - a h) h / s^2, its mean and variance by Isserlis."""
        mean = -(c[0, 1] - A * c[0, 0]) / S**2
        residual = c[1, 1] - 2 * A * c[0, 1] + A**2 * c[0, 0]
        variance = (residual * c[0, 0] + (c[0, 1] - A * c[0, 0]) ** 2) / S**4
        return float((slope - mean).abs() / (variance / CHAINS).sqrt())

    assert z(cooperation(3)) < 4.9 < z(cooperation(0))
    assert abs(float(drawn.x.square().mean()) / float(cooperation(3)[1, 1]) - 1) < 4.9 * math.sqrt(2 / CHAINS)


def test_exclusive_gradient_is_that_of_the_divergence(double):
    """KL(q || p) of two normal laws in a: (a^2 + s^2) precision / 2 - log(a^2 + s^2) / 2; the mutant has no entropy.

    After six HMC steps of 1.8 radians h* has a correlation of 0.227^6 with h, a bias of 1e-4 of the entropy's part. The
    estimate's standard error is measured from its parts.
    """
    source, model = Exclusive(generator(), HMC(0.25, 4), 6), target()
    weight = source.generator.decoder.mean.weight
    parts = []
    seed = torch.Generator().manual_seed(0)
    for _ in range(50):
        (slope,) = torch.autograd.grad(source.draw(model, torch.zeros(2000, 1), seed=seed).loss, weight)
        parts.append(float(slope))
    found = torch.tensor(parts)
    energy = A * PRECISION
    exact = energy - A / (A**2 + S**2)
    sd = float(found.std() / math.sqrt(50))
    assert abs(float(found.mean()) - exact) < 6.0 * sd < abs(float(found.mean()) - energy)  # t of 49 degrees, 1e-6: 5.7


def test_refined_descends_the_energy_alone(double):
    """E_q [-V] = precision (a^2 + s^2) / 2, gradient a precision; V's own gradient is the contrastive one, unchanged."""
    own = generator()
    source, model = Refined(FromData(Langevin(0.1)), own), gb.models.MLP(gb.Real(1), (4,), seed=0)
    data = target().sample(CHAINS, seed=3)
    drawn = source.draw(target(), data, seed=torch.Generator().manual_seed(0))
    (slope,) = torch.autograd.grad(drawn.loss, own.decoder.mean.weight)
    exact = A * PRECISION
    variance = PRECISION**2 * (A**2 * 2 + S**2)  # of (a h + s e) h
    assert abs(float(slope) - exact) < 4.9 * math.sqrt(variance / CHAINS)
    assert abs(-float(slope) - exact) > 4.9 * math.sqrt(variance / CHAINS)
    loss = Contrastive(model, source)(data[:20], seed=torch.Generator().manual_seed(0)).loss
    plain = Contrastive(model, FromData(Langevin(0.1)))(data[:20], seed=torch.Generator().manual_seed(0)).loss
    for p in model.parameters():
        assert torch.equal(*(torch.autograd.grad(total, p, retain_graph=True)[0] for total in (loss, plain)))


@pytest.mark.parametrize("kind", ["inclusive", "exclusive", "cooperative"])
def test_the_generator_learns_the_mean_of_a_known_model(kind, double):
    """p = N(1, a^2 + s^2) is held, q starts at mean 0, KL 0.43: it ends below 0.005; a mutant that ascends goes away.

    0.005 is a mean off by 0.1: 2.5 standard deviations of the mean of a batch of 500, 0.05, and its square below the
    start's. The inclusive and the cooperative source are EM, whose rate here is s^2 / (a^2 + s^2) = 0.31 an update.
    """
    model = Normal(torch.ones(1), torch.tensor([[A**2 + S**2]]))
    reached = {}
    for maximize in (False, True):
        own = generator(bias=True)
        sources = {
            "inclusive": Revised(own, SGLD(0.4), Langevin(0.2), 30),
            "exclusive": Exclusive(own, HMC(0.25, 4), 3),
            "cooperative": Cooperative(own, Langevin(0.4), Langevin(0.4), 30),
        }
        optimiser = torch.optim.SGD([own.decoder.mean.bias], lr=0.2, maximize=maximize)
        seed = torch.Generator().manual_seed(0)
        for _ in range(25 if not maximize else 3):
            optimiser.zero_grad()
            sources[kind].draw(model, torch.zeros(500, 1), seed=seed).loss.backward()
            optimiser.step()
        reached[maximize] = float((own.decoder.mean.bias.detach() - 1) ** 2) / (A**2 + S**2) / 2
    assert reached[False] < 0.005 and reached[True] > 0.43


def test_a_generator_of_other_states_is_told():
    for source in (Revised(generator(), SGLD(0.1), Langevin(0.1), 2), Exclusive(generator(), HMC(0.1, 2), 2)):
        with pytest.raises(ValueError, match=r"expected"):
            source.draw(gb.models.MLP(gb.Real(2)), torch.zeros(3, 2), seed=torch.Generator().manual_seed(0))
