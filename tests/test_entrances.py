"""What every public entrance says to a mistake: one row a mistake, at least one row a name that the package exports."""

import inspect

import pytest
import torch

import gibbsite as gb

S, M, D, A, E, G, L = gb.sample, gb.models, gb.distributions, gb.sample.adapt, gb.exact, gb.diagnose, gb.learn
Z = gb.estimate
NAN, INF = float("nan"), float("inf")
ising, spins = M.Ising.lattice((2, 3), coupling=0.3), torch.zeros(4, 6, dtype=torch.int8)
normal, points = D.Normal.standard(2), torch.zeros(4, 2)
chain = gb.run(S.Gibbs(), ising, spins, steps=5, seed=0)
tokens = gb.Tokens(2, 3, 0)
latent = D.LatentNormal(D.FixedScale(M.perceptron(1, 1), 0.1), 1, 1)
bigram, perceptron = D.Autoregressive(D.NGramTable(3), tokens), M.MLP(gb.Real(2), (3,), seed=0)
counts = M.LogLinear(gb.Binary(2), gb.Binary(2).embed, [0.0, 0.0])
tempering = S.Tempering(S.Gibbs(), ising.space.uniform())

to_ising = gb.Geometric(ising.space.uniform(), ising)
sequences = gb.Potential(lambda x: 0.0 * x.sum(-1), gb.Tokens(3, 4, 0))
tilt = gb.Tilt(normal, lambda x: x.sum(-1))
known = gb.Estimate(0.0, 0.1, -0.3, 0.3, ess=9.0, n=9)

line, silent = E.Graph.of([(0, 1, 1, 0.0)], end=1), E.Graph.of([(0, 1, E.EPSILON, 0.0, 1)], end=1)
frames, ids, one = torch.zeros(1, 3, 4), torch.tensor([[1]]), torch.tensor([1])


def plain(x):
    return -x.square().sum(-1)


def step(kernel, model=normal, x=points):
    return kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))


def held(mask):
    return S.RandomFlips(clamp=mask)


SAMPLERS = {
    "Banana": D.Banana(),
    "Bernoulli": D.Bernoulli([0.0]),
    "Funnel": D.Funnel(),
    "LatentNormal": latent,
    "Marginal": D.Marginal(latent, 4, seed=0),
    "Independent": D.Independent([[0.0, 1.0]]),
    "Mixture": D.Mixture([1], [normal]),
    "Normal": normal,
    "NormalMixture": D.NormalMixture([1], [[0.0]], 1.0),
    "Pinwheel": D.Pinwheel(),
    "Rings": D.Rings(),
}

ROWS = [
    # algebra
    ("Tilt", lambda: gb.Tilt(ising, plain), "base: expected a gibbsite.Distribution, got Ising; its log Z must be 0"),
    ("Tilt", lambda: gb.Tilt(normal, 3), "function: expected a callable"),
    ("Product", lambda: gb.Product(plain), "models: expected at least one gibbsite.Model, to know the space; wrap one"),
    ("Product", lambda: gb.Product(ising, weights=[INF]), "weights[0]: expected a finite number, got inf"),
    ("Product", lambda: gb.Product(ising, weights=["1"]), "weights[0]: expected a finite number, got '1'"),
    ("Product", lambda: gb.Product(ising, weights=[1, 2]), "weights: expected 1, one a model"),
    ("Tempered", lambda: gb.Tempered(ising, NAN), "beta: expected a finite number, got nan"),
    ("Tempered", lambda: gb.Tempered(plain, 1.0), "a plain callable needs space="),
    ("Geometric", lambda: gb.Geometric(plain, plain), "models: expected at least one gibbsite.Model"),
    ("Geometric", lambda: gb.Geometric(ising, normal), "models: expected one space"),
    ("Geometric", lambda: gb.Geometric(ising, ising).at(2), "beta: expected a number at least 0 and at most 1, got 2"),
    (
        "Pullback",
        lambda: gb.Pullback(normal, 3, plain),
        "transform: expected a function such as lambda e: decoder(e), got 3",
    ),
    ("Pullback", lambda: gb.Pullback(normal, torch.tanh, None), "potential: expected a function such as"),
    (
        "Pullback",
        lambda: gb.Pullback(M.MLP(gb.Real(2)), torch.tanh, plain),
        "noise: expected a gibbsite.Distribution, got MLP",
    ),
    ("Potential", lambda: gb.Potential(3, gb.Real(2)), "function: expected a callable x -> U(x), got int"),
    # spaces and local views
    ("Real", lambda: gb.Real(2.5), "shape: expected a positive integer, got 2.5"),
    ("Binary", lambda: gb.Binary(()), "shape: expected at least one dimension"),
    ("Categorical", lambda: gb.Categorical(3, 1), "states: expected an integer of at least 2"),
    ("Tokens", lambda: gb.Tokens(3, 5, 7), "eos: expected an id in [0, 5)"),
    ("score", lambda: gb.score(plain, points), "a plain callable needs space="),
    ("site_logits", lambda: gb.site_logits(normal, points), "site_logits: expected a model on Binary or Categorical"),
    # runs
    ("run", lambda: gb.run(S.Informed(), ising, spins, steps=1, seed=0), "a proposal is run as MH"),
    ("run", lambda: gb.run(S.Gibbs, ising, spins, steps=1, seed=0), "write Gibbs()"),
    ("moments", lambda: gb.moments(S.Gibbs(), ising, spins[0], steps=1, seed=0), "at least 1 chain, got (6,)"),
    ("trace", lambda: S.trace(S.Gibbs(), ising, spins, statistic=torch.sum, steps=1, seed=0), "one value a chain"),
    ("Chain", lambda: chain.summary(lambda x: x.sum()), "statistic: expected a tensor of shape (5, 4) or (5, 4, k)"),
    ("Chain", lambda: chain.summary(lambda x: 1.0), "got float; reduce over the event's dimensions only"),
    ("Chain", lambda: chain.to_arviz(lambda x: x.sum(0)), "got shape (4, 6)"),
    # kernels made from kernels
    (
        "Cycle",
        lambda: S.Cycle([S.Gibbs]),
        "kernels[0]: expected a gibbsite.sample.Kernel, got the class Gibbs; write Gibbs()",
    ),
    (
        "Cycle",
        lambda: S.Cycle([S.Gibbs(), S.Informed()]),
        "kernels[1]: expected a gibbsite.sample.Kernel, got Informed; a prop",
    ),
    ("Cycle", lambda: S.Cycle(S.Gibbs()), "kernels: expected a list of kernels, got Gibbs"),
    ("Mixture", lambda: S.Mixture([S.Informed()]), "a proposal is run as MH(proposal): write MH(Informed(...))"),
    ("Mixture", lambda: S.Mixture([S.Gibbs()], [NAN]), "weights[0]: expected a non-negative number, got nan"),
    ("Mixture", lambda: S.Mixture([S.Gibbs()], [0]), "weights: expected 1, one a kernel and not all 0"),
    ("Followed", lambda: S.Followed(S.Informed(), S.Gibbs()), "kernel: expected a gibbsite.sample.Kernel, got Informed"),
    ("Followed", lambda: S.Followed(S.Gibbs(), by=S.Gibbs), "by: expected a gibbsite.sample.Kernel, got the class Gibbs"),
    ("Repeat", lambda: S.Repeat(S.Informed(), 2), "kernel: expected a gibbsite.sample.Kernel, got Informed"),
    ("Repeat", lambda: S.Repeat(S.Gibbs(), 2.5), "times: expected a positive integer, got 2.5"),
    ("MH", lambda: S.MH(S.Gibbs()), "proposal: expected a gibbsite.sample.Proposal, got Gibbs; a kernel is run as it is"),
    ("MH", lambda: S.MH(S.Informed), "got the class Informed; write Informed()"),
    ("Unadjusted", lambda: S.Unadjusted(3), "proposal: expected a gibbsite.sample.Proposal, got int"),
    ("Tempering", lambda: S.Tempering(S.Informed(), normal), "kernel: expected a gibbsite.sample.Kernel, got Informed"),
    (
        "Tempering",
        lambda: S.Tempering(S.Gibbs(), ising),
        "base: expected a gibbsite.Distribution, got Ising; such as model.sp",
    ),
    ("Tempering", lambda: S.Tempering(S.Gibbs(), normal, [0, NAN, 1]), "betas[1]: expected a finite number, got nan"),
    ("Tempering", lambda: S.Tempering(S.Gibbs(), normal, [0, 0.5]), "rise from 0 or more to exactly 1"),
    ("anneal", lambda: S.anneal(plain, S.MALA(0.1), [1.0], points, seed=0), "path: expected a gibbsite.Path, got function"),
    ("anneal", lambda: annealed(S.Informed()), "kernel: expected a gibbsite.sample.Kernel, got Informed; a proposal"),
    ("anneal", lambda: annealed(S.Gibbs), "kernel: expected a gibbsite.sample.Kernel, got the class Gibbs; write Gibbs()"),
    ("anneal", lambda: list(annealed(lambda beta: S.Informed())), "kernel(beta): expected a gibbsite.sample.Kernel"),
    ("anneal", lambda: annealed(S.Gibbs(), betas=[NAN]), "betas[0]: expected a finite number, got nan"),
    ("anneal", lambda: annealed(S.Gibbs(), betas=[]), "betas: expected at least one, got none"),
    ("anneal", lambda: annealed(S.Gibbs(), x=spins[0]), "x: expected (chains, 6) with at least 1 chain, got (6,)"),
    # estimates of log Z
    ("ais", lambda: annealed_z(plain), "path: expected a gibbsite.Path, got function; such as gb.Geometric"),
    ("ais", lambda: annealed_z(gb.Geometric(ising, ising)), "path.start: expected a gibbsite.Distribution, got Ising"),
    (
        "ais",
        lambda: annealed_z(betas=[0.0, 0.5]),
        "betas: expected at least two numbers that rise from 0 to 1, got 2",
    ),
    ("ais", lambda: annealed_z(betas=[0.0, 0.5, 0.4, 1.0]), "rise from 0 to 1"),
    ("ais", lambda: annealed_z(betas=[]), "rise from 0 to 1, got none; such as linear(1000)"),
    ("ais", lambda: annealed_z(betas=[0.0, NAN, 1.0]), "betas[1]: expected a finite number, got nan"),
    ("ais", lambda: annealed_z(betas=100), "betas: expected numbers that rise from 0 to 1, such as linear(1000), got 100"),
    ("ais", lambda: annealed_z(chains=0), "chains: expected a positive integer, got 0"),
    (
        "ais",
        lambda: annealed_z(kernel=S.Informed()),
        "kernel: expected a gibbsite.sample.Kernel, got Informed; a proposal is",
    ),
    (
        "reverse_ais",
        lambda: Z.reverse_ais(to_ising, S.Gibbs(), [0.0, 1.0], points, seed=0),
        "x: expected integers in [0, 2)",
    ),
    ("reverse_ais", lambda: Z.reverse_ais(to_ising, S.Gibbs(), [0.0, 1.0], spins[:0], seed=0), "at least 1 chain"),
    ("bracket", lambda: gb.bracket(plain, seed=0), "a plain callable needs space="),
    (
        "bracket",
        lambda: gb.bracket(ising, base=normal, seed=0),
        "base: expected a distribution on Binary(shape=(6,))",
    ),
    ("bracket", lambda: gb.bracket(ising, base=ising, seed=0), "base: expected a gibbsite.Distribution, got Ising"),
    ("bracket", lambda: gb.bracket(ising, base=normal, path=to_ising, seed=0), "base, path: expected one of them, got both"),
    (
        "bracket",
        lambda: gb.bracket(normal, path=to_ising, seed=0),
        "path: expected one on Real(shape=(2,))",
    ),
    ("bracket", lambda: gb.bracket(ising, data=points, seed=0), "data: expected integers in [0, 2) of shape (*, 6)"),
    ("bracket", lambda: gb.bracket(ising, data=spins[:0], seed=0), "with at least 1 state, got (0, 6)"),
    ("bracket", lambda: gb.bracket(normal, data=torch.full((3, 2), NAN), seed=0), "data: expected finite floats"),
    (
        "bracket",
        lambda: gb.bracket(ising, data=(spins, spins[:, 0]), seed=0),
        "of shape (*, 6), got a tuple of 2: states alone, without labels",
    ),
    ("bracket", lambda: gb.bracket(ising, x=points, seed=0), "x: expected integers in [0, 2)"),
    ("bracket", lambda: gb.bracket(ising, temperatures=0, seed=0), "steps: expected a positive integer, got 0"),
    ("bracket", lambda: gb.bracket(ising, chains=2, seed=0), "chains: expected an integer of at least 3, got 2"),
    ("bracket", lambda: gb.bracket(ising, widest=0, seed=0), "widest: expected a positive number, got 0"),
    ("bracket", lambda: gb.bracket(sequences, seed=0), "base: no base is known for Tokens(length=3"),
    ("Path", lambda: annealed_z(3), "path: expected a gibbsite.Path, got int"),
    ("RBMPath", lambda: Z.RBMPath(ising), "model: expected a gibbsite.models.RBM, got Ising"),
    (
        "RBMPath",
        lambda: Z.RBMPath(M.RBM(2, 3), normal),
        "base: expected a distribution on Binary(shape=(2,))",
    ),
    ("fit_base", lambda: Z.fit_base(gb.Real(2), spins), "data: expected finite floats of shape (*, 2)"),
    ("linear", lambda: Z.linear(2.5), "steps: expected a positive integer, got 2.5"),
    ("sigmoid", lambda: Z.sigmoid(3, 0), "sharpness: expected a positive number, got 0"),
    ("adaptive", lambda: Z.adaptive(to_ising, S.Gibbs(), 0, seed=0), "expected a positive integer, got 0"),
    ("adaptive", lambda: Z.adaptive(to_ising, S.Gibbs(), 3, chains=1, seed=0), "chains: expected an integer of at least 2"),
    (
        "log_likelihood",
        lambda: Z.log_likelihood(ising, spins, 3.0),
        "log_z: expected a gibbsite.estimate.Estimate",
    ),
    ("log_likelihood", lambda: Z.log_likelihood(ising, points, known), "data: expected integers in [0, 2)"),
    ("log_likelihood", lambda: Z.log_likelihood(ising, spins[:0], known), "data: expected (n, *(6,)) with at least 1 state"),
    ("importance", lambda: gb.importance(normal, 10, seed=0), "tilt: expected a gibbsite.Tilt, got Normal; such as gb.Tilt"),
    ("importance", lambda: gb.importance(tilt, 1, seed=0), "n: expected an integer of at least 2, got 1"),
    (
        "importance",
        lambda: gb.importance(gb.Tilt(normal, lambda x: x[:, 0] * NAN), 9, seed=0),
        "U(x): expected finite values",
    ),
    ("snis", lambda: Z.snis(tilt, 3, 10, seed=0), "statistic: expected a function such as lambda x"),
    ("snis", lambda: Z.snis(tilt, lambda x: x.sum(), 10, seed=0), "statistic: expected one value a state, shape (10, ...)"),
    (
        "snis",
        lambda: Z.snis(tilt, lambda x: x.sum(-1) * NAN, 10, seed=0),
        "statistic: expected finite values, got nan at [0]",
    ),
    ("residual_bounds", lambda: Z.residual_bounds(torch.tensor([0.0])), "log_w: expected at least two log weights"),
    ("residual_bounds", lambda: Z.residual_bounds(torch.tensor([NAN, 0.0])), "log_w: expected at least two log weights"),
    ("iwae", lambda: Z.iwae(3, points, 5, seed=0), "log_weights: expected a function such as"),
    ("iwae", lambda: Z.iwae(lambda x, k, g: x, points, 5, seed=0), "log_weights: expected (5, 4) numbers, none NaN"),
    ("iwae", lambda: Z.iwae(lambda x, k, g: x, points[:0], 5, seed=0), "data: expected at least one row"),
    ("iwae", lambda: Z.iwae(lambda x, k, g: x, points * NAN, 5, seed=0), "data: expected at least one row, all finite"),
    ("bridge", lambda: Z.bridge(ising, normal, spins, points), "models: expected one space"),
    ("bridge", lambda: Z.bridge(normal, normal, points, spins), "x: expected finite floats"),
    ("smc", lambda: Z.smc(to_ising, S.Gibbs(), [0.5, 1.0], seed=0), "betas: expected at least two numbers that rise from 0"),
    ("smc", lambda: Z.smc(to_ising, S.Gibbs(), particles=1, seed=0), "particles: expected an integer of at least 2"),
    ("smc", lambda: Z.smc(to_ising, S.Gibbs(), share=1.0, seed=0), "share: expected a number above 0 and below 1"),
    ("thermodynamic", lambda: Z.thermodynamic(3, S.Gibbs(), [0.0, 1.0], seed=0), "path: expected a Geometric or RBMPath"),
    (
        "thermodynamic",
        lambda: Z.thermodynamic(to_ising, S.Gibbs(), [0.0, 1.0], steps=2, seed=0),
        "steps: expected an integer",
    ),
    ("integrate", lambda: Z.integrate(ising, 0, 1), "model: expected one on Real states of 1 or 2 dimensions"),
    (
        "divergence",
        lambda: Z.divergence(M.MLP(gb.Real(1)), normal, 0, 1),
        "truth: expected a gibbsite.Distribution, got MLP",
    ),
    ("integrate", lambda: Z.integrate(normal, 1, 0), "low, high: expected low < high in each dimension"),
    ("integrate", lambda: Z.integrate(normal, [0, 1, 2], 3), "low: expected a number or 2 of them"),
    ("integrate", lambda: Z.integrate(normal, -1, 1, 2), "points: expected an integer of at least 5"),
    ("accept_ratio", lambda: Z.accept_ratio(points[:0, 0], points[:, 0]), "forward, reverse: expected at least one weight"),
    (
        "accept_ratio",
        lambda: Z.accept_ratio(points[:, 0] + torch.inf, points[:, 0]),
        "has probability 0 there (+inf forward",
    ),
    # discrete kernels
    ("Power", lambda: S.Power(NAN), "temperature: expected a positive number, got nan"),
    ("Informed", lambda: S.Informed(draws=1.5), "draws: expected a positive integer, got 1.5"),
    (
        "Informed",
        lambda: S.Informed(balance="sqrt"),
        "balance: expected a gibbsite.sample.Balance, got str; such as Power(2)",
    ),
    ("Informed", lambda: S.Informed(balance=S.Barker), "got the class Barker; write Barker()"),
    ("InformedWindow", lambda: S.InformedWindow(1.5), "radius: expected a positive integer, got 1.5"),
    ("InformedWindow", lambda: S.InformedWindow(balance="sqrt"), "balance: expected a gibbsite.sample.Balance, got str"),
    ("PathAuxiliary", lambda: S.PathAuxiliary(2.5), "length: expected a positive integer, got 2.5"),
    ("PathAuxiliary", lambda: S.PathAuxiliary(balance="sqrt"), "balance: expected a gibbsite.sample.Balance, got str"),
    ("DiscreteLangevin", lambda: S.DiscreteLangevin(NAN), "step_size: expected a positive number, got nan"),
    ("DiscreteLangevin", lambda: S.DiscreteLangevin(balance="sqrt"), "balance: expected a gibbsite.sample.Balance, got str"),
    ("HammingBall", lambda: S.HammingBall(2.5), "size: expected a positive integer, got 2.5"),
    ("HammingBall", lambda: S.HammingBall(2, 1.5), "radius: expected a positive integer, got 1.5"),
    ("HammingBall", lambda: moved(S.HammingBall(blocks=[[0, 1]])), "got none with site 2, which would never move"),
    ("HammingBall", lambda: moved(S.HammingBall(blocks=[[0, 1], range(2, 6)])), "lists of free sites, all of one length"),
    ("HammingBall", lambda: moved(S.HammingBall(blocks=[[0, 0], [1, 2], [3, 4]])), "distinct sites in [0, 6), got [0, 0]"),
    ("WithinGibbs", lambda: moved(S.WithinGibbs(held, [[99]])), "blocks[0]: expected distinct sites in [0, 6), got [99]"),
    ("WithinGibbs", lambda: moved(S.WithinGibbs(held, [[-1]])), "blocks[0]: expected distinct sites in [0, 6), got [-1]"),
    ("WithinGibbs", lambda: moved(S.WithinGibbs(held, [[0, 2]])), "got none with site 1, which would never move; add it"),
    ("WithinGibbs", lambda: moved(S.WithinGibbs(held, [[0.5]])), "blocks[0]: expected a list of sites such as [0, 1]"),
    ("WithinGibbs", lambda: moved(S.WithinGibbs(held, [["a"]])), "blocks: expected lists of sites"),
    ("WithinGibbs", lambda: moved(S.WithinGibbs(held, [])), "got none with site 0, which would never move"),
    ("WithinGibbs", lambda: S.WithinGibbs(S.RandomFlips()), "propose: expected a function such as lambda held:"),
    ("WithinGibbs", lambda: S.WithinGibbs(S.RandomFlips), "propose: expected a function such as lambda held:"),
    (
        "WithinGibbs",
        lambda: moved(S.WithinGibbs(lambda held: S.Gibbs())),
        "proposal: expected a gibbsite.sample.Proposal, got G",
    ),
    ("Independent", lambda: S.Independent(ising), "q: expected a gibbsite.Distribution, got Ising"),
    ("RandomFlips", lambda: S.RandomFlips(1.5), "sites: expected a positive integer, got 1.5"),
    ("Gibbs", lambda: S.Gibbs(1.5), "sites: expected a positive integer, got 1.5"),
    ("GibbsSweep", lambda: moved(S.GibbsSweep([True])), "clamp: expected a bool mask of shape (6,)"),
    ("BlockGibbs", lambda: moved(S.BlockGibbs([[0]])), "blocks: site 1 is in none of them"),
    ("SwendsenWang", lambda: S.SwendsenWang().init(normal, points), "cluster kernels: expected an Ising or Potts model"),
    ("Wolff", lambda: S.Wolff().init(normal, points), "cluster kernels: expected an Ising or Potts model"),
    ("RelaxedMALA", lambda: S.RelaxedMALA(0.1, -1.0), "temperature: expected a positive number"),
    ("RelaxedHMC", lambda: S.RelaxedHMC(0.1, 0, 1.0), "steps: expected"),
    ("DiscreteSVGD", lambda: S.DiscreteSVGD(0.0, 1.0), "step_size: expected a positive number"),
    # continuous kernels
    ("Drift", lambda: S.Drift("a"), "step_size: expected a positive number, got 'a'"),
    ("Langevin", lambda: S.Langevin(-1), "step_size: expected a positive number, got -1"),
    ("MALA", lambda: S.MALA(0), "step_size: expected a positive number, got 0"),
    ("RandomWalk", lambda: S.RandomWalk(NAN), "step_size: expected a positive number, got nan"),
    ("Leapfrog", lambda: S.Leapfrog(0.1, 2.5), "steps: expected a positive integer, got 2.5"),
    ("HMC", lambda: S.HMC(0.1, mass=[1.0, 2.0]), "mass: expected a torch.Tensor, got list; write torch.tensor(...)"),
    ("HMC", lambda: S.HMC(0.1, mass=torch.tensor([1, 2])), "mass: expected finite floats, got int64 (2,)"),
    ("NUTS", lambda: S.NUTS(0.1, max_depth=2.5), "max_depth: expected a positive integer, got 2.5"),
    ("NUTS", lambda: S.NUTS(0.1, mass=[1.0, 2.0]), "mass: expected a torch.Tensor, got list"),
    ("SGLD", lambda: step(S.SGLD(lambda t: -0.1)), "step_size(t): expected positive numbers, one or one a chain"),
    ("SGLD", lambda: step(S.SGLD(lambda t: torch.ones(7))), "got shape (7,) from 1.0 to 1.0"),
    ("SGLD", lambda: S.SGLD("fast"), "step_size: expected a positive number, got 'fast'"),
    ("SGHMC", lambda: step(S.SGHMC(lambda t: 0 * t)), "step_size(t): expected positive numbers"),
    ("SGHMC", lambda: S.SGHMC(0.1, friction=1.5), "friction: expected a number above 0 and at most 1, got 1.5"),
    ("SGHMC", lambda: S.SGHMC(0.1, gradient_variance=-1), "gradient_variance: expected a non-negative number, got -1"),
    ("polynomial_decay", lambda: S.polynomial_decay(0.1, offset=0), "offset: expected a positive number, got 0"),
    # adaptation
    (
        "tuned_ladder",
        lambda: S.tuned_ladder(tempering, ising, spins, steps=1, seed=0),
        "steps: expected an integer of at lea",
    ),
    (
        "tuned_ladder",
        lambda: S.tuned_ladder(tempering, ising, spins, rounds=0, seed=0),
        "rounds: expected a positive integer",
    ),
    (
        "tuned_ladder",
        lambda: S.tuned_ladder(tempering, ising, spins, target=1, seed=0),
        "target: expected a number above 0 and",
    ),
    (
        "tuned_ladder",
        lambda: S.tuned_ladder(S.Gibbs(), ising, spins, seed=0),
        "tempering: expected a gibbsite.sample.Temperin",
    ),
    ("tuned_ladder", lambda: S.tuned_ladder(tempering, plain, spins, seed=0), "a plain callable needs space="),
    (
        "step_size",
        lambda: A.step_size(S.MALA, normal, points, target=2, steps=1, seed=0),
        "target: expected a number",
    ),
    (
        "step_size",
        lambda: A.step_size(S.Drift, normal, points, target=0.5, steps=1, seed=0),
        "make(...): expected a gibbsite.s",
    ),
    ("step_size", lambda: A.step_size(S.MALA, plain, points, target=0.5, steps=1, seed=0), "a plain callable needs space="),
    (
        "step_size",
        lambda: A.step_size(S.MALA, normal, points, target=0.5, steps=1.5, seed=0),
        "steps: expected a positive int",
    ),
    (
        "step_size",
        lambda: A.step_size(S.MALA, normal, points[0], target=0.5, steps=1, seed=0),
        "x: expected (chains, 2) with",
    ),
    ("best", lambda: A.best(S.MALA, [], normal, points, steps=1, seed=0), "candidates: expected at least one, got none"),
    (
        "best",
        lambda: A.best(S.Drift, [1.0], normal, points, steps=1, seed=0),
        "make(...): expected a gibbsite.sample.Kernel",
    ),
    ("diagonal_mass", lambda: A.diagonal_mass(S.HMC, ising, spins, steps=1, seed=0), "expected a model on Real states"),
    (
        "dense_mass",
        lambda: A.dense_mass(S.HMC, normal, points, steps=0, seed=0),
        "steps: expected a positive integer, got 0",
    ),
    ("DualAveraging", lambda: A.DualAveraging(0, 0.5), "start: expected a positive number, got 0"),
    # models
    ("Ising", lambda: M.Ising(torch.zeros(2, 3)), "couplings: expected a square matrix"),
    ("Ising", lambda: M.Ising.from_edges(-1, [], 1.0), "sites: expected a positive integer, got -1"),
    ("Ising", lambda: M.Ising.lattice(3, coupling=NAN), "coupling: expected a finite number, got nan"),
    ("Ising", lambda: M.Ising.from_theta(3, theta="a"), "theta: expected a finite number, got 'a'"),
    (
        "Ising",
        lambda: M.Ising.erdos_renyi(9, degree=-1, seed=0),
        "degree: expected a number at least 0 and at most 8, got -1",
    ),
    ("Ising", lambda: M.Ising.erdos_renyi(9, scale=-1, seed=0), "scale: expected a non-negative number, got -1"),
    ("Ising", lambda: M.Ising.erdos_renyi(2.5, seed=0), "sites: expected a positive integer, got 2.5"),
    (
        "Potts",
        lambda: M.Potts([1.0]),
        "couplings: expected finite floats of shape (sites, states, sites, states), got float32 (1,)",
    ),
    ("Potts", lambda: M.Potts.lattice(3, states=2.5, coupling=1), "states: expected an integer of at least 2, got 2.5"),
    ("Potts", lambda: M.Potts.lattice(3, states=2, coupling=INF), "coupling: expected a finite number, got inf"),
    ("RBM", lambda: M.RBM(3, 2.5), "hidden: expected a positive integer, got 2.5"),
    ("RBM", lambda: M.RBM.random(3, 2, variance=-1, seed=0), "variance: expected a non-negative number, got -1"),
    (
        "RBM",
        lambda: M.RBM.from_weights([[1.0]], [1.0], [1.0, 2.0]),
        "hidden_bias: expected finite floats of shape (1,), got fl",
    ),
    ("FHMM", lambda: M.FHMM.random(3, 2, variance=-1, seed=0), "variance: expected a positive number, got -1"),
    ("FHMM", lambda: M.FHMM.random(2.5, 2, seed=0), "length: expected a positive integer, got 2.5"),
    ("FHMM", lambda: M.FHMM.random(3, 2, stay=1.0, seed=0), "stay: expected a number above 0 and below 1, got 1.0"),
    ("FHMM", lambda: M.FHMM([1.0], ["a"]), "weight: expected finite floats of shape (factors,), got list ['a']"),
    ("FHMM", lambda: M.FHMM([1.0], [1.0]).sample_exact(2.5, seed=0), "n: expected an integer of at least 0, got 2.5"),
    ("MLP", lambda: M.MLP(gb.Real(2), activation="tanh"), "activation: expected a function such as torch.tanh, got 'tanh'"),
    (
        "MLP",
        lambda: M.MLP(gb.Real(2), activation=torch.nn.Tanh),
        "activation: expected a function such as torch.tanh, got the",
    ),
    ("LogLinear", lambda: M.LogLinear(gb.Binary(2), 3, [0.0]), "features: expected a function such as"),
    (
        "LogLinear",
        lambda: M.LogLinear(gb.Binary(2), gb.Binary(2).embed, [0.0])(spins[:, :2]),
        "features(x): expected (*batch, 1)",
    ),
    ("MLP", lambda: M.MLP(gb.Real(2), hidden=(2.5,)), "hidden: expected a positive integer, got 2.5"),
    ("ResidualNet", lambda: M.ResidualNet(gb.Binary((4, 4)), blocks=1.5), "blocks: expected a positive integer, got 1.5"),
    ("ResidualNet", lambda: M.ResidualNet(gb.Binary((4, 4)), activation="relu"), "activation: expected a function such as"),
    ("perceptron", lambda: M.perceptron(2.5, 1), "widths: expected a positive integer, got 2.5"),
    ("perceptron", lambda: M.perceptron(2, 1, activation=torch.tanh), "activation: expected a class of modules such as"),
    ("Posterior", lambda: M.Posterior(plain, plain, points, 1), "prior: expected a gibbsite.Model, got function"),
    ("Posterior", lambda: M.Posterior(normal, 3, points, 1), "log_likelihood: expected a function such as"),
    ("Posterior", lambda: M.Posterior(normal, plain, [1.0, 2.0], 1), "data: expected a torch.Tensor, got float"),
    ("Posterior", lambda: M.Posterior(normal, plain, points, 1.5), "batch_size: expected a positive integer, got 1.5"),
    # distributions
    (
        "Autoregressive",
        lambda: D.Autoregressive(plain, tokens),
        "conditional: expected a torch.nn.modules.Module, got function",
    ),
    ("Autoregressive", lambda: D.Autoregressive(D.NGramTable(3), gb.Real(2)), "space: expected a gibbsite.Tokens, got Real"),
    ("LSTM", lambda: D.LSTM(3, 0, seed=0), "hidden: expected a positive integer, got 0"),
    ("LSTM", lambda: D.LSTM(3, 4, dropout=1.0, seed=0), "dropout: expected a number at least 0 and below 1, got 1.0"),
    ("Transformer", lambda: D.Transformer(3, 4, width=6, seed=0), "width: expected a multiple of heads=4, got 6"),
    ("Truncation", lambda: D.Truncation(top_k=0), "top_k: expected a positive integer, got 0"),
    (
        "NGramTable",
        lambda: D.NGramTable(3, 1, torch.zeros(3, 3)),
        "logits: expected finite floats of shape (4, 3), got float32 (3, 3)",
    ),
    (
        "NGram",
        lambda: D.NGram(plain, tokens),
        "backoff: expected a gibbsite.distributions.Backoff, got function; make",
    ),
    ("NGramConditional", lambda: D.NGramConditional(bigram), "ngram: expected a gibbsite.distributions.NGram, got Auto"),
    ("kneser_ney", lambda: D.kneser_ney([[1]], gb.Real(2)), "space: expected a gibbsite.Tokens, got Real"),
    ("kneser_ney", lambda: D.kneser_ney([[1, 1]], tokens, order=0), "order: expected a positive integer, got 0"),
    ("kneser_ney", lambda: D.kneser_ney([[1, 1]], tokens, discounts=[0.5]), "discounts: expected three, of counts"),
    (
        "kneser_ney",
        lambda: D.kneser_ney([[1, 1]], tokens, discounts=[1, 3, 1]),
        "discounts[1]: expected a number above 0",
    ),
    ("kneser_ney", lambda: D.kneser_ney(torch.zeros(0, 2, dtype=torch.int64), tokens), "x: expected sequences to count in"),
    (
        "write_arpa",
        lambda: D.write_arpa(bigram, ["</s>"], "x"),
        "model: expected a gibbsite.distributions.NGram, got",
    ),
    ("prefix_beam_search", lambda: E.prefix_beam_search(points, torch.tensor([1]), beam=1), "log_probs: expected floats of"),
    (
        "word_classes",
        lambda: D.word_classes([[1, 1]], tokens, classes=1),
        "classes: expected an integer of at least 2, got 1",
    ),
    (
        "word_classes",
        lambda: D.word_classes(torch.zeros(0, 2, dtype=torch.int64), tokens, classes=2),
        "x: expected sequences",
    ),
    ("class_log_likelihood", lambda: D.class_log_likelihood([[1, 1]], tokens, [0]), "classes: expected int64 of shape (3,)"),
    ("KenLM", lambda: D.KenLM("model.arpa", ["a"], 3), "words: expected '</s>' among them, the end of sequences, got 1"),
    ("label_model", lambda: E.label_model(bigram), "model: expected a gibbsite.distributions.NGram, got Autoreg"),
    ("read_arpa", lambda: D.read_arpa(__file__, 3), "where an ARPA file begins, got nothing"),
    ("perplexity", lambda: D.perplexity(D.Bernoulli([0.0]), [[1]]), "q.space: expected a gibbsite.Tokens, got Binary"),
    ("Banana", lambda: D.Banana(bend=NAN), "bend: expected a finite number, got nan"),
    ("Bernoulli", lambda: D.Bernoulli([NAN]), "logits: expected finite floats, got float32 (1,) with nan at [0]"),
    ("Bernoulli", lambda: D.Bernoulli.fit(spins, pseudocount=-1), "pseudocount: expected a non-negative number, got -1"),
    ("Funnel", lambda: D.Funnel(1), "dimension: expected an integer of at least 2, got 1"),
    ("Independent", lambda: D.Independent("a"), "logits: expected finite floats, got str 'a'"),
    ("FixedScale", lambda: D.FixedScale(plain, 0.1), "mean: expected a torch.nn.modules.Module, got function"),
    ("FixedScale", lambda: D.FixedScale(M.perceptron(1, 2), NAN), "scale: expected a positive number, got nan"),
    ("SharedScale", lambda: D.SharedScale(M.perceptron(1, 2), -1), "start: expected a positive number, got -1"),
    ("OwnScale", lambda: D.OwnScale(M.perceptron(1, 4), 0), "least: expected a positive number, got 0"),
    (
        "LatentNormal",
        lambda: D.LatentNormal(M.perceptron(1, 2), 1, 2),
        "decoder: expected a gibbsite.distributions.ConditionalNormal, got Sequential; such as FixedScale(network, 0.1)",
    ),
    (
        "LatentNormal",
        lambda: D.LatentNormal(D.FixedScale(M.perceptron(1, 2), 1), 0, 2),
        "latent: expected a positive integer",
    ),
    ("Marginal", lambda: D.Marginal(latent, 0, seed=0), "nodes: expected a positive integer, got 0"),
    (
        "Marginal",
        lambda: D.Marginal(normal, 4, seed=0),
        "generator: expected a gibbsite.distributions.LatentNormal, got Normal",
    ),
    ("Mixture", lambda: D.Mixture([1], [ising]), "components[0]: expected a gibbsite.Distribution, got Ising"),
    ("Normal", lambda: D.Normal([0.0], [1.0]), "mean, covariance: expected shapes (n,) and (n, n), got (1,) and (1,)"),
    (
        "Normal",
        lambda: D.Normal.diagonal([0.0, 0.0], [1.0]),
        "scale: expected finite floats of shape (2,), got float32 (1,)",
    ),
    ("Normal", lambda: D.Normal.standard(-1), "shape: expected a positive integer, got -1"),
    (
        "NormalMixture",
        lambda: D.NormalMixture([1], [0.0], 1.0),
        "means: expected finite floats of shape (k, n), got float32",
    ),
    ("Pinwheel", lambda: D.Pinwheel(2.5), "arms: expected a positive integer, got 2.5"),
    ("Rings", lambda: D.Rings([-1.0]), "radii[0]: expected a non-negative number, got -1.0"),
    ("Rings", lambda: D.Rings([]), "radii: expected at least one, got none"),
    ("twenty_five_gaussians", lambda: D.twenty_five_gaussians(spacing=NAN), "spacing: expected a finite number, got nan"),
    ("two_moons", lambda: D.two_moons(points=0), "points: expected a positive integer, got 0"),
    *(
        (name, lambda q=q, n=n: q.sample(n, seed=0), f"n: expected an integer of at least 0, got {n}")
        for name, q in SAMPLERS.items()
        for n in (-1, 2.5)
    ),
    # exact answers and diagnostics
    ("index", lambda: E.index(gb.Real(2), points), "space: expected a gibbsite.Discrete, got Real"),
    ("kaufman_log_z", lambda: E.kaufman_log_z(2.5, 3, 0.4), "length: expected a positive integer, got 2.5"),
    ("strip_log_z", lambda: E.strip_log_z(13, 20, 0.4), "sides: expected 1 to 12 sites in one direction, got 20 x 13"),
    ("log_z", lambda: E.log_z(plain), "a plain callable needs space="),
    ("potentials", lambda: E.potentials(plain), "a plain callable needs space="),
    ("probabilities", lambda: E.probabilities(plain), "a plain callable needs space="),
    ("outcomes", lambda: E.outcomes(lambda rows, script: rows, 1.5), "chains: expected a positive integer, got 1.5"),
    ("states", lambda: E.states(gb.Real(2)), "space: expected a discrete space"),
    ("transition_matrix", lambda: E.transition_matrix(S.MALA(0.1), normal), "model: expected Binary or Categorical states"),
    ("autocorrelation", lambda: G.autocorrelation(points, 1.5), "lags: expected an integer of at least 0, got 1.5"),
    ("autocorrelation", lambda: G.autocorrelation(points, 9), "lags: expected 0 to 3, got 9"),
    ("ess", lambda: G.ess([1.0, 2.0]), "values: expected (draws, chains, ...), got shape (2,)"),
    ("calibration_error", lambda: G.calibration_error(points + 2, [0]), "expected at least one case, values from 0"),
    ("rhat", lambda: G.rhat(points[0]), "values: expected (draws, chains, ...), got shape (2,)"),
    ("mcse", lambda: G.mcse(points[0]), "values: expected (draws, chains, ...), got shape (2,)"),
    (
        "hamming_to_random",
        lambda: G.hamming_to_random(chain.samples, 1, seed=0),
        "states: expected an integer of at least 2",
    ),
    ("hamming_similarity", lambda: G.hamming_similarity(spins, spins[:, :2]), "x, y: expected states of one shape"),
    ("mmd", lambda: G.mmd(spins, spins[:0]), "x, y: expected non-empty samples of one shape"),
    ("squared_exponential", lambda: G.squared_exponential(0), "bandwidth: expected a positive number, got 0"),
    # negatives
    ("Weighted", lambda: L.Weighted(ising, 3), "proposal: expected a gibbsite.Distribution, got Ising"),
    ("Weighted", lambda: L.Weighted(normal, 0), "draws: expected a positive integer, got 0"),
    (
        "Revised",
        lambda: L.Revised(normal, S.SGLD(0.1), S.Langevin(0.1), 1),
        "generator: expected a gibbsite.distributions.Lat",
    ),
    ("Revised", lambda: L.Revised(latent, S.Drift(0.1), S.Langevin(0.1), 1), "a proposal is run as MH(proposal)"),
    ("Augmented", lambda: L.Augmented(normal, latent, S.Langevin(0.1)), "generator: expected one that makes states of Real"),
    ("Cooperative", lambda: L.Cooperative(latent, S.Langevin, S.MALA(0.1), 1), "got the class Langevin; write Langevin()"),
    (
        "Cooperative",
        lambda: L.Cooperative(latent, S.MALA(0.1), S.MALA(0.1), 1, 0),
        "inner_steps: expected a positive integer",
    ),
    ("Exclusive", lambda: L.Exclusive(latent, S.MALA(0.1), 0), "steps: expected a positive integer, got 0"),
    ("Refined", lambda: L.Refined(latent, latent), "source: expected a gibbsite.learn.Negatives, got LatentNormal"),
    ("Moves", lambda: L.Moves(S.Gibbs(), spins, 0), "moves: expected a positive integer, got 0"),
    ("Moves", lambda: L.Moves(S.Gibbs(), [[0, 1]], 1), "makes, got list"),
    ("Reservoir", lambda: L.Reservoir(S.Gibbs(), 3, 1), "makes, got int"),
    (
        "Approximation",
        lambda: L.Approximation(ising, ising, plain),
        "chains: expected a gibbsite.learn.Negatives, got Ising",
    ),
    ("Approximation", lambda: L.Approximation(ising, L.FromData(S.Gibbs()), 3), "field: expected a function such as"),
    ("Pushed", lambda: L.Pushed(L.FromData(S.MALA(0.1)), normal, 3), "transform: expected a function such as lambda e:"),
    ("Replay", lambda: L.Replay(S.MALA(0.1), normal, kept=3, slots=5, steps=1, seed=0), "vectors of at least 3 entries"),
    ("Replay", lambda: L.Replay(S.MALA(0.1), normal, kept=1, slots=5, steps=1, most=2, seed=0), "most: expected a number"),
    ("Adaptive", lambda: L.Adaptive(L.FromData(S.MALA(0.1)), S.Drift, start=0.1), "make(...): expected a gibbsite.sample.K"),
    ("Adaptive", lambda: L.Adaptive(L.FromData(S.MALA(0.1)), S.MALA, start=0), "start: expected a positive number, got 0"),
    (
        "ELBO",
        lambda: L.ELBO(normal, D.OwnScale(M.perceptron(1, 2))),
        "generator: expected a gibbsite.distributions.LatentNo",
    ),
    (
        "elbo",
        lambda: L.elbo(latent, D.OwnScale(M.perceptron(1, 6)), points[:, :1], seed=0),
        "encoder: expected means of shape",
    ),
    ("AdamClip", lambda: L.AdamClip(0), "deviations: expected a positive number, got 0"),
    ("weight_normalised", lambda: L.weight_normalised(M.RBM(2, 2), spins), "expected linear or convolutional layers"),
    ("weight_normalised", lambda: L.weight_normalised(plain, spins), "module: expected a torch.nn.modules.Module, got func"),
    # losses
    ("NCE", lambda: L.NCE(ising, ising), "noise: expected a gibbsite.Distribution, got Ising"),
    ("NCE", lambda: L.NCE(ising, SAMPLERS["Bernoulli"], ratio=0), "ratio: expected a positive number, got 0"),
    ("NCE", lambda: L.NCE(plain, normal), "model: expected a gibbsite.Model, got function; wrap a callable as"),
    (
        "nce",
        lambda: L.nce(ising, spins, spins, noise=SAMPLERS["Bernoulli"], log_z=L.Constant()),
        "noise: expected a distribution on the model's Binary(shape=(6,)), got one on Binary(shape=(1,))",
    ),
    (
        "nce",
        lambda: L.nce(ising, spins[:0], spins, noise=ising.space.uniform(), log_z=L.Constant()),
        "data, negatives: expected at least one of each, got 0 and 4",
    ),
    (
        "DynamicNCE",
        lambda: L.DynamicNCE(ising, ising.space.uniform(), alpha=1.5),
        "alpha: expected a number above 0 and at most 1, got 1.5",
    ),
    ("Constant", lambda: L.Constant(NAN), "start: expected a finite number, got nan"),
    ("PerLength", lambda: L.PerLength(gb.Real(2), torch.ones(3)), "space: expected a gibbsite.Tokens, got Real"),
    ("PerLength", lambda: L.PerLength(tokens, torch.ones(3)), "probabilities: expected 3 that sum to 1, one a length from"),
    ("PerLength", lambda: L.PerLength(tokens, [0.5, 0.5]), "probabilities: expected finite floats of shape (3,), got float"),
    ("PerLength", lambda: L.PerLength.fit(tokens, torch.zeros(0, 2, dtype=torch.long)), "at least one sequence, got none"),
    (
        "ConditionalNCE",
        lambda: L.ConditionalNCE(plain, torch.nn.Identity()),
        "conditional: expected a torch.nn.modules.Module, got function; a module that maps contexts to a gibbsite.Model",
    ),
    (
        "RankingNCE",
        lambda: L.RankingNCE(torch.nn.Identity(), torch.nn.Identity(), 0),
        "negatives: expected a positive integer, got 0",
    ),
    (
        "RankingNCE",
        lambda: L.RankingNCE(torch.nn.Identity(), torch.nn.Identity())((points, spins), seed=0),
        "conditional(context): expected a gibbsite.Model, got Tensor",
    ),
    (
        "conditional_nce",
        lambda: L.conditional_nce(torch.zeros(1, 4)),
        "ratios: expected (1 + k, batch) with k >= 1, got (1, 4)",
    ),
    ("ranking_nce", lambda: L.ranking_nce(torch.zeros(4)), "ratios: expected (1 + k, batch) with k >= 1, got (4,)"),
    ("ScoreMatching", lambda: L.ScoreMatching(ising), "model: expected one on Real states, got one on Binary(shape=(6,))"),
    ("score_matching", lambda: L.score_matching(normal, points[:0]), "data: expected at least one state"),
    (
        "score_matching",
        lambda: L.score_matching(normal, NAN * points),
        "data: expected finite floats of shape (*, 2), got nan",
    ),
    ("SlicedScoreMatching", lambda: L.SlicedScoreMatching(normal, 0), "slices: expected a positive integer, got 0"),
    ("sliced_score_matching", lambda: L.sliced_score_matching(normal, points, 0.5, seed=0), "slices: expected a positive"),
    ("DenoisingScoreMatching", lambda: L.DenoisingScoreMatching(normal, 0.0), "scale: expected a positive number, got 0.0"),
    (
        "denoising_score_matching",
        lambda: L.denoising_score_matching(normal, points, -1, seed=0),
        "scale: expected a positive number, got -1",
    ),
    (
        "PseudoLikelihood",
        lambda: L.PseudoLikelihood(ising, sites=7),
        "sites: expected at most the 6 sites of the model, got 7",
    ),
    ("pseudo_likelihood", lambda: L.pseudo_likelihood(normal, points), "model: expected one on Binary or Categorical sites"),
    ("pseudo_likelihood", lambda: L.pseudo_likelihood(ising, spins[:0]), "data: expected at least one state, got none"),
    (
        "RatioMatching",
        lambda: L.RatioMatching(normal),
        "model: expected one on Binary or Categorical sites, got one on Real",
    ),
    (
        "ratio_matching",
        lambda: L.ratio_matching(ising, 2 + spins),
        "data: expected integers in [0, 2) of shape (*, 6), got 2",
    ),
    ("l1", lambda: L.l1([]), "weights: expected at least one tensor, got none"),
    ("block_l1", lambda: L.block_l1(points, (2,)), "block: expected dimensions of weights of shape (4, 2), got (2,)"),
    ("energy_magnitude", lambda: L.energy_magnitude(normal), "states: expected at least one batch, got none"),
    ("Bounded", lambda: L.Bounded(S.Gibbs(), 1.0), "negatives: expected a gibbsite.learn.Negatives, got Gibbs"),
    ("Penalised", lambda: L.Penalised(ising, plain, 1.0), "objective: expected a gibbsite.learn.Objective, got Ising"),
    ("Penalised", lambda: L.Penalised(L.PseudoLikelihood(ising), 3, 1.0), "penalty: expected a function such as"),
    ("Penalised", lambda: L.Penalised(L.PseudoLikelihood(ising), plain, NAN), "weight: expected a non-negative number, got"),
    ("SpectralNorm", lambda: L.SpectralNorm(ising, seed=0), "module: expected weights of at least two dimensions, got none"),
    (
        "SpectralNorm",
        lambda: L.SpectralNorm(perceptron, iterations=0, seed=0),
        "iterations: expected a positive integer, got 0",
    ),
    ("MaximumLikelihood", lambda: L.MaximumLikelihood(ising), "model: expected a gibbsite.Distribution, got Ising"),
    (
        "MaximumLikelihood",
        lambda: L.MaximumLikelihood(bigram)(torch.zeros(0, 2, dtype=torch.long), seed=0),
        "data: expected at least one example, got none",
    ),
    ("EARM", lambda: L.EARM(ising), "model: expected a gibbsite.distributions.Autoregressive, got Ising"),
    ("EARM", lambda: L.EARM(bigram, decay=1.0), "decay: expected a number at least 0 and below 1, got 1.0"),
    (
        "EARM",
        lambda: L.EARM(bigram)(torch.zeros(0, 2, dtype=torch.long), seed=0),
        "data: expected at least one sequence, got",
    ),
    ("earm", lambda: L.earm(bigram, torch.tensor([[0, 1]]), torch.tensor([[0, 0]])), "data: expected only eos=0 after the"),
    ("improved_scaling", lambda: L.improved_scaling(ising, [1.0]), "model: expected a gibbsite.models.LogLinear, got Ising"),
    ("improved_scaling", lambda: L.improved_scaling(counts, [0.5]), "targets: expected finite floats of shape (2,), got"),
    (
        "generalised_scaling",
        lambda: L.generalised_scaling(counts, [0.5, 0.0]),
        "targets: expected means above 0 that feature 1 can have, 0 to 1, got 0; drop a feature that the data never show",
    ),
    (
        "generalised_scaling",
        lambda: L.generalised_scaling(M.LogLinear(gb.Binary(2), lambda x: x - 1.0, [0.0, 0.0]), [0.5, 0.5]),
        "features: expected none below 0, got -1 of feature 0; add a constant",
    ),
    ("Grammar", lambda: E.Grammar.bio(["O", "PER"]), "labels: expected O, or one of B, I, '-' and a kind, such as B-PER"),
    ("SemiMarkov", lambda: E.SemiMarkov(points, points), "segment: expected potentials of shape (*batch, T, L, K)"),
    ("DependencyCRF", lambda: E.DependencyCRF(points), "arc: expected potentials of shape (*batch, T, T), T positive"),
    ("TreeCRF", lambda: E.TreeCRF(points), "span: expected potentials of shape (*batch, T, T, K), T and K positive"),
    ("LinearChain", lambda: E.LinearChain(points, points), "edge: expected shape (2, 2) or, an edge a position"),
    ("total_variation", lambda: G.total_variation(points, normal), "model: expected a model on Binary or Categorical"),
    # weighted automata
    ("Graph", lambda: E.Graph.of([(0, 1, 1)], end=1), "arcs: expected (source, target, label, weight) or"),
    (
        "Graph",
        lambda: E.Graph.of([(0, 1, 1, 0.0)], end={}),
        "end: expected a state of a weight above -inf",
    ),
    ("Graph", lambda: E.Graph.of([(0, 1, 1, 0.0)], start={}, end=1), "start: expected a state of a weight above -inf"),
    (
        "Graph",
        lambda: E.Graph.of([(0, 1, 1, NAN)], end=1),
        "weight: expected log-weights that are finite or -inf",
    ),
    ("Graph", lambda: E.Graph.of([(0, 1, -2, 0.0)], end=1), "label: expected values at least -1, got -2 to -2"),
    ("Graph", lambda: E.Graph.of([(0, 5, 1, 0.0)], end=1, states=2), "states: expected states in [0, 2), got 0 to 5"),
    ("GraphBatch", lambda: E.GraphBatch.of([]), "graphs: expected at least one, got none"),
    ("GraphBatch", lambda: E.GraphBatch.of([ids]), "graphs[0]: expected a gibbsite.exact.Graph, got Tensor"),
    ("forward", lambda: E.forward(line, frames[0], one), "emissions: expected floats of shape (batch, frames, labels), got"),
    (
        "forward",
        lambda: E.forward(line, frames + NAN, one),
        "emissions: expected finite numbers or -inf, got nan",
    ),
    (
        "forward",
        lambda: E.forward(line, frames[..., :1], one),
        "emissions: expected a column for each label of the graph",
    ),
    ("forward", lambda: E.forward(line, frames, 4 * one), "lengths: expected values in [0, 3], got 4 to 4"),
    (
        "forward",
        lambda: E.forward(line, frames, ids),
        "lengths: expected int64 of shape (1,)",
    ),
    ("forward", lambda: E.forward([line, line], frames, one), "graphs: expected one an utterance, 1, got 2"),
    ("compose", lambda: E.compose(line, ids), "second: expected a gibbsite.exact.Graph, got Tensor"),
    (
        "compose",
        lambda: E.compose(line, E.linear([2])),
        "compose: expected a path in which",
    ),
    (
        "trim",
        lambda: E.trim(E.Graph.of([(1, 0, 1, 0.0)], end=1)),
        "graph: expected a path from a start to",
    ),
    (
        "remove_epsilon",
        lambda: E.remove_epsilon(E.Graph.of([(0, 0, E.EPSILON, 0.0)], end=0)),
        "graph: expected no cycle of arcs that read nothing, got one",
    ),
    (
        "remove_epsilon",
        lambda: E.remove_epsilon(E.Graph.of([(0, 1, E.EPSILON, 0.0, 2)], end=1)),
        "graph: expected arcs that read nothing to write nothing, got one that writes",
    ),
    (
        "restrict",
        lambda: E.restrict(line, 2 * ids, one),
        "labels: expected labels that the graph writes, 1",
    ),
    ("restrict", lambda: E.restrict(line, ids, 2 * one), "label lengths: expected values in [0, 1], got 2 to 2"),
    ("ctc_topology", lambda: E.ctc_topology(3, blank=3), "blank: expected a column in [0, 3), got 3"),
    ("hmm_topology", lambda: E.hmm_topology(0), "labels: expected a positive integer, got 0"),
    ("linear", lambda: E.linear([1, -1]), "labels: expected integers of at least 0, got [1, -1]"),
    ("ctc_graphs", lambda: E.ctc_graphs(one, one), "labels: expected int64 of shape (batch, most), got int64 (1,)"),
    (
        "ctc_loss",
        lambda: E.ctc_loss(frames, 0 * ids, one, one),
        "labels: expected columns in [0, 4) other than the blank",
    ),
    ("ctc_loss", lambda: E.ctc_loss(frames, one, one, one), "labels: expected int64 of shape (1, most), got int64 (1,)"),
    (
        "sequence_loss",
        lambda: E.sequence_loss(ids, frames, ids, one, one),
        "denominator: expected a gibbsite",
    ),
    (
        "sequence_loss",
        lambda: E.sequence_loss(line, frames, ids.expand(2, 1), one, one),
        "labels: expected a sequence an utterance, 1, got 2",
    ),
    ("CTCCRF", lambda: E.CTCCRF(line, ctc_weight=-1), "ctc_weight: expected a non-negative number, got -1"),
    ("CTCCRF", lambda: E.CTCCRF(line)(frames, 3 * ids, one, one), "labels: expected labels that the graph writes, 1, got 3"),
    (
        "CTCCRF",
        lambda: E.CTCCRF(silent)(frames, ids, one, one),
        "graph: expected arcs that read a label each",
    ),
    (
        "forward",
        lambda: E.forward(silent, frames, one),
        "graph: expected arcs that read a label each",
    ),
    ("forward", lambda: E.forward(line, frames, one, 3), "semiring: expected a gibbsite.exact.Semiring, got int"),
    ("best_paths", lambda: E.best_paths(line, frames, one, 0), "n: expected a positive integer, got 0"),
    ("decode", lambda: E.decode([line], frames, one), "graph: expected a gibbsite.exact.Graph, got list"),
    ("to_openfst", lambda: E.to_openfst("0 1 1 1"), "graph: expected a gibbsite.exact.Graph, got str"),
    (
        "from_openfst",
        lambda: E.from_openfst("0 1 1"),
        "line 1: expected 4 or 5 columns of an arc or 1 or 2 of an end",
    ),
    (
        "from_openfst",
        lambda: E.from_openfst("0 1 a b"),
        "line 1: expected numbers for states, labels and weights",
    ),
    ("from_openfst", lambda: E.from_openfst(""), "text: expected the arcs and ends of a transducer, got none"),
    ("LFMMI", lambda: E.LFMMI(E.Graph), "denominator: expected a gibbsite.exact.Graph, got the class Graph"),
]


def annealed_z(path=None, kernel=None, betas=(0.0, 1.0), chains=5):
    return gb.ais(to_ising if path is None else path, kernel or S.Gibbs(), betas, chains=chains, seed=0)


def annealed(kernel, betas=(0.0, 1.0), x=spins):
    return S.anneal(gb.Geometric(ising.space.uniform(), ising), kernel, betas, x, seed=0)


def moved(kernel):
    return step(kernel, ising, spins)


@pytest.mark.parametrize(("name", "call", "words"), ROWS, ids=[f"{row[0]}-{n}" for n, row in enumerate(ROWS)])
def test_a_mistake_is_told(name, call, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert words in str(raised.value)


RESULTS = {
    "Hypothesis",
    "Backoff",
    "Moments",
    "NBest",
    "Trace",
    "Cost",
    "Info",
    "State",
    "Adapted",
    "Estimate",
    "Ratio",
    "Bounds",
    "Particles",
    "Expectation",
    "Decoded",
    "Paths",
}  # made by the package
NOTHING_TO_CHECK = {"Barker", "Maximum", "Minimum"}  # no arguments
INNER = {"compiled", "windows", "DiagonalWelford", "DenseWelford"}  # what `run` and `adapt` use, after their own checks
MARKS = {"Factorised"}  # a mark of a model, without a method


def exported():
    for module in (gb, S, M, D, G, E, Z):
        yield from (name for name, value in vars(module).items() if not name.startswith("_") and ours(value))
    yield from (
        name
        for name, value in vars(A).items()
        if name[0] != "_" and value.__class__ is not str and ours(value) and value.__module__ == A.__name__
    )


def ours(value):
    public = inspect.isfunction(value) or (inspect.isclass(value) and not inspect.isabstract(value))
    return public and value.__module__.startswith("gibbsite")


def test_every_exported_name_has_a_row():
    assert set(exported()) - {row[0] for row in ROWS} == RESULTS | NOTHING_TO_CHECK | INNER | MARKS
