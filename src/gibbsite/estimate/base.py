"""Where annealing starts when nobody says: a distribution in the model's own space, fitted to data or to a pilot run."""

import torch
from torch import Tensor

from .. import random
from ..algebra import Geometric, Path
from ..distributions.factorised import Bernoulli, Independent
from ..distributions.normal import Normal
from ..model import Distribution, Model, device_of, dtype_of
from ..models.rbm import RBM
from ..random import Seed
from ..space import Binary, Categorical, Discrete, Real, Space
from .kernels import tuned_hmc
from .rbm_path import RBMPath

_FLOOR = 1e-3  # least standard deviation of a fitted normal, as a share of the largest
_PILOT = 300  # steps of the pilot run that a normal base is fitted to


def fit_base(space: Space, data: Tensor) -> Distribution:
    """Independent bits, categorical sites or normal entries with the frequencies or moments of the data (n, *event).

    References: Grathwohl et al. (2021), Oops I took a gradient, appendix I.2.1.

    Example:
        >>> import gibbsite as gb
        >>> data = gb.Binary(4).uniform().sample(100, seed=0)
        >>> type(gb.estimate.fit_base(gb.Binary(4), data)).__name__
        'Bernoulli'
    """
    x = space.check(data, "data")
    if x.ndim != 1 + len(space.shape) or not len(x):
        raise ValueError(f"data: expected (n, *{space.shape}) with at least 1 state, got {tuple(x.shape)}")
    if isinstance(space, Binary):
        return Bernoulli.fit(x)
    if isinstance(space, Categorical):
        return Independent.fit(x, states=space.states)
    if isinstance(space, Real):
        return _normal(x)
    raise TypeError(f"base: no base is known for {space}; pass a Distribution on it as base=")


def check_base(base: Distribution, space: Space) -> Distribution:
    """base, if it is a distribution in this space."""
    if not isinstance(base, Distribution):
        raise TypeError(f"base: expected a gibbsite.Distribution, got {type(base).__name__}; its log Z must be 0")
    if base.space != space:
        raise ValueError(f"base: expected a distribution on {space}, where the model lives, got one on {base.space}")
    return base


def default_base(model: Model, data: Tensor | None, *, seed: Seed) -> Distribution:
    """Fitted to the data if there are any; else uniform on discrete states, and fitted to a pilot run on real ones."""
    if data is not None:
        return fit_base(model.space, data).to(device_of(model))
    if isinstance(model.space, Discrete):
        return model.space.uniform()
    if isinstance(model.space, Real):
        return _piloted(model, model.space, seed)
    raise TypeError(f"base: no base is known for {model.space}; pass a Distribution on it as base=")


def path_to(model: Model, base: Distribution) -> Path:
    """The path on which the model's own structure serves every temperature: RBMs for an RBM over bits, else geometric."""
    if isinstance(model, RBM) and (isinstance(base, Bernoulli) or base.space.uniform().__class__ is type(base)):
        return RBMPath(model, base)  # type: ignore[arg-type]
    return Geometric(base, model)


def _normal(x: Tensor) -> Normal:
    spread = x.double().std(0) if len(x) > 1 else torch.ones_like(x[0], dtype=torch.float64)
    floor = max(_FLOOR * float(spread.max()), 1e-6)
    return Normal.diagonal(x.double().mean(0).to(x.dtype), spread.clamp(min=floor).to(x.dtype))


def _piloted(model: Model, space: Real, seed: Seed) -> Normal:
    """A normal law with the moments of chains that were annealed to the model from a standard normal law, then run on."""
    source = random.generator(seed, device_of(model))
    start = Normal.standard(space.shape, dtype=dtype_of(model)).to(device_of(model))
    path = Geometric(start, model)
    pilot = tuned_hmc(path, steps=_PILOT, chains=64, seed=source)
    x, kernel = pilot.x, pilot.kernel(1.0)
    state, kept = kernel.init(model, x), []
    for _ in range(_PILOT):
        state, _ = kernel.step(model, state, source)
        kept.append(state.x)
    return _normal(torch.cat(kept[_PILOT // 2 :]))
