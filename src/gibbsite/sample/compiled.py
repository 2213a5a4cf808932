"""The one table of compiled CPU loops: which (kernel, model, device) has a faster way to draw from the same law.

Kernels and models don't know of it: `gibbsite.run` asks `compiled` for a runner, and learners may. A runner draws from the
same law as its kernel, from another stream of the same generator; it runs float32 models on the CPU only, whole ones, and
everything else stays with the kernel itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from ..model import Model, NotFinite, dtype_of
from ..models.couplings import SparseCouplings
from ..models.ising import Ising
from ..models.net import MLP
from ..models.rbm import RBM
from ..processes import sharded
from ..random import Source
from ..space import Real
from . import balance, loops, mlp_score
from .clusters import SwendsenWang, Wolff
from .combine import Cycle, Mixture, Repeat
from .discrete_langevin import DiscreteLangevin
from .gibbs import BlockGibbs, Gibbs, GibbsSweep
from .informed import Informed
from .kernel import Cost, Info, Kernel, State
from .loops import Kept, Loop
from .pairwise import ising_of
from .path_auxiliary import PathAuxiliary
from .tempering import Tempering


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
        samples, potentials, info = self.draws(model, state, generator, 1)
        return State(samples[0], potentials[0]), info

    def draws(self, model: Model, state: State, generator: Source, count: int) -> tuple[Tensor, Tensor, Info]:
        """`count` states (count, chains, *event) with `times` steps before each, and U there; the info is of all steps."""
        kept = Kept(np.empty((count, *state.x.shape), np.uint8), np.empty((count, len(state.x))))
        info = self._fill(model, state, generator, kept)
        potentials = _finite(torch.from_numpy(kept.u)).to(state.u.dtype)
        return torch.from_numpy(kept.x.view(np.int8)), potentials, info

    def moved(self, model: Model, x: Tensor, generator: Source) -> tuple[Tensor, Info]:
        """x after `times` steps, for those who ask for x alone: block Gibbs then takes no U at either end."""
        blocks = isinstance(self.kernel, BlockGibbs)
        state = (
            State(self.kernel.checked(model, x), torch.zeros(len(x), dtype=torch.float32)) if blocks else self.init(model, x)
        )
        kept = Kept(np.empty((1, *state.x.shape), np.uint8), np.empty((0 if blocks else 1, len(x))))
        info = self._fill(model, state, generator, kept)
        return torch.from_numpy(kept.x[0].view(np.int8)), info

    def _fill(self, model: Model, state: State, generator: Source, kept: Kept) -> Info:
        assert isinstance(generator, torch.Generator)
        seed = np.uint64(int(torch.randint(2**63 - 1, (), generator=generator)))
        x, u = state.x.numpy().view(np.uint8).copy(), state.u.double().numpy().copy()
        steps = len(kept.x) * self.times
        accepted = self.loop(self.kernel, model, x, u, seed, self.times, kept)
        rate = torch.from_numpy(accepted / steps).to(state.u.dtype)
        return Info(rate, rate > 0, Cost().plus(loops.move(self.kernel).cost(model), steps))


def compiled(kernel: Kernel, model: Model, x: Tensor) -> Kernel:
    """A kernel with the same law that runs compiled loops, if there is one for this model and device; else `kernel`.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(8, coupling=0.3)
        >>> x = model.space.uniform().sample(4, seed=0)
        >>> type(gb.sample.compiled(gb.sample.GibbsSweep(), model, x)).__name__
        'Compiled'
    """
    if x.device.type != "cpu" or dtype_of(model) != torch.float32 or sharded(model):
        return kernel
    if isinstance(kernel, Cycle | Mixture):
        return replace(kernel, kernels=[compiled(part, model, x) for part in kernel.kernels])
    if isinstance(kernel, Tempering):
        return replace(kernel, kernel=Automatic(kernel.kernel))
    inner, times = (kernel.kernel, kernel.times) if isinstance(kernel, Repeat) else (kernel, 1)
    if isinstance(inner, Cycle | Mixture | Tempering | Repeat):
        return Repeat(compiled(inner, model, x), times)
    if isinstance(model, MLP) and isinstance(model.space, Real) and mlp_score.covers(model):
        return OnCompiledModel(kernel, mlp_score.compiled)
    kind = Ising if type(loops.move(inner)) in _ON_SUMS and ising_of(model) is not None else type(model)
    loop = _TABLE.get((type(loops.move(inner)), kind))
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


def _finite(u: Tensor) -> Tensor:
    if not u.isfinite().all():
        raise NotFinite("U(x): a compiled loop met a value that is not finite; check the model's weights")
    return u


def _always(kernel: Any, model: Any) -> bool:
    return True


def _one_flip(kernel: Any, model: Any) -> bool:
    """Gibbs-With-Gradients with one draw; on an Ising model the first order is exact, so either `how` is the same law."""
    proposal = kernel.proposal
    power = isinstance(proposal.balance, balance.Power)
    return power and proposal.draws == 1 and (proposal.how == "taylor" or ising_of(model) is not None)


def _many_flips(kernel: Any, model: Any) -> bool:
    """Sparse couplings, for the changes of a dense model are a matrix product; any `how` is the same law, as above."""
    ising = ising_of(model)
    return isinstance(kernel.proposal.balance, balance.Power) and isinstance(ising and ising.pairs, SparseCouplings)


def _unclamped(kernel: BlockGibbs, model: Any) -> bool:
    return kernel.clamp is None


class _Entry(NamedTuple):
    run: Any
    covers: Callable[[Any, Any], bool] = _always


# kernels that also take sums with an Ising model in them
_ON_SUMS = (Gibbs, GibbsSweep, BlockGibbs, Informed, PathAuxiliary, DiscreteLangevin)
_TABLE: dict[tuple[type, type], _Entry] = {
    (Gibbs, Ising): _Entry(loops.ising_gibbs),
    (GibbsSweep, Ising): _Entry(loops.ising_sweep),
    (BlockGibbs, Ising): _Entry(loops.ising_blocks),
    (Informed, Ising): _Entry(loops.ising_gwg, _one_flip),
    (PathAuxiliary, Ising): _Entry(loops.ising_paths, _many_flips),
    (DiscreteLangevin, Ising): _Entry(loops.ising_langevin, _many_flips),
    (Wolff, Ising): _Entry(loops.ising_wolff),
    (SwendsenWang, Ising): _Entry(loops.ising_clusters),
    (BlockGibbs, RBM): _Entry(loops.rbm_blocks, _unclamped),
    (Informed, RBM): _Entry(loops.rbm_gwg, _one_flip),
}
