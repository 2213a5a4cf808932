"""Everything runs where the model and x are (`--device`), draws from a generator there, and leaves its results there."""

import inspect
from dataclasses import fields

import pytest
import torch

import gibbsite as gb

S, M, D = gb.sample, gb.models, gb.distributions
HELD = torch.tensor([True] + [False] * 8)

MODELS = {
    "ising": lambda: M.Ising.lattice(3, coupling=0.3, field=0.1),
    "dense ising": lambda: M.Ising(torch.ones(9, 9) - torch.eye(9)),
    "rbm": lambda: M.RBM(9, 5, seed=0),
    "fhmm": lambda: M.FHMM.random(3, 3, seed=0),
    "potts": lambda: M.Potts.lattice(3, states=3, coupling=0.4),
    "binary mlp": lambda: M.MLP(gb.Binary(9), (8,), seed=0),
    "categorical net": lambda: M.ResidualNet(gb.Categorical((4, 4), 3), features=4, blocks=2, seed=0),
    "log-linear": lambda: M.LogLinear(gb.Binary(9), lambda x: x[..., :3].float(), torch.ones(3)),
    "bits": lambda: D.Bernoulli(torch.zeros(9)),
    "sites": lambda: D.Independent(torch.zeros(9, 3)),
}
DISCRETE = [
    S.Gibbs(),
    S.GibbsSweep(),
    S.HammingBall(3, 1),
    S.MH(S.Informed()),
    S.MH(S.Informed(how="exact", balance=S.Barker())),
    S.MH(S.InformedWindow(2)),
    S.MH(S.PathAuxiliary(3)),
    S.MH(S.DiscreteLangevin()),
    S.MH(S.RandomFlips()),
    S.Mixture([S.Gibbs(), S.MH(S.Informed())]),
    S.WithinGibbs(lambda held: S.RandomFlips(clamp=held)),
    S.Cycle([S.Gibbs(), S.MH(S.RandomFlips())]),
    S.Followed(S.Gibbs(), by=S.MH(S.RandomFlips())),
    S.Repeat(S.Gibbs(), 2),
]
BLOCKS = [S.BlockGibbs(), S.BlockGibbs(clamp=HELD), S.SwendsenWang(), S.Wolff(clamp=HELD)]
RELAXED = [S.RelaxedMALA(0.1, 1.0), S.RelaxedHMC(0.1, 3, 1.0), S.DiscreteSVGD(0.1, 1.0)]
REAL = [
    S.Langevin(0.1),
    S.Unadjusted(S.Drift(0.1)),
    S.MALA(0.1),
    S.MH(S.RandomWalk(0.1)),
    S.HMC(0.1, 3),
    S.HMC(0.1, 3, mass=torch.tensor([2.0, 1.0, 1.0])),
    S.HMC(0.1, 3, mass=2 * torch.eye(3)),
    S.NUTS(0.1),
    S.SGLD(0.1),
    S.SGHMC(0.1),
]
REAL_MODELS = {
    "normal": lambda: D.Normal(torch.zeros(3), torch.eye(3)),
    "mixture": lambda: D.NormalMixture(torch.ones(2) / 2, torch.tensor([[0.0] * 3, [1.0] * 3]), 0.5),
    "mlp": lambda: gb.Product(D.Normal(torch.zeros(3), torch.eye(3)), M.MLP(gb.Real(3), (8,), seed=0)),
    "posterior": lambda: M.Posterior(
        D.Normal.standard(3), lambda theta, d: -(d - theta[..., None, :]).square().sum(-1), torch.ones(5, 3), batch_size=2
    ),
    "latent": lambda: D.LatentNormal(D.FixedScale(M.perceptron(1, 2, seed=0), 0.3), 1, 2),
    "callable": lambda: gb.Potential(lambda x: -x.pow(4).sum(-1), gb.Real(3)),
}
DRAWN = [
    lambda: D.Mixture([1, 3], [D.Normal.standard(2), D.Normal(torch.ones(2), torch.tensor([[1.0, 0.99], [0.99, 1.0]]))]),
    D.Rings,
    D.Pinwheel,
    D.Banana,
    D.Funnel,
    lambda: D.Marginal(D.LatentNormal(D.FixedScale(M.perceptron(1, 2, seed=0), 0.3), 1, 2), 8, seed=0),
]
SEQUENCES = [
    lambda: D.Autoregressive(D.LSTM(3, 4, seed=0), gb.Tokens(5, 3, 0)),
    lambda: D.Autoregressive(D.NGramTable(3, 2), gb.Tokens(5, 3, 0)),
    lambda: D.Autoregressive(D.Transformer(3, 5, width=4, heads=2, seed=0), gb.Tokens(5, 3, 0)).truncated(top_p=0.8),
    lambda: D.Autoregressive(D.LSTM(3, 4, layers=2, seed=0), gb.Tokens(7, 3, 0)).after([1, 2]),
    lambda: D.kneser_ney(torch.tensor([[1, 2, 0, 0, 0]]), gb.Tokens(5, 3, 0)),
]
APART = [S.Tempering, S.Independent, D.KenLM]  # in tests of their own below, or beside those of its files


def classes(kernel):
    """The classes of a kernel, of its proposal, and of the kernels that it is made of."""
    if isinstance(kernel, list | tuple):
        return {cls for part in kernel for cls in classes(part)}
    if not isinstance(kernel, S.Kernel | S.Proposal):
        return set()
    inner = {cls for field in fields(kernel) for cls in classes(getattr(kernel, field.name))}
    return {type(kernel)} | inner | (classes(kernel.kernel) if isinstance(kernel, S.Alias) else set())


def unlisted(listed):
    """The exported kernels, proposals, models and distributions that are not listed."""
    kinds = (S.Kernel, S.Proposal, gb.Model)
    public = {value for home in (S, M, D) for value in vars(home).values() if inspect.isclass(value)}
    return {cls for cls in public if issubclass(cls, kinds) and not inspect.isabstract(cls)} - listed


def test_every_exported_kernel_and_model_is_in_a_list():
    kernels = classes([*DISCRETE, *BLOCKS, *RELAXED, *REAL]) | set(APART)
    made = [make() for make in (*MODELS.values(), *REAL_MODELS.values(), *DRAWN, *SEQUENCES)]
    models = {type(part) for model in made for part in model.modules()}
    assert not unlisted(kernels | models), "add them to a list of this file"
    assert unlisted(kernels | (models - {M.RBM})) == {M.RBM}
    assert unlisted((kernels - {S.Wolff, S.Drift}) | models) == {S.Wolff, S.Drift}


def name(kernel):
    inner = kernel.proposal if isinstance(kernel, S.MH | S.Unadjusted) else kernel
    return type(inner).__name__


def moved(kernel, device):
    """The kernel with a mass on the device."""
    from dataclasses import replace

    proposal = getattr(kernel, "proposal", None)
    if getattr(proposal, "mass", None) is not None:
        return replace(kernel, proposal=replace(proposal, mass=proposal.mass.to(device)))
    return kernel


def check(chain, device):
    for tensor in (chain.samples, chain.u, chain.acceptance, chain.state.x):
        assert tensor.device.type == device.type
        assert not tensor.requires_grad
    assert gb.diagnose.ess(chain.u).device.type == device.type


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("kernel", DISCRETE, ids=name)
def test_discrete_kernels(kernel, make, device):
    model = make().to(device)
    x = model.space.uniform().sample(4, seed=torch.Generator(device).manual_seed(0))
    assert x.device.type == device.type
    check(gb.run(kernel, model, x, steps=6, seed=1), device)


@pytest.mark.parametrize("kernel", BLOCKS, ids=name)
@pytest.mark.parametrize("make", [MODELS["ising"], MODELS["potts"]], ids=["ising", "potts"])
def test_block_and_cluster_kernels(kernel, make, device):
    model = make().to(device)
    x = model.space.uniform().sample(4, seed=0).to(device)
    check(gb.run(kernel, model, x, steps=6, seed=1), device)


@pytest.mark.parametrize("make", [MODELS["rbm"], MODELS["fhmm"]], ids=["rbm", "fhmm"])
def test_models_that_redraw_their_own_blocks(make, device):
    model = make().to(device)
    x = model.space.uniform().sample(4, seed=0).to(device)
    check(gb.run(S.BlockGibbs(), model, x, steps=6, seed=1), device)
    assert model.log_z().device.type == device.type


@pytest.mark.parametrize("kernel", REAL, ids=name)
@pytest.mark.parametrize("make", REAL_MODELS.values(), ids=REAL_MODELS.keys())
def test_real_kernels(kernel, make, device):
    model = make().to(device)
    x = torch.zeros(4, 3, device=device)
    check(gb.run(moved(kernel, device), model, x, steps=6, seed=1), device)


@pytest.mark.parametrize("make", DRAWN, ids=["mixture", "rings", "pinwheel", "banana", "funnel", "marginal"])
def test_distributions(make, device):
    q = make().to(device)
    x = q.sample(4, seed=0)
    assert x.device.type == q(x).device.type == gb.score(q, x)[1].device.type == device.type


@pytest.mark.parametrize("make", SEQUENCES, ids=["lstm", "table", "transformer", "continued", "n-gram"])
def test_sequences(make, device):
    q = make().to(device)
    x = q.sample(4, seed=0)
    assert x.device.type == q(x).device.type == device.type


def test_independent_proposals(device):
    q = MODELS["bits"]().to(device)
    check(gb.run(S.MH(S.Independent(q)), MODELS["ising"]().to(device), q.sample(4, seed=0), steps=6, seed=1), device)


@pytest.mark.parametrize("kernel", RELAXED, ids=name)
def test_relaxed_kernels(kernel, device):
    model = MODELS["rbm"]().to(device)
    x = model.space.uniform().sample(4, seed=0).to(device)
    check(gb.run(kernel, model, x, steps=6, seed=1), device)


def test_tempering_moments_and_distances(device):
    model = MODELS["ising"]().to(device)
    x = model.space.uniform().sample(8, seed=0).to(device)
    tempering = S.tuned_ladder(S.Tempering(S.Gibbs(), model.space.uniform()), model, x, rounds=1, steps=10, seed=0)
    chain = gb.run(tempering.kernel, model, tempering.x, steps=6, seed=1)
    check(chain, device)
    assert gb.moments(S.Gibbs(), model, x, steps=6, seed=1).mean.device.type == device.type
    assert gb.diagnose.mmd(chain.samples[0], chain.samples[-1]).device.type == device.type
    assert gb.diagnose.total_variation(chain.samples[-1], model).device.type == device.type
    assert gb.diagnose.autocorrelation(chain.u, 2).device.type == device.type
    adapted = S.adapt.step_size(
        S.MALA, D.Normal.standard(3).to(device), torch.zeros(8, 3, device=device), target=0.6, steps=20, seed=0
    )
    assert adapted.x.device.type == device.type


def test_the_law_on_this_device(device):
    """4,000 chains of 60 steps on 4 spins: frequencies of the last states against the enumerated law, 1e-6."""
    from .statistics import fits

    model = M.Ising.lattice((2, 2), coupling=0.4, field=0.2).double()
    p, model = gb.exact.probabilities(model), model.to(device)
    x = model.space.uniform().sample(4000, seed=0).to(device)
    for kernel in (S.Gibbs(), S.MH(S.Informed()), S.MH(S.DiscreteLangevin(1.0))):
        last = gb.run(kernel, model, x, steps=60, seed=1).samples[-1].cpu()
        counts = torch.bincount(gb.exact.index(model.space, last), minlength=16)
        assert fits(counts[None], p[None])
        assert not fits(counts[None], gb.exact.probabilities(M.Ising.lattice((2, 2), coupling=0.2, field=0.2))[None])


@pytest.mark.parametrize("make", [MODELS["ising"], MODELS["rbm"], MODELS["categorical net"], REAL_MODELS["callable"]])
def test_brackets(make, device):
    model = make().to(device)
    if isinstance(model.space, gb.Real):  # a callable has no parameter to tell its device by
        model = gb.Product(D.Normal.standard(3).to(device), weights=[2.0])
    z = gb.bracket(model, temperatures=8, chains=6, settling=8, seed=0)
    assert z.lower < z.upper
    exact = D.Normal.diagonal([0.0] * 3, 1.0) if isinstance(model.space, gb.Real) else model.space.uniform()
    x = exact.sample(6, seed=0).to(device)
    assert gb.estimate.log_likelihood(model, x, z).value < z.value + 1e9
    assert gb.estimate.fit_base(model.space, x).to(device)(x).device.type == device.type


def test_other_estimates_of_log_z(device):
    model, kernel = MODELS["ising"]().to(device), S.Gibbs()
    path = gb.Geometric(D.Bernoulli(torch.zeros(9)).to(device), model)
    assert gb.estimate.smc(path, kernel, particles=8, seed=0).x.device.type == device.type
    assert gb.estimate.thermodynamic(path, kernel, [0.0, 0.5, 1.0], steps=4, chains=8, seed=0).value > 0
    assert len(gb.estimate.adaptive(path, kernel, 4, chains=8, seed=0)) == 5
    tilt = gb.Tilt(D.Bernoulli(torch.zeros(9)).to(device), lambda x: x.float().sum(-1))
    assert gb.importance(tilt, 50, seed=0).value > 0
    assert gb.estimate.snis(tilt, lambda x: x.float(), 50, seed=0).mean.device.type == device.type
    assert gb.estimate.integrate(D.Normal.standard(1).to(device), -8, 8, 101).trusted
