"""Mixtures: densities, moments and samples agree."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Bernoulli, Mixture, Normal, NormalMixture

MEANS = torch.tensor([[-1.0, 0.5], [2.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)


def pair():
    """The same mixture twice."""
    parts = [Normal.diagonal(m, 0.5) for m in MEANS]
    return Mixture(WEIGHTS, parts), NormalMixture(WEIGHTS, MEANS, 0.5)


def test_both_kinds_agree():
    one, other = pair()
    x = one.sample(100, seed=0)
    assert torch.allclose(one(x), other(x), atol=1e-12)
    assert torch.allclose(one.mean, other.mean) and torch.allclose(one.covariance, other.covariance)


def worst_z(x, q):
    """The largest z-score of the mean and the 4 products, with empirical standard errors: at most 6 tests."""
    away = x - q.mean
    products = away[:, :, None] * away[:, None, :] - q.covariance
    both = torch.cat((away, products.flatten(1)), 1)
    return (both.mean(0) / both.std(0)).abs().max().item() * len(x) ** 0.5


@pytest.mark.parametrize("which", [0, 1])
def test_samples_have_the_moments_in_any_order(which):
    """5.3 is passed with probability 6e-7. Mutants: equal weights; draws left sorted by component."""
    q = pair()[which]
    x = q.sample(50_000, seed=1)
    assert worst_z(x, q) < 5.3 and worst_z(x[:5_000], q) < 5.3
    equal = Mixture(torch.ones(3, dtype=torch.float64), [Normal.diagonal(m, 0.5) for m in MEANS])
    assert worst_z(equal.sample(50_000, seed=1), q) > 5.3
    nearest = torch.cdist(x, MEANS).argmin(1)
    assert worst_z(x[nearest.argsort()][:5_000], q) > 5.3


def test_discrete_components_sum_to_one():
    q = Mixture([1, 3], [Bernoulli(torch.tensor([1.0, -1.0, 0.3])), Bernoulli(torch.zeros(3))])
    assert abs(gb.exact.log_z(q).item()) < 1e-6
    assert q.sample(9, seed=0).dtype == torch.int8 and q.sample(0, seed=0).shape == (0, 3)
    with pytest.raises(TypeError, match="exact moments"):
        _ = q.mean


def test_a_component_of_weight_zero_is_never_drawn():
    q = Mixture([0.0, 1.0], [Normal.diagonal(torch.tensor([m]), 0.1) for m in (-5.0, 5.0)])
    assert (q.sample(100, seed=0) > 0).all() and q(torch.zeros(1, 1)).isfinite().all()


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 2.0], [0.0, 0.0]])
def test_bad_weights(weights):
    with pytest.raises(ValueError, match="weights: expected 2 non-negative"):
        Mixture(weights, [Normal.standard(1), Normal.standard(1)])


def test_one_space():
    with pytest.raises(ValueError, match="one space"):
        Mixture([1, 1], [Normal.standard(1), Normal.standard(2)])


def test_the_weights_of_double_components_are_double():
    weights = [0.1, 0.2, 0.7]
    wanted = torch.tensor(weights, dtype=torch.float64)
    for q in (Mixture(weights, [Normal.diagonal(m, 0.5) for m in MEANS]), NormalMixture(weights, MEANS, 0.5)):
        assert q.log_weights.dtype == torch.float64 and torch.allclose(q.weights, wanted, rtol=1e-15, atol=0)
    single = Mixture(weights, [Normal.diagonal(m.float(), 0.5) for m in MEANS])
    assert single.log_weights.dtype == single(torch.zeros(1, 2)).dtype == torch.float32


def test_made_double_the_weights_sum_to_one():
    """The mutant sums the weights as float32 rounded them."""
    weights = torch.tensor([0.1, 0.2, 0.7])
    q = Mixture(weights, [Bernoulli(torch.tensor([value, 0.3])) for value in (-1.0, 0.0, 2.0)]).double()
    assert abs(gb.exact.log_z(q).item()) < 1e-15 < abs(q.log_weights.logsumexp(0).item())
    grid = NormalMixture(weights, MEANS.float(), 0.3).double()
    laws = [Normal.diagonal(m, float(s)) for m, s in zip(grid.means, grid.scales, strict=True)]
    x = grid.sample(20, seed=0)
    logs = torch.stack([law(x) for law in laws], -1) + weights.double().log() - weights.double().sum().log()
    assert (grid(x) - logs.logsumexp(-1)).abs().max() < 1e-7  # the weights are those of float32
    equal = NormalMixture(torch.ones(3), MEANS.float(), 0.3).double()
    logs = torch.stack([law(x) for law in laws], -1).logsumexp(-1) - torch.tensor(3.0, dtype=torch.float64).log()
    assert (equal(x) - logs).abs().max() < 1e-13


def test_a_mixtures_draws_cannot_be_enumerated_and_its_components_can(double):
    parts = [Bernoulli(torch.tensor([1.0, -1.0])), Bernoulli(torch.zeros(2))]
    model = gb.models.Ising(torch.tensor([[0.0, 0.5], [0.5, 0.0]]))
    with pytest.raises(TypeError, match="draws cannot be enumerated"):
        gb.exact.transition_matrix(gb.sample.MH(gb.sample.Independent(Mixture([1, 3], parts))), model)
    kernel = gb.sample.Mixture([gb.sample.MH(gb.sample.Independent(q)) for q in parts], [1, 3])  # as the error says
    p, matrix = gb.exact.probabilities(model), gb.exact.transition_matrix(kernel, model)
    assert (p @ matrix - p).abs().sum() < 1e-14
