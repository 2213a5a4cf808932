"""The compiled loops as kernels call them: each moves all chains in place and fills what is kept on the way.

A loop is called with (kernel, model, x, u, seed, thin, kept): `thin` steps before each kept state. It returns how many
steps each chain accepted.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .._fast import clusters, discrete_langevin, gibbs, gwg, gwg_rbm, packed, packed_halves, path, rbm
from .._fast.random import substream
from ..models.ising import Ising
from ..models.rbm import RBM
from .clamp import free_mask
from .clusters import SwendsenWang, Wolff
from .gibbs import BlockGibbs, Gibbs, GibbsSweep
from .kernel import MH
from .pairwise import Rows, potentials, rows

_PACKED_CHAINS = 16  # fewer leave most of a 64-chain word empty


class Kept(NamedTuple):
    """The states kept, (draws, chains, sites) uint8, and U there, (draws, chains) float64, or (0, chains): not wanted."""

    x: np.ndarray
    u: np.ndarray


Loop = Callable[[Any, Any, np.ndarray, np.ndarray, np.uint64, int, Kept], np.ndarray]


def move(kernel: Any) -> Any:
    """What moves: the proposal of an MH kernel, or the kernel."""
    return kernel.proposal if isinstance(kernel, MH) else kernel


def _free(kernel: Any, model: Any) -> np.ndarray:
    return free_mask(model, move(kernel).clamp, torch.device("cpu")).numpy()


def _order(kernel: Any, model: Any) -> np.ndarray:
    return np.flatnonzero(_free(kernel, model)).astype(np.int32)


def _fill(
    kept: Kept, model: Any, graph: Rows, x: np.ndarray, seed: np.uint64, advance: Callable[[np.uint64], object]
) -> None:
    """Calls `advance(seed)`, which moves x in place, before each kept state; then takes U of them all."""
    for draw in range(len(kept.x)):
        advance(np.uint64(substream(seed, draw)))
        kept.x[draw] = x
    _fill_potentials(kept, model, graph)


def _fill_potentials(kept: Kept, model: Any, graph: Rows) -> None:
    if len(kept.u):
        kept.u[:] = potentials(model, graph, kept.x.reshape(-1, kept.x.shape[2])).reshape(kept.u.shape)


def _always(kept: Kept, thin: int) -> np.ndarray:
    return np.full(kept.x.shape[1], thin * len(kept.x))


def ising_sweep(
    kernel: GibbsSweep, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Systematic-scan Gibbs."""
    graph, order = rows(model), _order(kernel, model)
    gibbs.sweep_draws(x, *graph.rows, order, seed, thin, kept.x)
    _fill_potentials(kept, model, graph)
    return _always(kept, thin)


def ising_gibbs(
    kernel: Gibbs, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Random-scan Gibbs."""
    graph = rows(model)
    u[:] = potentials(model, graph, x)  # exact, for what a float32 state says of U would be moved along
    gibbs.random_scan_draws(x, u, *graph.rows, _order(kernel, model), seed, thin * kernel.sites, *kept)
    return _always(kept, thin)


def ising_blocks(
    kernel: BlockGibbs, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Colour classes in turn: bit-packed where one coupling and one field serve all sites."""
    graph, free = rows(model), _free(kernel, model)
    classes = [members.numpy()[free[members.numpy()]] for members in kernel.classes(model) or []]
    order = np.concatenate(classes).astype(np.int32)
    if _uniform(graph) and len(x) >= _PACKED_CHAINS:
        _packed(graph, classes, order, x, seed, thin, kept)
    else:
        gibbs.sweep_draws(x, *graph.rows, order, seed, thin, kept.x)
    _fill_potentials(kept, model, graph)
    return _always(kept, thin)


def _packed(
    graph: Rows, classes: Sequence[np.ndarray], order: np.ndarray, x: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> None:
    """64 chains to a word; when there are at most 32, two sites of 32 chains to a word."""
    few = len(x) <= 32
    starts = np.concatenate(([0], np.cumsum([len(members) for members in classes])))
    plans, key = graph.plans, order.tobytes() + starts.tobytes() + bytes([few])
    if key not in plans:
        width = packed_halves.PAIR if few else packed.CHUNK
        plans[key] = packed.plan(graph.offsets, graph.neighbours, order, starts, width)
    table, sites, sizes, degrees = plans[key]
    levels, words = packed.thresholds(graph.weights[0], graph.field[0]), packed.pack(x)
    halves = packed_halves.split(words)[:1] if few else words
    sweep = packed_halves.sweep if few else packed.sweep
    for draw in range(len(kept.x)):
        sweep(halves, table, sites, sizes, degrees, levels, np.uint64(substream(seed, draw)), thin)
        packed.unpack(packed_halves.join(halves) if few else halves, x)
        kept.x[draw] = x


def _uniform(graph: Rows) -> bool:
    """Whether one coupling and one field serve all sites, few enough neighbours each: then 64 chains share a word."""
    few = len(graph.weights) > 0 and np.diff(graph.offsets).max() <= packed.DEGREES
    return bool(few and (graph.weights == graph.weights[0]).all() and (graph.field == graph.field[0]).all())


def ising_gwg(kernel: Any, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept) -> np.ndarray:
    """Gibbs-With-Gradients with one draw."""
    graph, free = rows(model), _free(kernel, model).astype(np.uint8)
    u[:] = potentials(model, graph, x)  # exact, for what a float32 state says of U would be moved along
    return gwg.draws(x, u, *graph.rows, free, kernel.proposal.balance.temperature, seed, thin, *kept)


def ising_paths(
    kernel: Any, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Path-auxiliary moves."""
    graph, free, move = rows(model), _free(kernel, model).astype(np.uint8), kernel.proposal
    u[:] = potentials(model, graph, x)  # exact, for what a float32 state says of U would be moved along
    return path.draws(x, u, *graph.rows, free, move.length, move.balance.temperature, seed, thin, *kept)


def ising_langevin(
    kernel: Any, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Metropolis-adjusted discrete Langevin."""
    graph, free, move = rows(model), _free(kernel, model).astype(np.uint8), kernel.proposal
    u[:] = potentials(model, graph, x)
    return discrete_langevin.draws(x, u, *graph.rows, free, move.step_size, move.balance.temperature, seed, thin, *kept)


def ising_wolff(
    kernel: Wolff, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Single clusters."""
    graph, accepted, held = rows(model), np.zeros(len(x), np.int64), (~_free(kernel, model)).astype(np.uint8)

    def advance(number: np.uint64) -> None:
        accepted[:] += clusters.wolff(x, *graph.rows, held, number, thin)

    _fill(kept, model, graph, x, seed, advance)
    return accepted


def ising_clusters(
    kernel: SwendsenWang, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """All clusters."""
    graph, held = rows(model), (~_free(kernel, model)).astype(np.uint8)
    _fill(kept, model, graph, x, seed, lambda number: clusters.swendsen_wang(x, *graph.rows, held, number, thin))
    return _always(kept, thin)


def _rbm_weights(model: RBM) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = (model.weight, model.visible_bias, model.hidden_bias)
    weight, visible, hidden = (part.detach().contiguous().numpy() for part in parts)
    return weight, visible, hidden


def rbm_blocks(
    kernel: BlockGibbs, model: RBM, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept
) -> np.ndarray:
    """Hidden given visible, visible given hidden."""
    weight, visible, hidden = _rbm_weights(model)
    v, h = x.astype(np.float32), np.empty((len(x), len(hidden)), np.float32)
    for draw in range(len(kept.x)):
        rbm.block_gibbs(v, h, weight, visible, hidden, np.uint64(substream(seed, draw)), thin)
        kept.x[draw] = v
        if len(kept.u):
            with torch.no_grad():
                kept.u[draw] = model(torch.from_numpy(v)).numpy()
    return _always(kept, thin)


def rbm_gwg(kernel: Any, model: RBM, x: np.ndarray, u: np.ndarray, seed: np.uint64, thin: int, kept: Kept) -> np.ndarray:
    """Gibbs-With-Gradients with one draw."""
    free = _free(kernel, model).astype(np.uint8)
    return gwg_rbm.rbm_draws(x, u, *_rbm_weights(model), free, kernel.proposal.balance.temperature, seed, thin, *kept)
