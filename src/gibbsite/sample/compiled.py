"""The one table of compiled CPU loops: which (kernel, model, device) has a faster way to draw from the same law.

Kernels and models don't know of it: `gibbsite.run` asks `compiled` for a runner, and learners may. A runner draws from the
same law as its kernel, from another stream of the same generator; it runs float32 models on the CPU only, and everything
else stays with the kernel itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from .._fast import clusters, gibbs, gwg, gwg_rbm, packed, packed_halves, rbm
from ..model import Model, dtype_of
from ..models.ising import Ising
from ..models.net import MLP
from ..models.rbm import RBM
from ..random import Source
from ..space import Real
from . import balance, mlp_score
from .clamp import free_mask
from .clusters import SwendsenWang, Wolff
from .combine import Cycle, Mixture, Repeat
from .gibbs import BlockGibbs, Gibbs, GibbsSweep
from .informed import Informed
from .kernel import MH, Cost, Info, Kernel, State
from .pairwise import Rows, ising_of, potentials, rows
from .tempering import Tempering

_PACKED_CHAINS = 16  # fewer leave most of a 64-chain word empty


Loop = Callable[[Any, Any, np.ndarray, np.ndarray, np.uint64, int], np.ndarray]


@final
@dataclass(frozen=True, eq=False)
class OnCompiledModel(Kernel):
    """`kernel` with the model's score taken by a compiled loop."""

    kernel: Kernel
    swap: Callable[[Any], Model]

    def init(self, model: Model, x: Tensor) -> Any:
        return self.kernel.init(self.swap(model), x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        return self.kernel.step(self.swap(model), state, generator)


@final
@dataclass(frozen=True, eq=False)
class Compiled(Kernel):
    """`times` steps of `kernel` by a compiled loop; its state is (x, u), with nothing kept for the torch path."""

    kernel: Any
    times: int
    loop: Loop

    def init(self, model: Model, x: Tensor) -> State:
        start = self.kernel.init(model, x)
        return State(start.x, start.u)

    def step(self, model: Model, state: State, generator: Source) -> tuple[State, Info]:
        assert isinstance(generator, torch.Generator)
        seed = np.uint64(int(torch.randint(2**63 - 1, (), generator=generator)))
        x, u = state.x.numpy().view(np.uint8).copy(), state.u.double().numpy().copy()
        accepted = self.loop(self.kernel, model, x, u, seed, self.times)
        rate = torch.from_numpy(accepted / self.times).to(state.u.dtype)
        new = State(torch.from_numpy(x.view(np.int8)), _finite(torch.from_numpy(u)).to(state.u.dtype))
        return new, Info(rate, rate > 0, Cost().plus(_move(self.kernel).cost(model), self.times))


def compiled(kernel: Kernel, model: Model, x: Tensor) -> Kernel:
    """A kernel with the same law that runs compiled loops, if there is one for this model and device; else `kernel`.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(8, coupling=0.3)
        >>> x = model.space.uniform().sample(4, seed=0)
        >>> type(gb.sample.compiled(gb.sample.GibbsSweep(), model, x)).__name__
        'Compiled'
    """
    if x.device.type != "cpu" or dtype_of(model) != torch.float32:
        return kernel
    if isinstance(model, MLP) and isinstance(model.space, Real) and mlp_score.covers(model):
        return OnCompiledModel(kernel, mlp_score.compiled)
    if isinstance(kernel, Cycle | Mixture):
        return replace(kernel, kernels=[compiled(part, model, x) for part in kernel.kernels])
    if isinstance(kernel, Tempering):
        return replace(kernel, kernel=Automatic(kernel.kernel))
    inner, times = (kernel.kernel, kernel.times) if isinstance(kernel, Repeat) else (kernel, 1)
    if isinstance(inner, Cycle | Mixture | Tempering):
        return Repeat(compiled(inner, model, x), times)
    kind = Ising if type(_move(inner)) in _ON_SUMS and ising_of(model) is not None else type(model)
    loop = _TABLE.get((type(_move(inner)), kind))
    return kernel if loop is None or not loop.covers(inner, model) else Compiled(inner, times, loop.run)


@final
@dataclass(frozen=True, eq=False)
class Automatic(Kernel):
    """`kernel`, compiled afresh for whatever model it is given: for kernels that run others on models of their own."""

    kernel: Kernel

    def init(self, model: Model, x: Tensor) -> Any:
        return compiled(self.kernel, model, x).init(model, x)

    def step(self, model: Model, state: Any, generator: Source) -> tuple[Any, Info]:
        return compiled(self.kernel, model, state.x).step(model, state, generator)


def _move(kernel: Any) -> Any:
    return kernel.proposal if isinstance(kernel, MH) else kernel


def _finite(u: Tensor) -> Tensor:
    if not u.isfinite().all():
        raise ValueError("U(x): a compiled loop met a value that is not finite; check the model's weights")
    return u


def _free(kernel: Any, model: Model) -> np.ndarray:
    return free_mask(model, _move(kernel).clamp, torch.device("cpu")).numpy()


def _order(kernel: Any, model: Model) -> np.ndarray:
    return np.flatnonzero(_free(kernel, model)).astype(np.int32)


def _ising_sweep(kernel: GibbsSweep, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    graph = rows(model)
    gibbs.sweep(x, *graph.rows, _order(kernel, model), seed, times)
    u[:] = potentials(model, graph, x)
    return np.full(len(x), times)


def _ising_gibbs(kernel: Gibbs, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    graph = rows(model)
    gibbs.random_scan(x, *graph.rows, _order(kernel, model), seed, times * kernel.sites)
    u[:] = potentials(model, graph, x)
    return np.full(len(x), times)


def _ising_blocks(kernel: BlockGibbs, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    graph, free = rows(model), _free(kernel, model)
    classes = [members.numpy()[free[members.numpy()]] for members in kernel.classes(model) or []]
    order = np.concatenate(classes).astype(np.int32)
    if _uniform(graph) and len(x) >= _PACKED_CHAINS:
        _sweep_packed(graph, classes, order, x, seed, times)
    else:
        gibbs.sweep(x, *graph.rows, order, seed, times)
    u[:] = potentials(model, graph, x)
    return np.full(len(x), times)


def _sweep_packed(
    graph: Rows, classes: Sequence[np.ndarray], order: np.ndarray, x: np.ndarray, seed: np.uint64, times: int
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
    if few:
        halves = packed_halves.split(words)[:1]
        packed_halves.sweep(halves, table, sites, sizes, degrees, levels, seed, times)
        words = packed_halves.join(halves)
    else:
        packed.sweep(words, table, sites, sizes, degrees, levels, seed, times)
    packed.unpack(words, x)


def _uniform(graph: Rows) -> bool:
    """Whether one coupling and one field serve all sites, few enough neighbours each: then 64 chains share a word."""
    few = len(graph.weights) > 0 and np.diff(graph.offsets).max() <= packed.DEGREES
    return bool(few and (graph.weights == graph.weights[0]).all() and (graph.field == graph.field[0]).all())


def _ising_gwg(kernel: Any, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    graph = rows(model)
    temperature = kernel.proposal.balance.temperature
    accepted = gwg.steps(x, u, *graph.rows, _free(kernel, model).astype(np.uint8), temperature, seed, times)
    u[:] = potentials(model, graph, x)  # exact again: what was moved along has rounding in it
    return accepted


def _ising_wolff(kernel: Wolff, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    graph = rows(model)
    accepted = clusters.wolff(x, *graph.rows, (~_free(kernel, model)).astype(np.uint8), seed, times)
    u[:] = potentials(model, graph, x)
    return accepted


def _ising_clusters(
    kernel: SwendsenWang, model: Ising, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int
) -> np.ndarray:
    graph = rows(model)
    clusters.swendsen_wang(x, *graph.rows, (~_free(kernel, model)).astype(np.uint8), seed, times)
    u[:] = potentials(model, graph, x)
    return np.full(len(x), times)


def _rbm_weights(model: RBM) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = (model.weight, model.visible_bias, model.hidden_bias)
    weight, visible, hidden = (part.detach().contiguous().numpy() for part in parts)
    return weight, visible, hidden


def _rbm_blocks(kernel: BlockGibbs, model: RBM, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    weight, visible, hidden = _rbm_weights(model)
    v, h = x.astype(np.float32), np.empty((len(x), len(hidden)), np.float32)
    rbm.block_gibbs(v, h, weight, visible, hidden, seed, times)
    x[:] = v
    with torch.no_grad():
        u[:] = model(torch.from_numpy(v)).numpy()
    return np.full(len(x), times)


def _rbm_gwg(kernel: Any, model: RBM, x: np.ndarray, u: np.ndarray, seed: np.uint64, times: int) -> np.ndarray:
    temperature = kernel.proposal.balance.temperature
    return gwg_rbm.rbm_steps(x, u, *_rbm_weights(model), _free(kernel, model).astype(np.uint8), temperature, seed, times)


def _always(kernel: Any, model: Any) -> bool:
    return True


def _one_flip(kernel: Any, model: Any) -> bool:
    """Gibbs-With-Gradients with one draw; on an Ising model the first order is exact, so either `how` is the same law."""
    proposal = kernel.proposal
    power = isinstance(proposal.balance, balance.Power)
    return power and proposal.draws == 1 and (proposal.how == "taylor" or ising_of(model) is not None)


def _unclamped(kernel: BlockGibbs, model: Any) -> bool:
    return kernel.clamp is None


class _Entry(NamedTuple):
    run: Any
    covers: Callable[[Any, Any], bool] = _always


_ON_SUMS = (Gibbs, GibbsSweep, BlockGibbs, Informed)  # kernels that also take sums with an Ising model in them
_TABLE: dict[tuple[type, type], _Entry] = {
    (Gibbs, Ising): _Entry(_ising_gibbs),
    (GibbsSweep, Ising): _Entry(_ising_sweep),
    (BlockGibbs, Ising): _Entry(_ising_blocks),
    (Informed, Ising): _Entry(_ising_gwg, _one_flip),
    (Wolff, Ising): _Entry(_ising_wolff),
    (SwendsenWang, Ising): _Entry(_ising_clusters),
    (BlockGibbs, RBM): _Entry(_rbm_blocks, _unclamped),
    (Informed, RBM): _Entry(_rbm_gwg, _one_flip),
}
