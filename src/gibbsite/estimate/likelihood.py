"""The log-likelihood of data under a model whose log Z was estimated."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ..check import instance
from ..model import as_model, evaluate
from ..processes import Group
from ..space import Space
from .estimate import Estimate

_BATCH = 1024  # states evaluated at once


def log_likelihood(
    model: Callable[[Tensor], Tensor], data: Tensor, log_z: Estimate, *, space: Space | None = None
) -> Estimate:
    """mean log p(x) over these data = mean U(x) - log Z: log Z's upper end gives the lower end, its lower end the upper.

    The error is that of log Z: the mean is of the data given, not of others that could have been.

    Example:
        >>> import torch, gibbsite as gb
        >>> rbm = gb.models.RBM.random(6, 3, seed=0)
        >>> data = rbm.space.uniform().sample(50, seed=1)
        >>> log_z = gb.bracket(rbm, temperatures=50, chains=50, seed=2)
        >>> likelihood = gb.estimate.log_likelihood(rbm, data, log_z)
        >>> likelihood.lower < (rbm(data).mean() - rbm.log_z()).item() < likelihood.upper
        True
    """
    model, log_z = as_model(model, space), instance(log_z, Estimate, "log_z", hint="; such as gb.bracket(model, seed=0)")
    x = model.space.check(data, "data")
    if x.ndim != 1 + len(model.space.shape) or not len(x):
        raise ValueError(f"data: expected (n, *{model.space.shape}) with at least 1 state, got {tuple(x.shape)}")
    group = Group.current(x.device)
    with group.agreed():
        parts = [evaluate(model, part, start=True).double() for part in group.part(x, "data").split(_BATCH)]
    mean = float(group.gather(torch.cat(parts)).mean())
    return replace(log_z, value=mean - log_z.value, lower=mean - log_z.upper, upper=mean - log_z.lower)
