"""Score matching, exact, sliced and denoising: values by hand, by quadrature, and what they learn."""

import pytest
import torch

import gibbsite as gb

from .asymptotics import close, covariance, flat, gradient, gradient_gap, hessian, minimise

L = gb.learn


class Quadratic(gb.Model):
    """U(x) = -x.A x / 2 + b.x: a normal law with precision A, which is learned."""

    def __init__(self, precision, linear):
        super().__init__()
        self.space = gb.Real(len(linear))
        self.entries = torch.nn.Parameter(precision[torch.ones_like(precision).triu() > 0].clone())
        self.linear = torch.nn.Parameter(linear.clone())

    @property
    def precision(self):
        n = len(self.linear)
        upper = self.entries.new_zeros(n, n).masked_scatter(self.entries.new_ones(n, n).triu() > 0, self.entries)
        return upper + upper.triu(1).T

    def forward(self, x):
        return -0.5 * (x * (x @ self.precision)).sum(-1) + x @ self.linear


def quadratic():
    return Quadratic(torch.tensor([[1.5, 0.4], [0.4, 0.8]]), torch.tensor([0.3, -0.5]))


def normal(model, extra=0.0):
    covariance = torch.linalg.inv(model.precision.detach())
    return gb.distributions.Normal(covariance @ model.linear.detach(), covariance + extra * torch.eye(2))


def grid(low=-6.0, high=6.0, points=241):
    """The trapezoid rule on a line: exact to rounding for smooth functions that vanish at the ends."""
    x = torch.linspace(low, high, points)
    return x[:, None], torch.full((points,), (high - low) / (points - 1))


def well():
    """A double well of one learned net on a line, kept integrable by -x^4 / 4."""
    net = gb.models.MLP(gb.Real(1), (6,), activation=torch.tanh, seed=4).double()
    return net, gb.Product(net, lambda x: 0.25 * (2 * x.square() - x.pow(4)).sum(-1))


def against_the_fisher_divergence(loss, data_density):
    """Gradients of the loss under the data's density on a grid, and of E |s - s_data|^2 / 2 as it is defined."""
    net, model = well()
    x, width = grid()
    p = width * data_density(x[:, 0]).exp()
    p = p / p.sum()
    z = x.clone().requires_grad_()
    (s_data,) = torch.autograd.grad(data_density(z[:, 0]).sum(), z)
    _, s = gb.score(model, x, graph=True)
    definition = 0.5 * (p * (s - s_data).square()[:, 0]).sum()
    weighted = (p * torch.stack([loss(model, point[None]) for point in x])).sum()
    return weighted, definition, list(net.parameters())


def bumps(x):
    return torch.logaddexp(-2 * (x - 1).square(), -1.5 * (x + 1.2).square() + 0.3)


def test_gradient_is_that_of_the_fisher_divergence_by_quadrature(double):
    weighted, definition, parameters = against_the_fisher_divergence(L.score_matching, bumps)
    assert gradient_gap(weighted, definition, parameters) < 1e-8

    def mutant(model, x):  # half the trace
        _, s = gb.score(model, x, graph=True)
        return 0.5 * (L.score_matching(model, x) + 0.5 * s.square().sum(1).mean())

    wrong, definition, parameters = against_the_fisher_divergence(mutant, bumps)
    assert gradient_gap(wrong, definition, parameters) > 1e-2


def test_the_loss_of_a_quadratic_by_hand(double):
    """s = b - A x, so the loss is |b - A x|^2 / 2 - tr A."""
    model, x = quadratic(), torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    by_hand = 0.5 * (model.linear - x @ model.precision).square().sum(1).mean() - model.precision.trace()
    parameters = list(model.parameters())
    assert gradient_gap(L.score_matching(model, x), by_hand, parameters) < 1e-12
    assert gradient_gap(L.score_matching(model, x), by_hand + model.precision.trace(), parameters) > 1e-2


def test_slices_along_all_signs_are_the_exact_trace(double):
    """On 2 entries v is (+-1, +-1): v.Hv averages to the trace exactly over the 4 of them."""
    from gibbsite.learn.score_matching import directional, with_score

    _, x = quadratic(), torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    net = gb.models.MLP(gb.Real(3), (7,), seed=1).double()
    leaf, s = with_score(net, x)
    signs = 2.0 * gb.exact.states(gb.Binary(3)) - 1
    mean = torch.stack([directional(leaf, s, v) for v in signs]).mean(0)
    sliced = (0.5 * s.square().sum(1) + mean).mean()
    parameters = list(net.parameters())
    assert gradient_gap(sliced, L.score_matching(net, x), parameters) < 1e-10
    one = (0.5 * s.square().sum(1) + directional(leaf, s, signs[0])).mean()  # mutant: always the same direction
    assert gradient_gap(one, L.score_matching(net, x), parameters) > 1e-2


def test_sliced_is_the_exact_loss_on_average(double):
    """4,000 directions at one point, whose v.Hv has variance 2 sum_(i != j) H_ij^2: within 4.9 standard errors, 1e-6."""
    net, x = gb.models.MLP(gb.Real(3), (7,), seed=1).double(), torch.tensor([0.5, -1.0, 0.3])
    h = torch.autograd.functional.hessian(lambda z: net(z), x)
    error = float((2 * (h - h.diag().diag()).square().sum() / 4000).sqrt())
    found = L.sliced_score_matching(net, x.expand(4000, 3), seed=1).detach()
    exact = L.score_matching(net, x[None]).detach()
    assert abs(float(found - exact)) < 4.9 * error
    assert abs(float(found - exact + h.trace())) > 4.9 * error  # mutant: without the trace


@pytest.mark.parametrize("slices", [1, 2, 5])
def test_every_direction_of_signs_has_the_trace_of_a_diagonal(slices, double):
    """v.Hv = tr H for every v of signs where H is diagonal: then the sliced loss is the exact one, however many slices."""
    model = Quadratic(torch.tensor([[1.5, 0.0], [0.0, 0.8]]), torch.tensor([0.3, -0.5]))
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    sliced, exact = L.sliced_score_matching(model, x, slices, seed=1), L.score_matching(model, x)
    assert float((sliced - exact).detach()) == pytest.approx(0, abs=1e-12)
    slopes = [gradient(loss, [model.entries])[[0, 2]] for loss in (sliced, exact, exact - model.precision.trace())]
    assert torch.allclose(slopes[0], slopes[1], atol=1e-12) and not torch.allclose(slopes[0], slopes[2])  # the trace twice


def test_denoising_is_the_fisher_divergence_to_blurred_data_by_quadrature(double):
    """Data at three points: p_y is a mixture of three normal laws, and the loss an integral over y."""
    net, model = well()
    points, scale, parameters = torch.tensor([-1.0, 0.2, 1.1]), 0.4, list(net.parameters())
    y, width = grid()
    blurred = gb.distributions.NormalMixture(torch.ones(3), points[:, None], scale)
    p = width * blurred(y).exp()
    _, s = gb.score(model, y, graph=True)
    _, s_data = gb.score(blurred, y)
    definition = 0.5 * (p * (s - s_data).square()[:, 0]).sum()

    def integral(sign):
        total = torch.zeros(())
        for point in points:  # x is fixed, y on the grid
            weight = width * torch.exp(-0.5 * ((y[:, 0] - point) / scale) ** 2) / (scale * (2 * torch.pi) ** 0.5)
            total = total + 0.5 * (weight * (s[:, 0] - sign * (point - y[:, 0]) / scale**2).square()).sum() / 3
        return total

    assert gradient_gap(integral(1), definition, parameters) < 1e-8
    assert gradient_gap(integral(-1), definition, parameters) > 1e-2  # mutant: away from the data


def test_denoising_averages_to_that_integral(double):
    """200,000 noisy copies of one point, against the integral over y: 5.5 standard errors."""
    _, model = well()
    x, scale = torch.full((200_000, 1), 0.3), 0.4
    y, width = grid()
    weight = width * torch.exp(-0.5 * ((y[:, 0] - 0.3) / scale) ** 2) / (scale * (2 * torch.pi) ** 0.5)
    _, s = gb.score(model, y)
    each = 0.5 * (s[:, 0] - (0.3 - y[:, 0]) / scale**2).square()
    mean = float((weight * each).sum())
    error = float((weight * (each - mean).square()).sum().sqrt()) / 200_000**0.5
    assert abs(float(L.denoising_score_matching(model, x, scale, seed=0).detach()) - mean) < 5.5 * error
    assert abs(float(L.denoising_score_matching(model, x, 1.1 * scale, seed=0).detach()) - mean) > 5.5 * error


def sandwich(model, per_state, parts, n):
    """The covariance of the minimiser, its two halves as means over 8,000 draws: 2 % precise."""
    parameters = list(model.parameters())
    rows = []
    for values in (per_state(*part) for part in parts):
        each = torch.autograd.grad(values, parameters, torch.eye(len(values)), is_grads_batched=True, retain_graph=True)
        rows.append(torch.cat([g.flatten(1) for g in each], 1))
    curvature = torch.stack([hessian(per_state(*part).mean(), parameters) for part in parts]).mean(0)
    return covariance(curvature, torch.cat(rows).T.cov(), n)


@pytest.mark.parametrize("name", ["exact", "sliced", "denoising"])
def test_recovers_a_normal_law(name, double):
    """30,000 draws: A and b within the asymptotic ellipse at 1e-6; the mutant learns from data with an entry 3 % too wide.

    On a quadratic the sliced loss has tr A + sign (A_12 + A_21) as its trace, the denoised one A of the blurred data.
    """
    model, n, scale = quadratic(), 30_000, 0.5
    truth, parameters = flat(list(model.parameters())), list(model.parameters())
    sharp = normal(model)
    noise = torch.randn(n, 2, generator=torch.Generator().manual_seed(2))
    x = sharp.sample(n, seed=1)
    signs = 2.0 * torch.randint(2, (n, 2), generator=torch.Generator().manual_seed(3)) - 1

    def of_state(y, e, v):
        s = model.linear - y @ model.precision
        if name == "denoising":
            return 0.5 * (s + e / scale).square().sum(1)
        trace = model.precision.trace() if name == "exact" else ((v @ model.precision) * v).sum(1)
        return 0.5 * s.square().sum(1) - trace

    def loss(data):
        if name == "exact":
            return L.score_matching(model, data)
        if name == "sliced":
            return L.sliced_score_matching(model, data, seed=3)
        return L.denoising_score_matching(model, data, scale, seed=2)

    if name == "denoising":  # the truth is the law of the blurred data
        blurred = normal(model, extra=scale**2)
        with torch.no_grad():
            a = torch.linalg.inv(blurred.covariance)
            model.entries.copy_(a[torch.ones_like(a).triu() > 0])
            model.linear.copy_(a @ blurred.mean)
        truth = flat(parameters)
    y = x + scale * noise if name == "denoising" else x
    law = sandwich(
        model, of_state, [(y[k : k + 1000], noise[k : k + 1000], signs[k : k + 1000]) for k in range(0, 8000, 1000)], n
    )
    assert close(minimise(lambda: loss(x), parameters), truth, law)
    assert not close(minimise(lambda: loss(x * torch.tensor([1.03, 1.0])), parameters), truth, law)


def test_objectives_are_their_losses_and_have_gradients(double, device):
    model = gb.models.MLP(gb.Real((2, 2)), (5,), seed=0).double().to(device)
    x = torch.randn(6, 2, 2, generator=torch.Generator().manual_seed(0)).to(device)
    pairs = [
        (L.ScoreMatching(model), L.score_matching(model, x)),
        (L.SlicedScoreMatching(model, slices=2), L.sliced_score_matching(model, x, 2, seed=3)),
        (L.DenoisingScoreMatching(model, 0.3), L.denoising_score_matching(model, x, 0.3, seed=3)),
    ]
    for objective, loss in pairs:
        found = objective(x, seed=torch.Generator(device).manual_seed(3)).loss
        assert float(found.detach()) == float(loss.detach())
        assert gradient(found, list(model.parameters())).abs().max() > 0


def test_a_flat_potential_has_score_zero(double):
    flat_one = gb.Potential(lambda x: 0 * x.sum(-1), gb.Real(2))
    assert float(L.score_matching(flat_one, torch.ones(3, 2))) == 0
    assert float(L.score_matching(gb.Potential(lambda x: x.sum(-1), gb.Real(2)), torch.ones(3, 2))) == 1
