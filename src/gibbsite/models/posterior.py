"""The posterior of parameters given data, with its score estimated on mini-batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import function, instance
from ..model import Model
from ..random import Source
from ..space import Real, whole


class StochasticScore(ABC):
    """Mixed into a model on real states whose score is known only through unbiased estimates, cheaper than itself."""

    @abstractmethod
    def stochastic_score(self, x: Tensor, generator: Source) -> tuple[Float[Tensor, " chains"], Tensor]:
        """Unbiased estimates of U(x) and of its gradient, without a graph."""

    @property
    @abstractmethod
    def fraction(self) -> float:
        """What an estimate costs, one exact evaluation being 1."""


@final
class Posterior(Model, StochasticScore):
    """U(theta) = log prior(theta) + sum_n log p(d_n | theta), n = 1, ..., N.

    The estimate of its score draws B data with replacement, the same for all chains of a step, and weighs them N / B.

    `log_likelihood(theta, *data)` takes theta of shape (*batch, *event) and m data (a tensor with m rows, or one such
    tensor for each of several inputs), and returns log p(d_n | theta), shape (*batch, m).

    References: Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.models import Posterior
        >>> data = torch.tensor([1.0, 2.0, 3.0])
        >>> prior = gb.distributions.Normal.standard(1)
        >>> model = Posterior(prior, lambda theta, d: -0.5 * (d - theta).square(), data, batch_size=2)
        >>> theta = torch.zeros(1, 1)
        >>> round((model(theta) - prior(theta)).item(), 4)
        -7.0
    """

    def __init__(
        self, prior: Model, log_likelihood: Callable[..., Tensor], data: Tensor | Sequence[Tensor], batch_size: int
    ):
        super().__init__()
        if not isinstance(instance(prior, Model, "prior").space, Real):
            raise TypeError(f"prior: expected a model on Real, got one on {prior.space}")
        function(log_likelihood, "log_likelihood", "lambda theta, d: -0.5 * (d - theta).square()")
        parts = tuple(instance(part, Tensor, "data") for part in ((data,) if isinstance(data, Tensor) else data))
        if not parts or any(len(part) != len(parts[0]) for part in parts) or not len(parts[0]):
            raise ValueError(f"data: expected tensors with the same number of rows, got {[tuple(p.shape) for p in parts]}")
        if whole(batch_size, "batch_size") > len(parts[0]):
            raise ValueError(f"batch_size: expected 1 to {len(parts[0])}, the number of data, got {batch_size}")
        self.prior, self.log_likelihood, self.batch_size, self.space = prior, log_likelihood, batch_size, prior.space
        self._count, self._parts = len(parts[0]), len(parts)
        for index, part in enumerate(parts):
            self.register_buffer(f"data_{index}", part)

    @property
    def data(self) -> tuple[Tensor, ...]:
        """The data, one tensor an input of the likelihood."""
        return tuple(self.get_buffer(f"data_{index}") for index in range(self._parts))

    @property
    def fraction(self) -> float:
        return self.batch_size / self._count

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        return self._potential(x, self.data, 1.0)

    def _potential(self, x: Tensor, data: Sequence[Tensor], weight: float) -> Tensor:
        logs, rows = self.log_likelihood(x, *data), len(data[0])
        expected = (*self.space.batch(x), rows)
        if tuple(logs.shape) != expected:
            raise ValueError(f"log_likelihood: expected shape {expected}, one number a datum, got {tuple(logs.shape)}")
        return self.prior(x) + weight * logs.sum(-1)

    def stochastic_score(self, x: Tensor, generator: Source) -> tuple[Tensor, Tensor]:
        rows = random.integers(self._count, (self.batch_size,), generator)
        with torch.enable_grad():
            theta = x.detach().requires_grad_()
            u = self._potential(theta, [part[rows] for part in self.data], self._count / self.batch_size)
            (gradient,) = torch.autograd.grad(u.sum(), theta)
        return u.detach(), gradient
