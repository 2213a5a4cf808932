"""Exact stationarity: pi K = pi to 1e-10 in float64 for every discrete kernel; each mutant breaks it by more than 1e-4.

K is read off the code that samples (`gibbsite.exact.transition_matrix`), so nothing here is statistical.
"""

import pytest
import torch

import gibbsite as gb

from .cases import CASES, CLAMPED, S, bits, ring

pytestmark = pytest.mark.usefixtures("double")


def residual(kernel, model) -> float:
    """|pi K - pi|_1."""
    p = gb.exact.probabilities(model)
    return float((p @ gb.exact.transition_matrix(kernel, model) - p).abs().sum())


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_kernel_is_stationary_and_converges(case):
    model = case.model()
    p, matrix = gb.exact.probabilities(model), gb.exact.transition_matrix(case.kernel(), model)
    assert float((matrix.sum(1) - 1).abs().max()) < 1e-12
    assert float((p @ matrix - p).abs().sum()) < 1e-10
    # stationarity alone would let the identity pass: from every state the chain must also come to p
    assert float((torch.linalg.matrix_power(matrix, 1 << 20) - p).abs().sum(1).max()) < 1e-6


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_mutant_is_not_stationary(case):
    assert residual(case.mutant(), case.model()) > 1e-4


@pytest.mark.parametrize(("name", "kernel", "make"), CLAMPED, ids=[c[0] for c in CLAMPED])
def test_clamped_sites_stay_and_the_rest_has_its_conditional_law(name, kernel, make):
    model = make()
    states, p = gb.exact.states(model.space), gb.exact.probabilities(model)
    matrix = gb.exact.transition_matrix(kernel, model)
    held = (kernel.proposal if isinstance(kernel, S.MH) else kernel).clamp
    same = (states[:, None, held] == states[None, :, held]).all(-1)
    assert float(matrix[~same].abs().max()) == 0
    assert float((p @ matrix - p).abs().sum()) < 1e-10
    conditional = torch.where(same, p, 0.0) / torch.where(same, p, 0.0).sum(1, keepdim=True)
    assert float((torch.linalg.matrix_power(matrix, 1 << 20) - conditional).abs().sum(1).max()) < 1e-6


def test_unadjusted_discrete_langevin_is_not_stationary_but_nears_it():
    errors = [residual(S.Unadjusted(S.DiscreteLangevin(step)), bits()) for step in (1.0, 0.3, 0.1)]
    assert errors[0] > errors[1] > errors[2] > 0


def test_parallel_tempering_keeps_the_joint_law_and_a_swap_with_the_wrong_sign_does_not():
    model = gb.models.Ising.from_edges(
        3, torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.3, 0.8]), torch.tensor([0.1, -0.3, 0.5])
    )
    base = gb.distributions.Bernoulli(torch.tensor([0.2, 0.5, -0.4]))
    tempering = S.Tempering(S.MH(S.Informed()), base, betas=(0.2, 0.6, 1.0))
    every = gb.exact.states(model.space)
    n, path = len(every), gb.Geometric(base, model)
    joint = torch.cartesian_prod(*[torch.arange(n)] * 3)
    laws = [gb.exact.probabilities(path.at(beta)) for beta in tempering.betas]
    pi = laws[0][joint[:, 0]] * laws[1][joint[:, 1]] * laws[2][joint[:, 2]]

    def error(betas_of_the_law, parity):
        def step(rows, script):
            start = tempering.start(model, [every[joint[rows, r]] for r in range(3)])._replace(parity=parity)
            state, _ = tempering.step(model, start, script)
            return sum(gb.exact.index(model.space, state.rungs[r].x) * n ** (2 - r) for r in range(3))

        out = torch.zeros(len(joint))
        for end, origin, log_weight in gb.exact.outcomes(step, len(joint)):
            out.index_add_(0, end, betas_of_the_law[origin] * log_weight.exp())
        return float((out - betas_of_the_law).abs().sum())

    assert error(pi, 0) < 1e-10
    assert error(pi, 1) < 1e-10
    wrong = laws[1][joint[:, 0]] * laws[0][joint[:, 1]] * laws[2][joint[:, 2]]
    assert error(wrong, 0) > 1e-3


@pytest.mark.parametrize("proposal", [S.Informed(draws=2), S.PathAuxiliary(4), S.RandomFlips(2)])
def test_an_even_number_of_flips_is_refused_because_it_keeps_the_parity(proposal):
    with pytest.raises(ValueError, match="odd number on two-state sites"):
        S.MH(proposal).init(bits(), torch.zeros(1, 8, dtype=torch.int8))


def test_a_block_with_coupled_sites_is_refused():
    with pytest.raises(ValueError, match="sites 0 and 1 are coupled and both in block 0"):
        S.BlockGibbs(blocks=[[0, 1], [2, 4, 6], [3, 5, 7]]).init(ring(), torch.zeros(1, 8, dtype=torch.int8))
    allowed = S.BlockGibbs(blocks=[[0, 2], [1, 3], [4, 6], [5, 7]])
    assert residual(allowed, ring()) < 1e-10
