"""Means of weights in log space, their errors and effective sizes, against the same in plain arithmetic."""

import math
from statistics import NormalDist

import torch

from gibbsite.estimate.weights import ess, log_mean, log_mean_error, skew_margin, systematic, weighted_mean


def some(n=50, seed=0):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_log_space_is_plain_arithmetic_and_does_not_overflow():
    w = some().exp()
    log_w = some()
    assert math.isclose(log_mean(log_w), float(w.mean().log()), rel_tol=1e-12)
    assert math.isclose(ess(log_w), float(w.sum() ** 2 / w.square().sum()), rel_tol=1e-12)
    assert math.isclose(log_mean_error(log_w), float(w.std() / w.mean() / 50**0.5), rel_tol=1e-9)
    assert math.isclose(log_mean(log_w + 5000), log_mean(log_w) + 5000, rel_tol=1e-12)
    assert math.isclose(ess(log_w - 5000), ess(log_w), rel_tol=1e-9)


def test_edges():
    equal, one, none = torch.zeros(7), torch.tensor([0.0] + [-math.inf] * 6), torch.full((7,), -math.inf)
    assert math.isclose(ess(equal), 7) and log_mean_error(equal) < 1e-12
    assert math.isclose(ess(one), 1) and math.isclose(log_mean_error(one), 1.0)
    assert ess(none) == 0 and log_mean(none) == -math.inf and log_mean_error(none) == math.inf
    assert log_mean_error(torch.zeros(1)) == math.inf


def test_weighted_mean_and_its_error():
    log_w, f = some(seed=1), some(seed=2)
    share = log_w.exp() / log_w.exp().sum()
    mean, error = weighted_mean(f, log_w)
    assert math.isclose(float(mean), float((share * f).sum()))
    assert math.isclose(float(error), float((share.square() * (f - mean).square()).sum().sqrt()))


def test_the_margin_of_skewed_weights_is_the_first_term_of_edgeworths_series():
    """A studentised mean lies below -z with probability Phi(-z) + phi(z) (2 z^2 + 1) g / (6 sqrt n) + ..., and -z moved by
    the margin makes up for that term: at least half of the excess over Phi(-z) must go. 200,000 means of 50 exponential
    variables, g = 2; both frequencies to 4.9 sigma, 1e-6."""
    n, count, z = 50, 200_000, 3.0
    w = torch.empty(count, n).exponential_(generator=torch.Generator().manual_seed(0)).double()
    t = (w.mean(1) - 1) / (w.std(1) / n**0.5)
    excess, moved = (
        (float((t < -end).double().mean()) - NormalDist().cdf(-z)) for end in (z, z + (2 * z**2 + 1) * 2 / (6 * n**0.5))
    )
    noise = 4.9 * (0.02 / count) ** 0.5
    assert abs(moved) + noise < 0.5 * (excess - noise)
    log_w = some(seed=4)
    x = log_w.exp()
    skewness = ((x - x.mean()) / x.std(correction=0)).pow(3).mean()
    assert math.isclose(skew_margin(log_w + 700, z), float(19 / 6 * skewness / 50**0.5), rel_tol=1e-9)
    assert skew_margin(torch.zeros(9), z) == 0 and skew_margin(torch.tensor([0.0, 0.0, -9.0]), z) == 0


def test_systematic_resampling_is_unbiased_and_within_one_of_the_expected_count():
    log_w, n = some(seed=3), 20
    share, counts = log_w.softmax(0), torch.zeros(50, dtype=torch.float64)
    source, trials = torch.Generator().manual_seed(0), 4000
    for _ in range(trials):
        drawn = torch.bincount(systematic(log_w, n, source), minlength=50)
        assert bool(((drawn - n * share).abs() < 1 + 1e-9).all())
        counts += drawn
    # a count is floor or ceil: variance at most 1/4; 50 two-sided tests at 1e-6 together: 5.6 sigma
    assert bool(((counts / trials - n * share).abs() < 5.6 * 0.5 / trials**0.5).all())
