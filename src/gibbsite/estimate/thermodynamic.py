"""Thermodynamic integration: log Z as the integral over beta of the mean slope of U, with both of its errors."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..algebra import Geometric, Path
from ..model import device_of, evaluate
from ..processes import Group
from ..random import Seed
from ..sample.anneal import by_beta
from ..sample.compiled import compiled
from ..sample.driver import Progress, progress_bar
from ..sample.kernel import Cost, check_chains, started
from ..space import whole
from .estimate import MARGIN, Estimate
from .rbm_path import RBMPath
from .walk import Kernels, ladder, start_of, together

_DRIFT = 4.0  # standard errors between the halves of the runs


def thermodynamic(
    path: Path,
    kernel: Kernels,
    betas: Sequence[float],
    *,
    steps: int = 50,
    chains: int = 100,
    seed: Seed,
    progress: Progress = None,
) -> Estimate:
    """log Z_1 - log Z_0 = int_0^1 E_beta[dU_beta/dbeta] dbeta, by the trapezium rule over `betas`.

    At each beta the chains make `steps` steps from where the last beta left them; the first half is thrown away. The mean
    slope rises with beta (its derivative is Var(dU/dbeta) + E[d2U/dbeta2], none negative on these paths): sums of left and
    right values therefore enclose the integral, and are the ends, 3 Monte Carlo errors out. `stderr` joins the Monte Carlo
    error (between chains) with a third of what every second beta alone would change (Richardson's discretisation error).
    Not trusted if the slopes still drift within the runs: chains that lag behind beta make it too low.

    References: Kirkwood (1935); Gelman and Meng (1998), Simulating normalizing constants; Calderhead and Girolami (2009).

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.2)
        >>> path = gb.Geometric(model.space.uniform(), model)
        >>> z = gb.estimate.thermodynamic(path, gb.sample.GibbsSweep(), gb.estimate.linear(20), steps=20, seed=0)
        >>> z.lower < gb.exact.log_z(model).item() < z.upper
        True
    """
    if not isinstance(path, Geometric | RBMPath):
        raise TypeError(f"path: expected a Geometric or RBMPath, whose slope in beta is known, got {type(path).__name__}")
    grid, base, steps = ladder(betas), start_of(path), whole(steps, "steps", 4)
    group, make = Group.current(device_of(path.at(1.0))), by_beta(kernel)
    source = group.source(random.generator(seed, group.device))
    x = check_chains(base, base.sample(group.share(whole(chains, "chains", 2), "chains"), seed=source))
    gauge = group.gather(evaluate(path.at(0.0), x).double() - evaluate(base, x).double())
    slopes, cost = torch.zeros(2, len(grid), len(x), dtype=torch.float64, device=x.device), Cost(2, 0)
    with group.agreed(), torch.no_grad(), progress_bar(progress, len(grid), "integrating") as tell:
        for place, beta in enumerate(grid):
            model = path.at(beta)
            runner = compiled(make(beta), model, x)
            state, first = started(runner, model, x)
            cost = cost.plus(first)
            for step in range(steps):
                state, info = runner.step(model, state, source)
                cost = cost.plus(info.cost)
                if step >= steps // 2:  # the kept half, in two quarters
                    slopes[int(step >= steps - (steps - steps // 2) // 2), place] += _slope(path, beta, state.x)
                    cost = cost.plus(Cost(2 if isinstance(path, Geometric) else 1, 0))
            x = state.x
            tell(1)
    late = (steps - steps // 2) // 2
    slopes /= torch.tensor([steps - steps // 2 - late, late], dtype=torch.float64, device=x.device).view(2, 1, 1)
    slopes = group.gather(slopes.permute(2, 0, 1)).permute(1, 2, 0).cpu()
    return _joined(torch.tensor(grid, dtype=torch.float64), slopes, float(gauge.mean()), together(group, cost))


def _slope(path: Geometric | RBMPath, beta: float, x: Tensor) -> Float[Tensor, " chains"]:
    """dU_beta(x)/dbeta."""
    if isinstance(path, Geometric):
        return evaluate(path.end, x).double() - evaluate(path.start, x).double()
    return path.slope(beta, x)


def _joined(betas: Tensor, slopes: Float[Tensor, "halves betas chains"], gauge: float, cost: Cost) -> Estimate:
    """The rule, its ends and errors. Chains are independent of each other; each one's slopes at all betas are not."""
    n, step = slopes.shape[2], betas.diff()
    each = torch.trapezoid(slopes.mean(0), betas, dim=0)
    mean = slopes.mean((0, 2))
    value, noise = float(each.mean()), float(each.std()) / math.sqrt(n)
    coarse = torch.cat((betas[:-1:2], betas[-1:])), torch.cat((mean[:-1:2], mean[-1:]))
    grid = abs(value - float(torch.trapezoid(coarse[1], coarse[0]))) / 3
    ends = [float((step * part).sum()) for part in (mean[:-1], mean[1:])]
    drifts = torch.trapezoid(slopes[1] - slopes[0], betas, dim=0)
    drift = float(drifts.mean()) / max(float(drifts.std()) / math.sqrt(n), 1e-9 * (1 + abs(value)))
    why = (
        "" if abs(drift) <= _DRIFT else f"slopes still drift within the runs ({drift:+.1f} standard errors): take more steps"
    )
    lower, upper = gauge + min(ends) - MARGIN * noise, gauge + max(ends) + MARGIN * noise
    return Estimate(gauge + value, math.hypot(noise, grid), lower, upper, n, n, cost, not why, why)
