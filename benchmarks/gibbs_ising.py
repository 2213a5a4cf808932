"""# How many Gibbs sweeps a second, on Ising models of 1,600 sites, beside thrml and a plain torch checkerboard?

Every side redraws all sites of every chain once a sweep, from a float32 model with couplings and fields that differ from
edge to edge (first two contests), or with one coupling for all edges (the others, where `BlockGibbs` packs 64 chains into
a word). Ours is `gibbsite.run`, which keeps every 100th state; the peers return the last state only. thrml runs jitted and
vmapped over chains, with the colour classes as its blocks. The torch checkerboard draws one colour class at a time, on the
torus by shifting the lattice, on the random graph by a table of neighbours.
"""

import jax
import jax.numpy as jnp
import networkx
import torch
from _harness import Contest, Contestant, Target, main
from thrml import Block, SamplingSchedule, SpinNode, sample_states
from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

import gibbsite as gb

SIDE = 40
SITES = SIDE * SIDE
SWEEPS = 400


def models() -> tuple[gb.models.Ising, gb.models.Ising]:
    """The torus and a random 3-regular graph, with couplings N(0, 0.3^2) and fields N(0, 0.1^2)."""
    g = torch.Generator().manual_seed(0)
    graph = networkx.random_regular_graph(3, SITES, seed=0)
    pairs = [gb.models.Ising.lattice(SIDE, coupling=0.1).edges, torch.tensor(sorted(graph.edges()))]
    torus, regular = (
        gb.models.Ising.from_edges(SITES, e, 0.3 * torch.randn(len(e), generator=g), 0.1 * torch.randn(SITES, generator=g))
        for e in pairs
    )
    return torus, regular


def ours(name: str, kernel: gb.sample.Kernel, model: gb.models.Ising, chains: int, sweeps: int = SWEEPS) -> Contestant:
    x = model.space.uniform().sample(chains, seed=0)
    return Contestant(f"gibbsite {name}", lambda: gb.run(kernel, model, x, steps=sweeps, thin=100, seed=1), sweeps)


def thrml(model: gb.models.Ising, chains: int) -> Contestant:
    nodes = [SpinNode() for _ in range(SITES)]
    edges = [(nodes[i], nodes[j]) for i, j in model.edges.tolist()]
    weights = model.pairs.edge_weights().detach().numpy()
    ebm = IsingEBM(nodes, edges, jnp.asarray(model.field.detach().numpy()), jnp.asarray(weights), jnp.array(1.0))
    blocks = [Block([nodes[i] for i in members.tolist()]) for members in model.classes]
    program = IsingSamplingProgram(ebm, blocks, clamped_blocks=[])
    start = hinton_init(jax.random.key(0), ebm, blocks, (chains,))
    schedule = SamplingSchedule(n_warmup=SWEEPS, n_samples=1, steps_per_sample=1)
    run = jax.jit(jax.vmap(lambda key, x: sample_states(key, program, schedule, x, [], [Block(nodes)])))
    keys = jax.random.split(jax.random.key(1), chains)
    return Contestant("thrml", lambda: jax.block_until_ready(run(keys, start)), SWEEPS)


def torch_torus(model: gb.models.Ising, chains: int, sweeps: int = 20) -> Contestant:
    J, h = model.couplings.detach(), model.field.detach().view(SIDE, SIDE)
    site = torch.arange(SITES).view(SIDE, SIDE)
    right, down = J[site, site.roll(-1, 1)], J[site, site.roll(-1, 0)]
    left, up = right.roll(1, 1), down.roll(1, 0)
    colours = [(site // SIDE + site) % 2 == colour for colour in (0, 1)]

    def work() -> torch.Tensor:
        g = torch.Generator().manual_seed(1)
        s = 2.0 * torch.randint(2, (chains, SIDE, SIDE), generator=g) - 1
        for _ in range(sweeps):
            for colour in colours:
                f = h + right * s.roll(-1, 2) + left * s.roll(1, 2) + down * s.roll(-1, 1) + up * s.roll(1, 1)
                drawn = 2.0 * (torch.rand(s.shape, generator=g) < torch.sigmoid(2 * f)) - 1
                s = torch.where(colour, drawn, s)
        return s

    return Contestant("torch checkerboard, shifts", work, sweeps)


def torch_table(model: gb.models.Ising, chains: int, sweeps: int = 20) -> Contestant:
    """Spins are (sites, chains), so that a neighbour is a row."""
    J, h = model.couplings.detach(), model.field.detach()
    near = [torch.stack([row.nonzero()[:, 0] for row in J[members]]) for members in model.classes if _even(J[members])]
    if len(near) < len(model.classes):
        raise ValueError("expected a regular graph")
    parts = [(m, n, J[m[:, None], n][..., None], h[m, None]) for m, n in zip(model.classes, near)]

    def work() -> torch.Tensor:
        g = torch.Generator().manual_seed(1)
        s = 2.0 * torch.randint(2, (SITES, chains), generator=g) - 1
        for _ in range(sweeps):
            for members, neighbours, weights, field in parts:
                f = field + (weights * s[neighbours]).sum(1)
                s[members] = 2.0 * (torch.rand(f.shape, generator=g) < torch.sigmoid(2 * f)) - 1
        return s

    return Contestant("torch checkerboard, table", work, sweeps)


def _even(rows: torch.Tensor) -> bool:
    return len((rows != 0).sum(1).unique()) == 1


def contests() -> list[Contest]:
    torus, regular = models()
    uniform = gb.models.Ising.lattice(SIDE, coupling=0.3)
    sweep, blocks = gb.sample.GibbsSweep(), gb.sample.BlockGibbs()
    found = []
    for title, model in (("torus 40 x 40", torus), ("random 3-regular graph", regular)):
        rivals = [thrml(model, 32), torch_table(model, 32), *([torch_torus(model, 32)] if model is torus else [])]
        mine = [ours("GibbsSweep", sweep, model, 32), ours("BlockGibbs", blocks, model, 32)]
        targets = [Target(m.name, r.name, 2 if r.name == "thrml" else 10) for m in mine for r in rivals]
        found.append(
            Contest(f"Arbitrary couplings, {title}, 32 chains", [*mine, *rivals], targets, 32 * SITES, "site updates")
        )
    flat = gb.models.Ising.from_edges(SITES, regular.edges, 0.3)
    for title, model in (("torus 40 x 40", uniform), ("random 3-regular graph", flat)):
        for chains in (64, 32):
            mine, rival = ours("BlockGibbs", blocks, model, chains, 4000), thrml(model, chains)
            target = Target(mine.name, rival.name, 10)
            title_full = f"One coupling, {title}, {chains} chains"
            found.append(Contest(title_full, [mine, rival], [target], chains * SITES, "site updates"))
    return found


if __name__ == "__main__":
    main(__file__, contests)
