"""Models made from models: `Tilt`, `Product`, `Tempered`, `Pullback`, and the `Geometric` path between two of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import cast, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .model import Composite, Distribution, Model, as_model, check_model
from .space import Real


def _same_space(models: Sequence[Model]) -> None:
    for model in models:
        if check_model(model).space != models[0].space:
            raise ValueError(f"models: expected one space, got {models[0].space} and {model.space}")


@final
class Tilt(Model, Composite):
    """U(x) = log q(x) + V(x): a distribution tilted by a potential (residual models, importance sampling).

    Example:
        >>> import torch, gibbsite as gb
        >>> base = gb.distributions.Bernoulli(torch.zeros(3))
        >>> tilt = gb.Tilt(base, lambda x: x.float().sum(-1))
        >>> round(gb.exact.log_z(tilt).item(), 4) == round(3 * torch.tensor((1 + 2.718281828) / 2).log().item(), 4)
        True
    """

    def __init__(self, base: Distribution, potential: Callable[[Tensor], Tensor]):
        super().__init__()
        if not isinstance(base, Distribution):
            raise TypeError(f"base: expected a gibbsite.Distribution (log Z = 0), got {type(base).__name__}")
        self.base, self.potential, self.space = base, as_model(potential, base.space), base.space

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        return self.base(x) + self.potential(x)

    def terms(self) -> list[tuple[float, Model]]:
        return [(1.0, self.base), (1.0, self.potential)]


@final
class Product(Model, Composite):
    """U(x) = sum_i a_i U_i(x): a product of experts; a bare callable takes the space of the first model.

    References: Hinton (2002), Training products of experts by minimizing contrastive divergence.
    """

    def __init__(self, *models: Callable[[Tensor], Tensor], weights: Sequence[float] | None = None):
        super().__init__()
        spaces = [m.space for m in models if isinstance(m, Model)]
        if not spaces:
            raise TypeError("models: expected at least one gibbsite.Model, to know the space")
        experts = [m if isinstance(m, Model) else as_model(m, spaces[0]) for m in models]
        _same_space(experts)
        self.models = nn.ModuleList(experts)
        self.weights = [1.0] * len(models) if weights is None else [float(a) for a in weights]
        if len(self.weights) != len(models) or not any(self.weights):
            raise ValueError(f"weights: expected {len(models)}, one a model and not all 0, got {self.weights}")
        self.space = spaces[0]

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        # a weight of 0 drops its model, so that an end of a path is that end even where the other end is -inf
        u = torch.zeros((), device=x.device)
        for weight, model in self.terms():
            u = u + weight * model(x)
        return u

    def terms(self) -> list[tuple[float, Model]]:
        return [(a, cast(Model, m)) for a, m in zip(self.weights, self.models, strict=True) if a != 0]


@final
class Tempered(Model, Composite):
    """U(x) = beta V(x): a model at inverse temperature beta."""

    def __init__(self, model: Model, beta: float):
        super().__init__()
        self.model, self.beta, self.space = check_model(model), float(beta), model.space

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        return self.beta * self.model(x)

    def terms(self) -> list[tuple[float, Model]]:
        return [(self.beta, self.model)]


class Path(ABC):
    """A family of models from beta = 0 to beta = 1, on one space."""

    @abstractmethod
    def at(self, beta: float) -> Model:
        """The model at beta."""


@final
class Geometric(Path):
    """U_beta = (1 - beta) U_start + beta U_end, between any two models of one space.

    References: Neal (2001), Annealed importance sampling.
    """

    def __init__(self, start: Model, end: Model):
        _same_space([start, end])
        self.start, self.end = start, end

    def at(self, beta: float) -> Product:
        return Product(self.start, self.end, weights=[1 - beta, beta])


@final
class Pullback(Model):
    """U(e) = log N(e) + V(T(e)): the model of the noise behind x = T(e), whose push-forward is q(x) exp V(x), q = T # N.

    Sampling e with any kernel for real states and mapping it through T (`model.push(e)`) samples x.
    VAEBM has its decoder as T.

    References: Xiao et al. (2021), VAEBM; Nijkamp et al. (2022), MCMC should mix.
    """

    def __init__(self, noise: Distribution, transform: Callable[[Tensor], Tensor], potential: Callable[[Tensor], Tensor]):
        super().__init__()
        if not isinstance(check_model(noise).space, Real):
            raise TypeError(f"noise: expected a distribution on Real, got one on {noise.space}")
        self.noise, self.transform, self.potential, self.space = noise, transform, potential, noise.space

    def push(self, e: Tensor) -> Tensor:
        """x = T(e)."""
        return self.transform(e)

    def forward(self, e: Tensor) -> Float[Tensor, "*batch"]:
        return self.noise(e) + self.potential(self.transform(e))
