"""# How many unadjusted Langevin steps a second on a perceptron 2-128-128-1 with 1,000 chains, beside JAX and toolkits?

All have the same float32 weights and step x' = x + 0.01 grad U(x) + sqrt(0.02) xi. Ours is `gibbsite.run(Langevin(...))`,
which also evaluates and keeps U(x) at every step, and a state every 100 steps; JAX is a hand-written jitted `lax.scan` that
takes the gradient only and returns the last state, as do ebmkit, torchebm and hand-written torch.
"""

import ebm
import jax
import jax.numpy as jnp
import torch
from _harness import Contest, Contestant, Target, main
from torchebm.core import BaseModel
from torchebm.samplers import LangevinDynamics

import gibbsite as gb

CHAINS, STEP = 1000, 0.01


class Wrapped(BaseModel):
    """An energy as torchebm wants it."""

    def __init__(self, energy: torch.nn.Module):
        super().__init__()
        self.energy = energy

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.energy(x)


def theirs(model: gb.models.MLP) -> torch.nn.Module:
    """ebmkit's perceptron with the same weights."""
    other = ebm.nets.MLPEnergy(2, hidden=(128, 128))
    with torch.no_grad():
        for index, layer in zip((0, 2), model.layers):
            other.net[index].weight.copy_(layer.weight)
            other.net[index].bias.copy_(layer.bias)
        other.net[4].weight.copy_(-model.readout.weight)
        other.net[4].bias.zero_()
        x = torch.linspace(-1, 1, 10).view(5, 2)
        torch.testing.assert_close(other(x).view(-1), -model(x), rtol=1e-4, atol=1e-5)
    return other


def by_jax(model: gb.models.MLP, x: torch.Tensor, steps: int) -> Contestant:
    weights = [(jnp.asarray(n.weight.detach().numpy().T), jnp.asarray(n.bias.detach().numpy())) for n in model.layers]
    last = jnp.asarray(model.readout.weight.detach().numpy()[0])

    def total(x):
        for matrix, bias in weights:
            x = jax.nn.silu(x @ matrix + bias)
        return (x @ last).sum()

    @jax.jit
    def run(key, x):
        def step(x, key):
            return x + STEP * jax.grad(total)(x) + (2 * STEP) ** 0.5 * jax.random.normal(key, x.shape), None

        return jax.lax.scan(step, x, jax.random.split(key, steps))[0]

    start, key = jnp.asarray(x.numpy()), jax.random.key(0)
    return Contestant("JAX by hand", lambda: run(key, start).block_until_ready(), steps)


def by_torch(other: torch.nn.Module, start: torch.Tensor, steps: int) -> Contestant:
    def work() -> torch.Tensor:
        x, g = start, torch.Generator().manual_seed(0)
        for _ in range(steps):
            z = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(other(z).sum(), z)
            x = x - STEP * gradient + (2 * STEP) ** 0.5 * torch.randn(x.shape, generator=g)
        return x

    return Contestant("torch by hand", work, steps)


def contests() -> list[Contest]:
    model = gb.models.MLP(gb.Real(2), (128, 128), seed=0)
    x = torch.randn(CHAINS, 2, generator=torch.Generator().manual_seed(0))
    kernel, other = gb.sample.Langevin((2 * STEP) ** 0.5), theirs(model)
    peer, second = ebm.LangevinDynamics(step_size=STEP), LangevinDynamics(Wrapped(other), step_size=STEP, device="cpu")
    ours = Contestant("gibbsite", lambda: gb.run(kernel, model, x, steps=400, thin=100, seed=1), 400)
    every = Contestant("gibbsite, every state kept", lambda: gb.run(kernel, model, x, steps=400, seed=1), 400)
    rivals = [
        Contestant("ebmkit", lambda: peer.sample(other, x, steps=200), 200),
        Contestant("torchebm", lambda: second.sample(x=x, n_steps=200), 200),
        by_torch(other, x, 200),
        by_jax(model, x, 400),
    ]
    targets = [Target(ours.name, "ebmkit", 1.5), Target(ours.name, "JAX by hand", 1 / 1.3)]
    return [Contest("ULA, perceptron 2-128-128-1, 1,000 chains", [ours, every, *rivals], targets)]


if __name__ == "__main__":
    main(__file__, contests)
