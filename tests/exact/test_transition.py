"""The transition matrix reader: against matrices known by hand, and against the frequencies of real draws."""

import pytest
import torch

import gibbsite as gb
from gibbsite import random

S = gb.sample


def test_random_scan_gibbs_on_two_bits_by_hand(double):
    q = gb.distributions.Bernoulli(torch.tensor([0.4, -0.7]))
    a, b = q.logits.detach().sigmoid().tolist()
    expected = torch.zeros(4, 4)
    for i, (x, y) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        for value, p in ((0, 1 - a), (1, a)):
            expected[i, 2 * value + y] += 0.5 * p
        for value, p in ((0, 1 - b), (1, b)):
            expected[i, 2 * x + value] += 0.5 * p
    assert torch.allclose(gb.exact.transition_matrix(S.Gibbs(), q), expected, atol=1e-14)


@pytest.mark.parametrize(
    "kernel", [S.MH(S.Informed(draws=3)), S.HammingBall(3, 1), S.Mixture([S.Gibbs(), S.Wolff()], [1, 2])]
)
def test_frequencies_of_real_steps_match_the_matrix(kernel, device):
    """One step from each of 8 states 20,000 times; G-test over the rows, 1e-6 in all."""
    model = gb.models.Ising.from_edges(3, torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.3, 0.5]), 0.2).to(device)
    every, matrix = gb.exact.states(model.space).to(device), gb.exact.transition_matrix(kernel, model.to("cpu"))
    model, n = model.to(device), 20_000
    generator, counts = random.generator(3, device), torch.zeros(8, 8, dtype=torch.float64)
    for _ in range(40):  # a mixture's choice is shared by the chains of one step: many steps, not many chains
        x = every.repeat_interleave(n // 40, 0)
        state, _ = kernel.step(model, kernel.init(model, x), generator)
        place = gb.exact.index(model.space, state.x).cpu() + 8 * torch.arange(8).repeat_interleave(n // 40)
        counts += torch.bincount(place, minlength=64).view(8, 8)
    if isinstance(kernel, S.Mixture):
        parts = [gb.exact.transition_matrix(k, model.to("cpu")) for k in kernel.kernels]
        assert torch.allclose(matrix, (parts[0] + 2 * parts[1]) / 3)
        return
    assert counts[matrix == 0].sum() == 0
    expected = n * matrix
    possible = matrix > 0
    statistic = 2 * (counts[possible] * (counts[possible] / expected[possible]).clamp(min=1e-300).log()).sum()
    freedom = int(possible.sum()) - 8
    # Wilson-Hilferty: the chi-square quantile at 1 - 1e-6 (z = 4.75)
    assert float(statistic) < freedom * (1 - 2 / (9 * freedom) + 4.75 * (2 / (9 * freedom)) ** 0.5) ** 3


def test_impossible_states_stay_and_nan_decisions_are_errors(double):
    model = gb.Potential(lambda x: torch.where(x.sum(-1) > 2, -torch.inf, 0.0), gb.Binary(3))
    p, matrix = gb.exact.probabilities(model), gb.exact.transition_matrix(S.Gibbs(), model)
    assert torch.allclose(matrix.sum(1), torch.ones(8)) and torch.allclose(p @ matrix, p) and matrix[7, 7] == 1

    class Broken(S.Kernel):
        def init(self, model, x):
            return S.Gibbs().init(model, x)

        def step(self, model, state, generator):
            random.categorical(torch.full((len(state.x), 2), torch.nan), generator)

    with pytest.raises(ValueError, match="NaN probabilities"):
        gb.exact.transition_matrix(Broken(), gb.Binary(2).uniform())


def test_very_strong_bonds_keep_clusters_whole(double):
    """exp(b) would overflow: the matrix is that of a cluster that flips as one."""
    model = gb.models.Ising.from_edges(2, torch.tensor([[0, 1]]), torch.tensor(1e4))
    for kernel in (S.Wolff(), S.SwendsenWang()):
        matrix = gb.exact.transition_matrix(kernel, model)
        assert torch.allclose(matrix.sum(1), torch.ones(4))
        assert matrix[0, 3] + matrix[0, 0] == pytest.approx(1)


def test_continuous_draws_cannot_be_enumerated():
    with pytest.raises(TypeError, match="transition matrices are for discrete kernels"):
        gb.exact.transition_matrix(S.MH(S.Independent(_Noisy())), gb.Binary(2).uniform())
    with pytest.raises(TypeError, match="Binary or Categorical"):
        gb.exact.transition_matrix(S.Gibbs(), gb.Potential(lambda x: x.sum(-1), gb.Real(2)))


class _Noisy(gb.Distribution):
    space = gb.Binary(2)

    def forward(self, x):
        return gb.Binary(2).uniform()(x)

    def sample(self, n, *, seed):
        return (random.normal((n, 2), random.generator(seed)) > 0).to(torch.int8)
