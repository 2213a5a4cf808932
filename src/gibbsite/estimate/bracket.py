"""log Z from both sides: annealing from a base to the model bounds it from below, the way back from above."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from .. import random
from ..algebra import Path
from ..check import number
from ..model import Distribution, Model, as_model, device_of, evaluate
from ..random import Seed, Source
from ..sample.driver import Progress
from ..sample.kernel import Cost, check_chains
from ..space import Space, whole
from .ais import lower_estimate, upper_estimate
from .base import check_base, default_base, path_to
from .bridge import accept_ratio
from .estimate import FEW, MARGIN, Estimate
from .kernels import Kernels, Pair, default_kernels, kernel_for
from .schedules import linear
from .settle import Settled, settle
from .walk import Walk, backward, forward, ladder, start_of
from .weights import systematic, weighted_mean

_SETTLING = 100  # steps that chains settle for at least; fewer temperatures say nothing of how fast the model mixes
_DISAGREE = 4.0  # standard errors between mean U seen from the two directions


def bracket(
    model: Callable[[Tensor], Tensor],
    *,
    seed: Seed,
    base: Distribution | None = None,
    path: Path | None = None,
    kernel: Kernels | None = None,
    data: Tensor | None = None,
    x: Tensor | None = None,
    temperatures: int | Sequence[float] = 1000,
    chains: int = 100,
    settling: int | None = None,
    widest: float = 1.0,
    space: Space | None = None,
    progress: Progress = None,
) -> Estimate:
    """log Z of a model from both sides: E[log mean w] <= log Z forward, E[-log mean 1/w] >= log Z in reverse.

    Forward: AIS from `base` (fitted to `data` if there are any, else uniform, or normal with a pilot run's moments) along
    `path`. Reverse: the same betas from `x`, exact draws of the model, or else from chains run for `settling` steps
    (None: as many as temperatures, and 100 at least) from three starts: base, forward particles resampled by weight, and
    `data`. The ends lie 3 standard errors beyond what each direction saw; the value joins both by Bennett's acceptance
    ratio, which is exact for kernels that are reversible or, like the default ones, run backwards in reverse; it is kept
    between the two.

    `temperatures` is a number of even steps or betas from 0 to 1. It is not `trusted`, and `why` says why, when the ends
    cross, an ESS is below 5, the chains still differ by start, the two directions disagree on mean U of the model, or the
    ends lie more than `widest` apart. No test can see a mode that no start and no chain has found.

    References: Grosse et al. (2015), Sandwiching the marginal likelihood using bidirectional Monte Carlo; Burda et al.
    (2015); Bennett (1976).

    Example:
        >>> import gibbsite as gb
        >>> rbm = gb.models.RBM.random(12, 6, seed=0)
        >>> z = gb.bracket(rbm, temperatures=100, seed=1)
        >>> z.trusted, z.lower < rbm.log_z().item() < z.upper
        (True, True)
    """
    model = as_model(model, space)
    source = random.generator(seed, device_of(model))
    betas = ladder(temperatures if isinstance(temperatures, Sequence) else linear(temperatures))
    chains, widest = whole(chains, "chains", 3), number(widest, "widest", above=0)
    steps = whole(max(len(betas) - 1, _SETTLING) if settling is None else settling, "settling")
    path = _path(model, base, path, data, source)
    kernels = default_kernels(path, seed=source) if kernel is None else Pair(kernel, kernel)
    out = forward(path, kernels.forward, betas, chains, seed=source, progress=progress)
    if x is None:
        starts = _starts(path, out, data, chains, source)
        at_model = kernel_for(kernels.forward, 1.0)
        settled = settle(at_model, path.at(1.0), starts, steps=steps, seed=source, progress=progress)
    else:
        settled = Settled(check_chains(model, x), "", Cost())
    back = backward(path, kernels.backward, betas, settled.x, seed=source, progress=progress)
    return _Sides(model, out, back, settled).joined(widest)


def _path(model: Model, base: Distribution | None, path: Path | None, data: Tensor | None, source: Source) -> Path:
    """The path given, if it ends in the model's space, or the one that the model's type and the base suggest."""
    if path is not None:
        if base is not None:
            raise ValueError("base, path: expected one of them, got both; a path has its start in it")
        if start_of(path).space != model.space:
            raise ValueError(f"path: expected one on {model.space}, where the model lives, got {path.start.space}")
        return path
    made = default_base(model, data, seed=source) if base is None else check_base(base, model.space)
    return path_to(model, made)


def _starts(path: Path, out: Walk, data: Tensor | None, chains: int, source: Source) -> dict[str, Tensor]:
    """States to run chains from: of the base where the model allows them, annealed ones, and data."""
    starts = {"annealed particles": out.x[systematic(out.log_w, chains, source)]}
    base = start_of(path)
    drawn = check_chains(base, base.sample(chains, seed=source))
    possible = drawn[evaluate(path.at(1.0), drawn).isfinite()]
    if len(possible):
        starts["the base"] = possible
    if data is not None:
        states = check_chains(base, data).to(out.x.device)
        starts["data"] = states[random.integers(len(states), (chains,), source)]
    share = -(-chains // len(starts))
    return {name: states[:: max(1, len(states) // share)][:share] for name, states in starts.items()}


class _Fault(NamedTuple):
    found: bool
    words: str


@final
@dataclass(frozen=True)
class _Sides:
    """What both directions saw."""

    model: Model
    out: Walk
    back: Walk
    settled: Settled

    def joined(self, widest: float) -> Estimate:
        """The estimate, and what speaks against it."""
        low, high = lower_estimate(self.out), upper_estimate(self.back)
        ratio = accept_ratio(self.out.log_w, -self.back.log_w)
        value = min(max(ratio.value, min(low.value, high.value)), max(low.value, high.value))
        faults = [fault.words for fault in self._faults(low, high, widest) if fault.found]
        cost = low.cost.plus(high.cost).plus(self.settled.cost)
        fewest, n = min((low.ess, low.n), (high.ess, high.n))
        return Estimate(value, ratio.stderr, low.lower, high.upper, fewest, n, cost, not faults, "; ".join(faults))

    def _faults(self, low: Estimate, high: Estimate, widest: float) -> list[_Fault]:
        error = (low.stderr**2 + high.stderr**2) ** 0.5
        crossed, gap = low.value - high.value, high.upper - low.lower
        apart = self._apart()
        return [
            _Fault(bool(self.settled.why), self.settled.why),
            _Fault(
                not crossed <= MARGIN * error,
                f"the ends cross: {low.value:.3f} from below is over {high.value:.3f} from above by {crossed:.3f}, more "
                f"than their errors ({error:.3f}); the chains that came back did not start at draws of the model",
            ),
            _Fault(
                low.ess < FEW,
                f"forward, the ESS is {low.ess:.1f} of {low.n} chains; take more temperatures, a better base",
            ),
            _Fault(high.ess < FEW, f"in reverse, the ESS is {high.ess:.1f} of {high.n} chains; take more temperatures"),
            _Fault(
                apart > _DISAGREE,
                f"the two directions disagree on the mean U of the model by {apart:.1f} standard errors: one of them has "
                "not seen all of it",
            ),
            _Fault(not gap <= widest, f"the gap is wide: the ends are {gap:.3g} apart, more than widest={widest:g}"),
        ]

    def _apart(self) -> float:
        """Standard errors between mean U over forward particles, weighted, and over the states that reverse chains left."""
        forward_u, error = weighted_mean(evaluate(self.model, self.out.x), self.out.log_w)
        u = evaluate(self.model, self.settled.x).double()
        other = u.std() / len(u) ** 0.5 if len(u) > 1 else torch.zeros(())
        total = float((error.square() + other.square()).sqrt())
        return abs(float(forward_u - u.mean())) / max(total, 1e-6 * (1 + abs(float(u.mean()))))
