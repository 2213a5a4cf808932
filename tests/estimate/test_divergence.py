"""The divergence on a grid: against closed forms, in both dimensions, and not trusted where box or step are wrong."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Mixture, Normal

E = gb.estimate


def normal_divergence(p, q):
    """KL of two normal laws."""
    away = q.mean - p.mean
    quadratic = torch.trace(torch.linalg.solve(q.covariance, p.covariance)) + away @ torch.linalg.solve(q.covariance, away)
    return float(quadratic - len(away) + torch.logdet(q.covariance) - torch.logdet(p.covariance)) / 2


def test_it_is_that_of_normal_laws_whatever_the_gauge(double):
    """Both ways round, so that each is the other's mutant; a constant added to U changes nothing."""
    p = Normal(torch.tensor([0.5, -0.3]), torch.tensor([[0.5, 0.2], [0.2, 0.8]]))
    q = Normal(torch.zeros(2), torch.tensor([[1.0, -0.3], [-0.3, 2.0]]))
    for a, b in ((p, q), (q, p)):
        found = E.divergence(a, lambda x, b=b: b(x) - 40, (-9, -11), (9, 11), 201)
        assert found.value == pytest.approx(normal_divergence(a, b), abs=1e-9) and found.trusted
    assert abs(normal_divergence(p, q) - normal_divergence(q, p)) > 0.1
    one, other = Normal.diagonal([0.0], 1.0), Normal.diagonal([1.0], 1.0)
    assert E.divergence(one, other, -9, 9).value == pytest.approx(0.5, abs=1e-9)
    assert E.divergence(one, one, -9, 9).value == pytest.approx(0, abs=1e-12)


def test_a_law_that_leaves_parts_out_costs_what_it_leaves_out(double):
    """Of two far modes the model has one: log 2 the other way round, and endless where U is -inf."""
    parts = [Normal.diagonal([at], 0.3) for at in (-3.0, 3.0)]
    both = Mixture([1, 1], parts)
    assert E.divergence(parts[0], both, -6, 6).value == pytest.approx(math.log(2), abs=1e-9)
    half = gb.Potential(lambda x: torch.where(x[..., 0] < 0, both(x), -math.inf), gb.Real(1))
    assert E.divergence(both, half, -6, 6).value == math.inf


def test_a_wrong_box_or_step_is_told(double):
    p, wide = Normal.diagonal([0.0], 1.0), Normal.diagonal([0.0], 4.0)
    for low, high, points, why in (
        (-6, 6, 401, "model's integral"),
        (-1, 1, 401, "truth's integral"),
        (-40, 40, 21, "points"),
    ):
        found = E.divergence(p, wide, low, high, points)
        assert not found.trusted and why in found.why
    with pytest.raises(TypeError, match=r"truth: expected a gibbsite\.Distribution, got MLP"):
        E.divergence(gb.models.MLP(gb.Real(1)), p, -1, 1)
