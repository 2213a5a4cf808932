"""# How many Hamiltonian Monte Carlo steps (10 leapfrog steps each) a second on a 100-d Gaussian, beside the toolkits?

100 chains, and one. Ours is `gibbsite.run(HMC(0.1, 10))` keeping every 100th state, on `distributions.Normal`, which knows
its gradient, and on a plain callable, which is differentiated by autograd as ebmkit's and torchebm's are. blackjax runs
jitted, vmapped over chains and scanned over steps.

What limits ours, by profile: a step is about a hundred torch calls on small arrays, and nearly all its time is their fixed
cost and their passes over memory; XLA fuses a leapfrog step into one loop, and pays nothing a call. On the plain callable,
building and walking the autograd graph at each leapfrog step is two thirds of the time, and the same work in ebmkit.
"""

import blackjax
import ebm
import jax
import jax.numpy as jnp
import torch
from _harness import Contest, Contestant, Target, main
from torchebm.core import BaseModel
from torchebm.samplers import HamiltonianMonteCarlo

import gibbsite as gb

SIZE, STEP, LEAPS = 100, 0.1, 10


class Gaussian(BaseModel):
    """|x|^2 / 2 as torchebm wants it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * (x * x).sum(-1)


def by_blackjax(chains: int, steps: int) -> Contestant:
    kernel = blackjax.hmc(
        lambda x: -0.5 * (x * x).sum(), step_size=STEP, inverse_mass_matrix=jnp.ones(SIZE), num_integration_steps=LEAPS
    )

    @jax.jit
    def run(key, state):
        def step(state, key):
            return jax.vmap(kernel.step)(jax.random.split(key, chains), state)[0], None

        return jax.lax.scan(step, state, jax.random.split(key, steps))[0]

    start = jax.vmap(kernel.init)(jax.random.normal(jax.random.key(0), (chains, SIZE)))
    key = jax.random.key(1)
    return Contestant("blackjax", lambda: jax.block_until_ready(run(key, start)), steps)


def contest(chains: int) -> Contest:
    x = torch.randn(chains, SIZE, generator=torch.Generator().manual_seed(0))
    normal, plain = gb.distributions.Normal.standard(SIZE), gb.Potential(lambda x: -0.5 * (x * x).sum(-1), gb.Real(SIZE))
    kernel = gb.sample.HMC(STEP, LEAPS)
    first, second = (
        ebm.HMC(step_size=STEP, leapfrog_steps=LEAPS),
        HamiltonianMonteCarlo(Gaussian(), step_size=STEP, n_leapfrog_steps=LEAPS, device="cpu"),
    )
    ours = [
        Contestant("gibbsite, Normal", lambda: gb.run(kernel, normal, x, steps=200, thin=100, seed=1), 200),
        Contestant("gibbsite, callable", lambda: gb.run(kernel, plain, x, steps=200, thin=100, seed=1), 200),
    ]
    rivals = [
        Contestant("ebmkit", lambda: first.sample(lambda x: 0.5 * (x * x).sum(1), x, steps=100), 100),
        Contestant("torchebm", lambda: second.sample(x=x, n_steps=20), 20),
        by_blackjax(chains, 2000),
    ]
    targets = [Target(o.name, "ebmkit", 2) for o in ours] if chains == 100 else []
    return Contest(f"HMC, 100-d Gaussian, L = 10, {chains} chain{'s' if chains > 1 else ''}", [*ours, *rivals], targets)


def contests() -> list[Contest]:
    return [contest(100), contest(1)]


if __name__ == "__main__":
    main(__file__, contests)
