"""Annealed importance sampling: log Z from below by chains that leave the base, from above by chains that return to it."""

from collections.abc import Sequence

from torch import Tensor

from ..algebra import Path
from ..random import Seed
from ..sample.driver import Progress
from .estimate import MARGIN, Estimate, few
from .walk import Kernels, Walk, backward, forward
from .weights import ess, log_mean, log_mean_error


def ais(
    path: Path, kernel: Kernels, betas: Sequence[float], *, chains: int = 100, seed: Seed, progress: Progress = None
) -> Estimate:
    """log Z of the model at the end of a path, from below: E[w] = Z, so that E[log mean w] <= log Z (Jensen).

    w = prod_k p_k(x_(k-1)) / p_(k-1)(x_(k-1)) for unnormalised p_k, x_0 drawn from the path's start and x_k one step of the
    kernel at beta_k from x_(k-1): weights are taken before each move. `kernel` is any kernel that keeps each beta's law, or
    a function of beta that gives one; a path is any `Path` that starts from a Distribution. log Z is of the end model as
    written, whatever constants the models in between carry. The upper end is infinite: `reverse_ais` is the other side,
    and `bracket` has both.

    References: Neal (2001), Annealed importance sampling; Burda et al. (2015), Accurate and conservative estimates of MRF
    log-likelihood using reverse annealing.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.3)
        >>> path = gb.Geometric(model.space.uniform(), model)
        >>> z = gb.ais(path, gb.sample.BlockGibbs(), gb.estimate.linear(100), chains=100, seed=0)
        >>> z.lower < float(gb.exact.log_z(model)) < z.upper
        True
    """
    return lower_estimate(forward(path, kernel, betas, chains, seed=seed, progress=progress))


def reverse_ais(
    path: Path, kernel: Kernels, betas: Sequence[float], x: Tensor, *, seed: Seed, progress: Progress = None
) -> Estimate:
    """log Z from above: chains that start at draws x of the end model are carried back to the base; E[1/w] = 1/Z.

    So E[-log mean 1/w] >= log Z, if x are draws of the model: exact ones, or the states of long-run chains. From data it is
    an upper bound only as far as the model fits them. Chains that stand where the model gives too little probability make
    it too low; `bracket` tests for that.

    References: Burda et al. (2015); Grosse et al. (2015), Sandwiching the marginal likelihood using bidirectional Monte
    Carlo.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.distributions.Normal.standard(2)
        >>> path = gb.Geometric(gb.distributions.Normal.diagonal([1.0, 0.0], 2.0), model)
        >>> z = gb.estimate.reverse_ais(path, gb.sample.MALA(0.8), gb.estimate.linear(50), model.sample(100, seed=0), seed=1)
        >>> z.lower < 0 < z.upper
        True
    """
    return upper_estimate(backward(path, kernel, betas, x, seed=seed, progress=progress))


def lower_estimate(walk: Walk) -> Estimate:
    """What forward weights say of log Z."""
    value, error, effective = log_mean(walk.log_w), log_mean_error(walk.log_w), ess(walk.log_w)
    why, n = few(effective, len(walk.log_w)), len(walk.log_w)
    return Estimate(value, error, value - MARGIN * error, float("inf"), effective, n, walk.cost, not why, why)


def upper_estimate(walk: Walk) -> Estimate:
    """What reverse weights, whose mean estimates 1/Z, say of log Z."""
    value, error, effective = -log_mean(walk.log_w), log_mean_error(walk.log_w), ess(walk.log_w)
    why, n = few(effective, len(walk.log_w)), len(walk.log_w)
    return Estimate(value, error, float("-inf"), value + MARGIN * error, effective, n, walk.cost, not why, why)
