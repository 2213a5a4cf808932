"""A model and a generator learned together, on linear normal laws: where each algorithm must end, exactly, and how near."""

import math

import pytest
import torch
from torch import Tensor

import gibbsite as gb
from gibbsite.distributions import FixedScale, LatentNormal, Normal
from gibbsite.learn import Contrastive, Cooperative, Exclusive, Revised
from gibbsite.sample import HMC, SGLD, Langevin

from .asymptotics import close

A, S, EPS, DELTA, STEPS, BATCH = 0.9, 0.6, 0.4, 0.5, 4, 2000
VARIANCE = A**2 + S**2  # of the data


class Precision(gb.Model):
    """U(x) = -P x^2 / 2, P learned."""

    def __init__(self, precision):
        super().__init__()
        self.space, self.precision = gb.Real(1), torch.nn.Parameter(torch.tensor(precision))

    def forward(self, x):
        return -0.5 * self.precision * x[..., 0].square()


def generator(a):
    network = torch.nn.utils.skip_init(torch.nn.Linear, 1, 1, bias=False)
    with torch.no_grad():
        network.weight.fill_(a)
    return LatentNormal(FixedScale(network, S), 1, 1)


def moves(kind: str, p: float, a: float) -> list[tuple[Tensor, Tensor]]:
    """The chain of (h, x) as steps z -> M z + noise of covariance Q."""
    eye, none = torch.eye(2), torch.zeros(2)
    along_h, along_x = torch.tensor([-(1 + a**2 / S**2), a / S**2]), torch.tensor([a / S**2, -1 / S**2])
    of_p = torch.tensor([0.0, -p])
    if kind == "cooperative":
        step = eye + EPS**2 / 2 * torch.stack((none, of_p)), torch.diag(torch.tensor([0, EPS**2]))
        inner = eye + DELTA**2 / 2 * torch.stack((along_h, none)), torch.diag(torch.tensor([DELTA**2, 0]))
        return [step] * STEPS + [inner] * STEPS
    other = torch.tensor([1.0, 0.0]) + DELTA**2 / 2 * along_h  # h*, without its noise
    pull = of_p + along_x - torch.tensor([0, -1 / S**2]) - a / S**2 * other
    spread = torch.tensor([EPS**2, EPS**2 + (EPS**2 / 2 * a / S**2 * DELTA) ** 2])
    first = eye + EPS**2 / 2 * torch.stack((along_h, of_p)), EPS**2 * eye
    later = eye + EPS**2 / 2 * torch.stack((along_h, pull)), torch.diag(spread)
    return [first] + [later] * (STEPS - 1)


def expected(kind: str, theta: Tensor) -> Tensor:
    """The mean of the loss's gradient in (P, a), from the exact second moments of what the source draws."""
    p, a = theta.tolist()
    if kind == "exclusive":
        v = a**2 + S**2
        return torch.tensor([(VARIANCE - v) / 2, a * (p - 1 / v)])
    c = torch.tensor([[1, a], [a, a**2 + S**2]])
    for m, q in moves(kind, p, a):
        c = m @ c @ m.T + q
    return torch.stack(((VARIANCE - c[1, 1]) / 2, -(c[0, 1] - a * c[0, 0]) / S**2))


def jacobian(kind: str, theta: Tensor) -> Tensor:
    return torch.stack([(expected(kind, theta + e) - expected(kind, theta - e)) / 2e-5 for e in 1e-5 * torch.eye(2)], 1)


def fixed_point(kind: str) -> Tensor:
    """Where the expected gradient vanishes, by Newton's method from the truth."""
    theta = torch.tensor([1 / VARIANCE, A])
    for _ in range(30):
        theta = theta - torch.linalg.solve(jacobian(kind, theta), expected(kind, theta))
    assert expected(kind, theta).abs().max() < 1e-12 and torch.linalg.eigvals(jacobian(kind, theta)).real.min() > 0
    return theta


def learner(kind: str, theta: Tensor):
    p, a = theta.tolist()
    own = generator(a)
    source = {
        "inclusive": lambda: Revised(own, SGLD(EPS), Langevin(DELTA), STEPS),
        "exclusive": lambda: Exclusive(own, HMC(0.25, 4), 6),
        "cooperative": lambda: Cooperative(own, Langevin(EPS), Langevin(DELTA), STEPS),
    }[kind]()
    objective = Contrastive(Precision(p), source)
    return objective, [objective.model.precision, own.decoder.mean.weight]


def slope(objective, parameters, source) -> Tensor:
    data = Normal(torch.zeros(1), torch.tensor([[VARIANCE]])).sample(BATCH, seed=source)
    loss = objective(data, seed=source).loss
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])


@pytest.mark.parametrize("kind", ["inclusive", "exclusive", "cooperative"])
def test_the_mean_gradient_is_the_exact_one(kind, double):
    """Away from the fixed point, 100 batches: each entry within 5.9 standard errors (t of 99, 1e-6 over two, two-sided)."""
    theta = torch.tensor([0.8, 0.7])
    objective, parameters = learner(kind, theta)
    source = torch.Generator().manual_seed(0)
    found = torch.stack([slope(objective, parameters, source) for _ in range(100)])
    error = found.std(0) / math.sqrt(100)
    assert ((found.mean(0) - expected(kind, theta)).abs() < 5.9 * error).all()
    assert ((found.mean(0) + expected(kind, theta)).abs() > 5.9 * error).all()  # mutant: ascends


@pytest.mark.parametrize("kind", ["inclusive", "exclusive", "cooperative"])
def test_model_and_generator_reach_the_fixed_point(kind, double):
    """P and a, learned together from elsewhere: the averaged iterate is within its ellipse around the exact fixed point.

    Its covariance is J^-1 V J^-T / steps (Polyak and Juditsky, 1992), J the exact Jacobian of the mean gradient and V the
    covariance of the gradients of 100 batches at the fixed point. Exclusive-NRF's is the truth; the others' is where their
    few steps of finite size leave them. The mutant's generator does not learn.
    """
    end, steps, burn = fixed_point(kind), 200, 90
    objective, parameters = learner(kind, end)
    source = torch.Generator().manual_seed(0)
    noise = torch.stack([slope(objective, parameters, source) for _ in range(100)]).T.cov()
    inverse = torch.linalg.inv(jacobian(kind, end))
    law = inverse @ noise @ inverse.T / steps

    def learned(rates, burn, steps) -> Tensor:
        objective, parameters = learner(kind, torch.tensor([0.8, 0.5]))
        mean, source = torch.zeros(2), torch.Generator().manual_seed(1)
        for step in range(steps + burn):
            change = rates * slope(objective, parameters, source)
            with torch.no_grad():
                for parameter, part in zip(parameters, change, strict=True):
                    parameter -= part
            if step >= burn:
                mean += torch.stack([parameter.detach().flatten()[0] for parameter in parameters]) / steps
        return mean

    if kind == "exclusive":
        assert torch.allclose(end, torch.tensor([1 / VARIANCE, A]), atol=1e-10)
    assert close(learned(torch.tensor([0.3, 0.3]), burn, steps), end, law)
    assert not close(learned(torch.tensor([0.3, 0.0]), 30, 30), end, law)
