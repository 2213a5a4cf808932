"""# How many updates a second does PCD make on an RBM of 784 x 500 units, beside rbms?

Persistent contrastive divergence: `k` alternations of block Gibbs on 100 chains, the gradient at 100 chains and at a
mini-batch of 100 binarised digits, and a step of SGD with rate 0.01. Both start from the same float32 weights. Ours is
`gibbsite.learn.fit` whole, with its random order of the data, its metrics and its guard; theirs is the body of the loop of
`rbms.training.pcd.train` (init_chains, sample_state, compute_gradient, SGD) without its file, its centring and its
normalised gradient, which would be another update, and with mini-batches drawn by randint, which is less work.
The first update of both is checked to have the same gradient at the data.
"""

import torch
from _harness import Contest, Contestant, Target, main
from rbms.bernoulli_bernoulli.classes import BBRBM

import gibbsite as gb

BATCH, RATE, UPDATES = 100, 0.01, 50


def digits() -> torch.Tensor:
    images = gb.datasets.mnist()
    return images.binarised(images.train[:10_000], seed=0)


def start() -> gb.models.RBM:
    return gb.models.RBM.random(784, 500, variance=0.0025, seed=0)


def ours(data: torch.Tensor, k: int) -> Contestant:
    model = start()
    chains = gb.learn.Persistent(gb.sample.BlockGibbs(), model.space.uniform().sample(BATCH, seed=0), k)
    objective = gb.learn.Contrastive(model, chains)
    optimiser = torch.optim.SGD(objective.parameters(), lr=RATE)
    options = {"optimiser": optimiser, "steps": UPDATES, "batch": BATCH, "seed": 1, "progress": False}
    return Contestant("gibbsite", lambda: gb.learn.fit(objective, data, **options), UPDATES)


def theirs(data: torch.Tensor, k: int) -> Contestant:
    parameters = peer(start())
    optimiser = torch.optim.SGD(parameters.parameters(), lr=RATE, maximize=True)
    states, weights = data.float(), torch.ones(len(data))
    chains = {"now": parameters.init_chains(BATCH)}

    @torch.no_grad()
    def work() -> None:
        for _ in range(UPDATES):
            rows = torch.randint(len(states), (BATCH,))
            optimiser.zero_grad(set_to_none=False)
            batch = parameters.init_chains(BATCH, weights=weights[rows], start_v=states[rows])
            chains["now"] = parameters.sample_state(chains=chains["now"], n_steps=k)
            parameters.compute_gradient(data=batch, chains=chains["now"], centered=False)
            optimiser.step()

    return Contestant("rbms", work, UPDATES)


def peer(model: gb.models.RBM) -> BBRBM:
    """The same machine, its gradients ready to be filled."""
    parts = (model.weight.detach().T.contiguous(), model.visible_bias.detach(), model.hidden_bias.detach())
    parameters = BBRBM(*(part.clone() for part in parts))
    parameters.init_grad()
    return parameters


def check(data: torch.Tensor) -> None:
    """Both gradients at the same data and the same negatives, within what sampled hidden units add to theirs."""
    model, v = start(), data[:BATCH]
    negatives = data[BATCH : 2 * BATCH]
    (gradient,) = torch.autograd.grad(gb.learn.contrastive(model, v, negatives), model.visible_bias)
    parameters = peer(model)
    with torch.no_grad():
        batch, chains = (parameters.init_chains(BATCH, start_v=x.float()) for x in (v, negatives))
        parameters.compute_gradient(data=batch, chains=chains, centered=False)
    torch.testing.assert_close(parameters.vbias.grad, -gradient, atol=1e-5, rtol=1e-4)


def contests() -> list[Contest]:
    data = digits()
    check(data)
    return [
        Contest(
            f"PCD-{k}, RBM 784 x 500, 100 chains, mini-batches of 100",
            [ours(data, k), theirs(data, k)],
            [Target("gibbsite", "rbms", 1.5)],
        )
        for k in (1, 10)
    ]


if __name__ == "__main__":
    main(__file__, contests)
