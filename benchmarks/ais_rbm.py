"""# How many temperatures a second does annealed importance sampling make on an RBM of 784 x 500 units, with 100 chains?

AIS by block Gibbs, each temperature an RBM (Salakhutdinov and Murray, 2008), against the same written plainly in torch, as
public implementations do: U of the chains at both temperatures, then hidden given visible, then visible given hidden. Both
have the same float32 weights and the same base, and give the same log Z. A call makes 100 temperatures; the work of a
temperature does not depend on how many there are, so 10,000 of them take 10,000 / rate seconds.
"""

from itertools import pairwise

import torch
from _harness import Contest, Contestant, Target, main
from torch.nn.functional import softplus

import gibbsite as gb

CHAINS, STEPS = 100, 100


def plainly(rbm: gb.models.RBM, base: torch.Tensor, steps: int, generator: torch.Generator) -> torch.Tensor:
    weight, b, c = rbm.weight.detach(), rbm.visible_bias.detach(), rbm.hidden_bias.detach()

    def u(v: torch.Tensor, beta: float) -> torch.Tensor:
        return v @ ((1 - beta) * base + beta * b) + softplus(beta * (v @ weight.T + c)).sum(-1)

    v = torch.bernoulli(base.sigmoid().expand(CHAINS, -1), generator=generator)
    log_w = u(v, 0.0) - (v * base - softplus(base)).sum(-1)
    betas = torch.linspace(0, 1, steps + 1).tolist()
    for low, high in pairwise(betas):
        log_w += u(v, high) - u(v, low)
        h = torch.bernoulli(torch.sigmoid(high * (v @ weight.T + c)), generator=generator)
        v = torch.bernoulli(torch.sigmoid(high * (h @ weight + b) + (1 - high) * base), generator=generator)
    return log_w


def contests() -> list[Contest]:
    rbm = gb.models.RBM.random(784, 500, variance=0.0025, seed=0)
    base = gb.distributions.Bernoulli(torch.linspace(-2, 2, 784))
    path, kernel, generator = gb.estimate.RBMPath(rbm, base), gb.sample.BlockGibbs(), torch.Generator().manual_seed(0)
    logits = base.logits.detach()

    ours = gb.ais(path, kernel, gb.estimate.linear(400), chains=CHAINS, seed=1)
    theirs = plainly(rbm, logits, 400, generator).double()
    value, error = theirs.logsumexp(0) - torch.tensor(CHAINS).log(), (theirs.softmax(0) * CHAINS).std() / CHAINS**0.5
    assert abs(ours.value - value) < 5 * (ours.stderr**2 + error**2) ** 0.5

    contestants = [
        Contestant(
            "gibbsite", lambda: gb.ais(path, kernel, gb.estimate.linear(STEPS), chains=CHAINS, seed=1, progress=False), STEPS
        ),
        Contestant("plain torch", lambda: plainly(rbm, logits, STEPS, generator), STEPS),
    ]
    note = f"On both sides a call makes {STEPS} temperatures; log Z by 400 agreed: {ours} and {value:.2f} ± {error:.2f}."
    return [Contest("AIS, RBM 784 x 500, 100 chains", contestants, [Target("gibbsite", "plain torch", 2)], note=note)]


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main(__file__, contests)
