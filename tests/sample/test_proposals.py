"""Discrete proposals and blocks: costs, reuse of the gradient, errors. Their laws are in tests/oracle."""

import pytest
import torch

import gibbsite as gb

S = gb.sample


class Counting(gb.Model):
    """Counts the states U is evaluated at, and the calls that build a graph."""

    def __init__(self):
        super().__init__()
        self.space = gb.Binary(6)
        self.states = self.graphs = 0

    def forward(self, x):
        self.states += x.shape[:-1].numel()
        self.graphs += x.requires_grad
        return torch.tanh(self.space.embed(x).cumsum(-1)).sum(-1)


@pytest.mark.parametrize(
    ("kernel", "evaluations", "gradients"),
    [
        (S.MH(S.Informed()), 1, 1),
        (S.MH(S.Informed(draws=3)), 1, 1),
        (S.MH(S.InformedWindow(2)), 1, 1),
        (S.MH(S.PathAuxiliary(3)), 1, 1),
        (S.MH(S.DiscreteLangevin()), 1, 1),
        (S.MH(S.Informed(how="exact")), 7, 0),
        (S.MH(S.RandomFlips()), 1, 0),
        (S.MH(S.Independent(gb.Binary(6).uniform())), 1, 0),
        (S.Gibbs(), 1, 0),
        (S.GibbsSweep(), 6, 0),
        (S.HammingBall(3, 1), 4, 0),
    ],
)
def test_the_cost_is_what_was_evaluated(kernel, evaluations, gradients):
    """So the gradient of the accepted state is reused: one a step, not two."""
    model, chains = Counting(), 5
    state = kernel.init(model, model.space.uniform().sample(chains, seed=0))
    model.states = model.graphs = 0
    _, info = kernel.step(model, state, torch.Generator().manual_seed(0))
    assert info.cost == S.Cost(evaluations, gradients)
    assert model.states == chains * evaluations and model.graphs == gradients


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: S.Informed(draws=0), "draws"),
        (lambda: S.PathAuxiliary(0), "length"),
        (lambda: S.DiscreteLangevin(-1.0), "step_size"),
        (lambda: S.InformedWindow(0), "radius"),
        (lambda: S.HammingBall(0), "size: expected a positive integer"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_independent_proposal_must_share_the_space_and_reach_the_start():
    model, x = gb.Binary(3).uniform(), torch.zeros(1, 3, dtype=torch.int8)
    with pytest.raises(ValueError, match="q: expected a distribution on"):
        S.MH(S.Independent(gb.Binary(4).uniform())).init(model, x)

    class OnlyOnes(gb.Distribution):
        space = gb.Binary(3)

        def forward(self, x):
            return torch.where((x == 1).all(-1), 0.0, -torch.inf)

        def sample(self, n, *, seed):
            return torch.ones(n, 3, dtype=torch.int8)

    with pytest.raises(ValueError, match="states that q can propose"):
        S.MH(S.Independent(OnlyOnes())).init(model, x)
    with pytest.raises(TypeError, match="dependent sites"):
        S.MH(S.Independent(OnlyOnes(), clamp=torch.tensor([True, False, False]))).init(model, x)


def test_block_kernels_need_models_that_know_their_blocks_or_bonds():
    x = torch.zeros(1, 3, dtype=torch.int8)
    with pytest.raises(TypeError, match="does not know its blocks"):
        S.BlockGibbs().init(gb.Binary(3).uniform(), x)
    with pytest.raises(TypeError, match="expected an Ising or Potts model"):
        S.Wolff().init(gb.Binary(3).uniform(), x)
    with pytest.raises(ValueError, match="cluster kernels need J >= 0"):
        S.SwendsenWang().init(gb.models.Ising.lattice(3, coupling=-0.1), torch.zeros(1, 9, dtype=torch.int8))
    with pytest.raises(ValueError, match="lists of free sites"):
        S.HammingBall(blocks=[[0, 1], [2]], clamp=torch.tensor([False, True, False])).init(gb.Binary(3).uniform(), x)


def test_tokens_are_refused_by_single_site_kernels():
    model = gb.Potential(lambda x: x.float().sum(-1), gb.Tokens(3, 5, eos=0))
    with pytest.raises(TypeError, match="Binary or Categorical sites"):
        S.Gibbs().init(model, torch.zeros(1, 3, dtype=torch.long))


@pytest.mark.parametrize("kernel", [S.MH, S.Unadjusted])
def test_what_is_no_proposal_is_refused(kernel):
    for wrong, message in (
        (S.Informed, r"got the class Informed; write Informed\(\)"),
        (S.Gibbs(), "got Gibbs; a kernel is run as it is"),
        (3, "expected a gibbsite.sample.Proposal, got int"),
    ):
        with pytest.raises(TypeError, match=message):
            kernel(wrong)


@pytest.mark.parametrize("sites", [0, -1, 1.5, True])
@pytest.mark.parametrize("make", [S.Gibbs, S.RandomFlips])
def test_a_number_of_sites_is_a_positive_integer(make, sites):
    with pytest.raises(ValueError, match="sites: expected a positive integer"):
        make(sites)


@pytest.mark.parametrize("kernel", [S.GibbsSweep(), S.Gibbs(400)])
def test_the_potential_that_gibbs_carries_along_is_rounded_once_a_step(kernel):
    """At U near 1e6 float32 has steps of 1/16, so that one rounding is off by 1/32 at most, and 400 by about 0.4 = 20 / 55.

    The changes themselves are rounded too: 400 of at most 2.4, each to within 3 float32 roundings of 2.4, 3e-4 together.
    """
    model = gb.models.Ising.lattice(20, coupling=0.3)
    with torch.no_grad():
        model.field[0] = 1e6
    x = model.space.uniform().sample(50, seed=0)
    x[:, 0] = 1
    state = kernel.init(model, x)
    new, _ = kernel.step(model, state, torch.Generator().manual_seed(1))
    model.double()
    moved = (model(new.x) - model(x)).detach()
    assert float(((new.u.double() - state.u.double()) - moved).abs().max()) < 1 / 32 + 3e-4
