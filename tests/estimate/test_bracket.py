"""What the bracket says when it should not be trusted, and how it chooses base, path and kernel."""

import math

import pytest
import torch

import gibbsite as gb
from gibbsite.estimate.agreement import group_p_value
from gibbsite.estimate.base import default_base, path_to
from gibbsite.estimate.kernels import default_kernels

S, M, D = gb.sample, gb.models, gb.distributions
ising = M.Ising.lattice((3, 4), coupling=0.3, field=0.1)
LOG_Z = float(gb.exact.log_z(ising))


def test_the_same_seed_gives_the_same_estimate_and_another_does_not():
    one, two, other = (gb.bracket(ising, temperatures=20, chains=20, seed=s) for s in (0, 0, 1))
    assert one == two != other


def test_a_generator_a_schedule_data_and_exact_draws_are_taken():
    p = gb.exact.probabilities(ising)
    x = gb.exact.states(ising.space)[torch.multinomial(p, 60, True, generator=torch.Generator().manual_seed(0))]
    betas = gb.estimate.sigmoid(60)
    z = gb.bracket(ising, temperatures=betas, data=x, x=x, seed=torch.Generator().manual_seed(1))
    assert z.trusted and z.lower < LOG_Z < z.upper
    z = gb.bracket(ising, temperatures=betas, data=x, seed=1)
    assert z.trusted and z.lower < LOG_Z < z.upper


def test_a_callable_is_bracketed():
    space = gb.Binary(8)
    field = torch.linspace(-1, 1, 8)
    z = gb.bracket(lambda x: space.embed(x) @ field, temperatures=200, seed=0, space=space)
    assert z.trusted and z.lower < float(field.exp().log1p().sum()) < z.upper


def test_reverse_chains_from_the_wrong_law_make_the_ends_cross_and_it_says_so():
    hot = ising.space.uniform().sample(100, seed=0)  # not draws of the model at all
    z = gb.bracket(ising, x=hot, temperatures=10, seed=0)
    assert not z.trusted
    assert "the ends cross" in z.why and "disagree on the mean U" in z.why


def test_chains_settle_however_few_the_temperatures():
    """Three temperatures: chains that settle for three steps are no draws of the model, and the upper end lies too low. An
    end is on the wrong side once in a thousand: more than 2 of 8 have probability below 1e-7."""
    model = M.Ising.lattice(4, coupling=0.5, field=0.1)
    log_z = float(gb.exact.log_z(model))

    def wrong(**how):
        runs = [gb.bracket(model, temperatures=3, chains=200, seed=s, **how) for s in range(8)]
        return sum(not z.lower < log_z < z.upper for z in runs)

    assert wrong() <= 2
    assert wrong(settling=3) > 2  # the mutant


def test_a_kernel_that_cannot_mix_is_found_out_by_its_starts():
    """Two far wells: no chain crosses, and the base finds them in other proportions than the annealed particles do."""
    wells = D.NormalMixture(torch.tensor([0.95, 0.05]), torch.tensor([[-6.0], [6.0]]), 0.3)
    base = D.Normal.diagonal([2.0], 5.0)
    path = gb.Geometric(base, gb.Product(wells))
    z = gb.bracket(gb.Product(wells), path=path, kernel=S.MALA(0.3), temperatures=100, chains=200, seed=0)
    assert not z.trusted and "not forgotten where they started" in z.why


def test_too_few_temperatures_are_told():
    strong = M.Ising.lattice(8, coupling=0.44)
    z = gb.bracket(strong, temperatures=2, chains=30, settling=300, seed=0)
    assert not z.trusted and "the ESS is" in z.why and "the gap is wide" in z.why
    assert z.ess < 5 and not math.isnan(z.value) and z.lower < float(gb.exact.kaufman_log_z(8, 8, 0.44)) < z.upper


def test_a_bracket_wider_than_asked_for_is_not_trusted():
    assert not gb.bracket(ising, temperatures=50, widest=0.001, seed=0).trusted


def test_states_that_are_impossible_are_left_behind():
    space = gb.Binary(6)

    def hard(x):  # only states with at least four ones
        return torch.where(x.sum(-1) >= 4, 0.0, -torch.inf)

    model = gb.Potential(hard, space)
    z = gb.bracket(model, kernel=S.Gibbs(), temperatures=50, chains=200, seed=0)
    assert z.lower < math.log(15 + 6 + 1) < z.upper
    with pytest.raises(ValueError, match=r"every chain stands at a state that the model at beta=0\.02"):
        gb.bracket(gb.Potential(lambda x: torch.full(x.shape[:1], -torch.inf), space), temperatures=50, chains=5, seed=0)


def test_defaults_follow_the_model():
    rbm, binary = M.RBM(6, 3), gb.Potential(lambda x: x.float().sum(-1), gb.Binary(4))
    path = path_to(rbm, default_base(rbm, None, seed=0))
    assert isinstance(path, gb.estimate.RBMPath) and isinstance(default_kernels(path, seed=0).forward, S.BlockGibbs)
    blocks = default_kernels(path_to(ising, ising.space.uniform()), seed=0)
    order = [members.tolist() for members in blocks.forward.classes(ising)]
    assert [list(block) for block in blocks.backward.blocks] == order[::-1]
    assert isinstance(default_kernels(path_to(binary, binary.space.uniform()), seed=0).forward.proposal, S.Informed)
    assert isinstance(default_kernels(path_to(D.Normal.standard(2), D.Normal.standard(2)), seed=0).forward(0.5), S.HMC)


def test_bases_are_fitted_in_the_models_space():
    bits = torch.tensor([[0, 1], [0, 1], [1, 1]])
    fit = gb.estimate.fit_base
    assert torch.allclose(fit(gb.Binary(2), bits).logits.sigmoid(), torch.tensor([2 / 5, 4 / 5]))
    assert isinstance(fit(gb.Categorical(2, 3), bits), D.Independent)
    real = torch.tensor([[0.0, 1.0], [2.0, 1.0]])
    normal = fit(gb.Real(2), real)
    assert torch.allclose(normal.mean, torch.tensor([1.0, 1.0])) and float(normal.covariance[0, 0]) == pytest.approx(2.0)


def test_the_permutation_test_is_calibrated_and_has_power():
    """Under the null the p-value is uniform: of 300, those below 0.1 number 30 +- 4.9 * 5.2; a shift is seen."""
    source = torch.Generator().manual_seed(0)
    group = torch.arange(60) % 3
    p = torch.tensor(
        [group_p_value(torch.randn(60, 4, generator=source), group, shuffles=200, seed=source) for _ in range(300)]
    )
    assert abs(int((p < 0.1).sum()) - 30) < 4.9 * (300 * 0.1 * 0.9) ** 0.5
    shifted = torch.randn(60, 4, generator=source)
    shifted[group == 1, 2] += 2.0
    assert group_p_value(shifted, group, seed=source) < 0.001
    assert group_p_value(torch.ones(60, 4), group, seed=source) == 1.0
