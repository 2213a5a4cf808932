"""# How many Gibbs-With-Gradients steps a second, on the 40 x 40 Ising torus with 32 chains, beside ebmkit?

Ours is `gibbsite.run(MH(Informed()), ...)`, keeping every 100th state, and once keeping every state. ebmkit's
`GibbsWithGradients` gets the energy in its fastest form, a stencil of shifted lattices, and returns the last state only.
Both propose one flip a step and correct it.
"""

import ebm
import torch
from _harness import Contest, Contestant, Target, main

import gibbsite as gb

SIDE = 40
CHAINS = 32
COUPLING = 0.3


class Stencil(torch.nn.Module):
    """Energy -K sum of neighbouring spins' products, on (batch, side, side) of 0. and 1., periodic."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = 2 * x - 1
        return -COUPLING * (s * (s.roll(1, 1) + s.roll(1, 2))).sum((1, 2))


def contests() -> list[Contest]:
    model, kernel = gb.models.Ising.lattice(SIDE, coupling=COUPLING), gb.sample.MH(gb.sample.Informed())
    x = model.space.uniform().sample(CHAINS, seed=0)
    peer, energy, start = ebm.GibbsWithGradients(steps=1), Stencil(), x.view(CHAINS, SIDE, SIDE).float()
    contestants = [
        Contestant("gibbsite, every 100th kept", lambda: gb.run(kernel, model, x, steps=10_000, thin=100, seed=1), 10_000),
        Contestant("gibbsite, every state kept", lambda: gb.run(kernel, model, x, steps=1000, seed=1), 1000),
        Contestant("ebmkit", lambda: peer.sample(energy, start, steps=100), 100),
    ]
    targets = [Target(contestants[0].name, "ebmkit", 20)]
    return [Contest("GWG, Ising 40 x 40, 32 chains", contestants, targets)]


if __name__ == "__main__":
    main(__file__, contests)
