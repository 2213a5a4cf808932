"""Maximum entropy by iterative scaling: the weights of a log-linear model that give its features the means wanted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..check import floats, instance, number
from ..exact import states
from ..model import Model, device_of
from ..models import LogLinear
from ..space import whole

Update = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@final
@dataclass(frozen=True)
class Scaled:
    """How far it went: sweeps made, and the largest |E_p f_k - target_k| that is left."""

    sweeps: int
    gap: float


def generalised_scaling(
    model: LogLinear,
    targets: Float[Tensor, " features"],
    *,
    base: Model | None = None,
    sweeps: int = 10_000,
    tolerance: float = 1e-8,
) -> Scaled:
    """w_k <- w_k + log(target_k / E_p f_k) / C, C the largest sum of features, until E_p f = target; by enumeration.

    p(x) = q(x) exp U(x) / Z, q `base` (None: uniform), is then of all laws with these means the nearest to q: the largest
    entropy. With the means in data as targets it is the maximum-likelihood fit. Features and targets must be positive or 0.

    References: Darroch and Ratcliff (1972), Generalized iterative scaling; Curran and Clark (2003), for no slack feature.
    """

    def update(p: Tensor, f: Tensor, total: Tensor, targets: Tensor) -> Tensor:
        return (targets / (p @ f)).log() / total.max()

    return _scale(model, targets, update, base, sweeps, tolerance)


def improved_scaling(
    model: LogLinear,
    targets: Float[Tensor, " features"],
    *,
    base: Model | None = None,
    sweeps: int = 10_000,
    tolerance: float = 1e-8,
) -> Scaled:
    """w_k <- w_k + d_k with E_p f_k exp(d_k f#) = target_k, f# = sum_k f_k, until E_p f = target; by enumeration.

    As `generalised_scaling`, and with steps that are longer where f# is below its largest value. Each sweep raises the
    likelihood of data with these means.

    References: Della Pietra, Della Pietra and Lafferty (1997), Inducing features of random fields; EBM-SLP, section 4.1.2.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Binary(2)
        >>> model = gb.models.LogLinear(space, space.embed, torch.zeros(2))
        >>> done = gb.learn.improved_scaling(model, torch.tensor([0.5, 0.8]))
        >>> [round(w, 3) for w in model.weights.tolist()]                               # log 0.8 / 0.2 = log 4
        [0.0, 1.386]
    """
    return _scale(model, targets, _improved, base, sweeps, tolerance)


def _improved(p: Tensor, f: Tensor, total: Tensor, targets: Tensor) -> Tensor:
    """The root in d of log E_p f_k exp(d f#) = log target_k, by Newton's method: it is convex and increasing in d."""
    d = torch.zeros_like(targets)
    log_weight = p.log()[:, None] + f.log()
    for _ in range(100):
        terms = log_weight + total[:, None] * d
        value = terms.logsumexp(0)
        step = (targets.log() - value) / (terms.softmax(0) * total[:, None]).sum(0)
        d = d + step
        if float(step.abs().max()) < 1e-12:
            break
    return d


@torch.no_grad()
def _scale(model: LogLinear, targets: Tensor, update: Update, base: Model | None, sweeps: int, tolerance: float) -> Scaled:
    tolerance = number(tolerance, "tolerance", above=0)
    every = states(instance(model, LogLinear, "model").space).to(device_of(model))
    f = model.described(every).double()
    targets = floats(targets, "targets", (f.shape[1],)).to(f)
    _check(f, targets)
    start = f.new_zeros(len(f)) if base is None else instance(base, Model, "base")(every).double()
    some = f.sum(1) > 0  # f# = 0 plays no part in a step
    weights, done, sweeps = model.weights.double(), 0, whole(sweeps, "sweeps")
    p = (start + f @ weights).softmax(0)
    while (gap := float((p @ f - targets).abs().max())) > tolerance and done < sweeps:
        weights = weights + update(p[some], f[some], f[some].sum(1), targets)
        p, done = (start + f @ weights).softmax(0), done + 1
    model.weights.copy_(weights)
    return Scaled(done, gap)


def _check(f: Float[Tensor, "states features"], targets: Float[Tensor, " features"]) -> None:
    if bool((f < 0).any()):
        state, feature = (f < 0).nonzero()[0].tolist()
        raise ValueError(
            f"features: expected none below 0, got {f[state, feature].item():g} of feature {feature}; add a constant"
        )
    low, high = f.min(0).values, f.max(0).values
    bad = (targets <= 0) | (targets < low) | (targets > high) | (high == 0)
    if bool(bad.any()):
        k = int(bad.nonzero()[0])
        raise ValueError(
            f"targets: expected means above 0 that feature {k} can have, {low[k].item():g} to {high[k].item():g}, got "
            f"{targets[k].item():g}; drop a feature that the data never show, or smooth its mean"
        )
