"""# How many steps a second on an RBM of 784 visible and 500 hidden units, with 100 chains, beside ebmkit and rbms?

Gibbs-With-Gradients (one flip a step, corrected) against ebmkit, and block Gibbs (hidden given visible, then visible given
hidden) against rbms and ebmkit. All have the same float32 weights, N(0, 0.1^2), so that chains move and freeze in places.
Ours is `gibbsite.run`, keeping every 100th state, and once keeping every state; the peers return the last state only.
"""

import ebm
import torch
from _harness import Contest, Contestant, Target, main
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.sampling.gibbs import sample_state

import gibbsite as gb

CHAINS = 100


def theirs(model: gb.models.RBM) -> ebm.nets.RBM:
    other = ebm.nets.RBM(784, 500)
    with torch.no_grad():
        other.W.copy_(model.weight)
        other.b.copy_(model.visible_bias)
        other.c.copy_(model.hidden_bias)
        x = model.space.uniform().sample(5, seed=3)
        torch.testing.assert_close(other(x.float()), -model(x), rtol=1e-4, atol=1e-2)
    return other


def contests() -> list[Contest]:
    model = gb.models.RBM.random(784, 500, variance=0.01, seed=0)
    x = model.space.uniform().sample(CHAINS, seed=0)
    other, start = theirs(model), x.float()
    gwg, blocks = gb.sample.MH(gb.sample.Informed()), gb.sample.BlockGibbs()
    informed, alternate = ebm.GibbsWithGradients(steps=1), ebm.GibbsSampler(1)
    parameters = BBRBM(
        weight_matrix=model.weight.detach().T.contiguous(),
        vbias=model.visible_bias.detach().clone(),
        hbias=model.hidden_bias.detach().clone(),
    )
    chains = parameters.init_chains(CHAINS)

    def ours(name: str, kernel: gb.sample.Kernel, steps: int, thin: int) -> Contestant:
        return Contestant(f"gibbsite, {name}", lambda: gb.run(kernel, model, x, steps=steps, thin=thin, seed=1), steps)

    rare, every = "every 100th kept", "every state kept"
    first = [
        ours(rare, gwg, 400, 100),
        ours(every, gwg, 200, 1),
        Contestant("ebmkit", lambda: informed.sample(other, start, steps=40), 40),
    ]
    second = [
        ours(rare, blocks, 400, 100),
        ours(every, blocks, 200, 1),
        Contestant("rbms", lambda: sample_state(100, chains, parameters), 100),
        Contestant("ebmkit", lambda: alternate.sample(other, start, steps=100), 100),
    ]
    return [
        Contest("GWG, RBM 784 x 500, 100 chains", first, [Target(first[0].name, "ebmkit", 2)]),
        Contest("Block Gibbs, RBM 784 x 500, 100 chains", second, [Target(second[0].name, "rbms", 1.3)]),
    ]


if __name__ == "__main__":
    main(__file__, contests)
