"""Models made from models: `Tilt`, `Product`, `Tempered`, `Pullback`, and the `Geometric` path between two of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import cast, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .check import function, instance, number
from .model import Composite, Distribution, Model, as_model
from .space import Real, Space

Function = Callable[[Tensor], Tensor]


def _on_one_space(models: Sequence[Function]) -> list[Model]:
    """The models, the plain callables among them on the space of the first that has one."""
    space = next((model.space for model in models if isinstance(model, Model)), None)
    if space is None:
        raise TypeError(
            "models: expected at least one gibbsite.Model, to know the space; wrap one: gb.Potential(function, space)"
        )
    experts = [model if isinstance(model, Model) else as_model(model, space) for model in models]
    for model in experts:
        if model.space != space:
            raise ValueError(f"models: expected one space, got {space} and {model.space}")
    return experts


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

    def __init__(self, base: Distribution, potential: Function):
        super().__init__()
        instance(base, Distribution, "base", hint="; its log Z must be 0")
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

    def __init__(self, *models: Function, weights: Sequence[float] | None = None):
        super().__init__()
        experts = _on_one_space(models)
        self.models, self.space = nn.ModuleList(experts), experts[0].space
        given = [1.0] * len(models) if weights is None else weights
        self.weights = [number(a, f"weights[{place}]") for place, a in enumerate(given)]
        if len(self.weights) != len(models) or not any(self.weights):
            raise ValueError(f"weights: expected {len(models)}, one a model and not all 0, got {self.weights}")

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
    """U(x) = beta V(x): a model at inverse temperature beta; a bare callable needs its `space`."""

    def __init__(self, model: Function, beta: float, *, space: Space | None = None):
        super().__init__()
        self.model, self.beta = as_model(model, space), number(beta, "beta")
        self.space = self.model.space

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        return self.beta * self.model(x)

    def terms(self) -> list[tuple[float, Model]]:
        return [(self.beta, self.model)]


class Path(ABC):
    """A family of models from beta = 0 to beta = 1, on one space.

    `start` is a model of the same law as `at(0)`, its log Z left open; estimators of log Z draw from it.
    """

    start: Model

    @abstractmethod
    def at(self, beta: float) -> Model:
        """The model at beta."""


@final
class Geometric(Path):
    """U_beta = (1 - beta) U_start + beta U_end, 0 <= beta <= 1; a bare callable takes the space of the other model.

    References: Neal (2001), Annealed importance sampling.
    """

    def __init__(self, start: Function, end: Function):
        self.start, self.end = _on_one_space([start, end])

    def at(self, beta: float) -> Product:
        beta = number(beta, "beta", least=0, most=1)
        return Product(self.start, self.end, weights=[1 - beta, beta])


@final
class Pullback(Model):
    """U(e) = log N(e) + V(T(e)): the model of the noise behind x = T(e), whose push-forward is q(x) exp V(x), q = T # N.

    Sampling e with any kernel for real states and mapping it through T (`model.push(e)`) samples x.
    VAEBM has its decoder as T.

    References: Xiao et al. (2021), VAEBM; Nijkamp et al. (2022), MCMC should mix.
    """

    def __init__(self, noise: Distribution, transform: Callable[[Tensor], Tensor], potential: Function):
        super().__init__()
        if not isinstance(instance(noise, Distribution, "noise").space, Real):
            raise TypeError(f"noise: expected a distribution on Real, got one on {noise.space}")
        function(transform, "transform", "lambda e: decoder(e)")
        function(potential, "potential", "lambda x: -x.abs().sum(-1)")
        self.noise, self.transform, self.potential, self.space = noise, transform, potential, noise.space

    def push(self, e: Tensor) -> Tensor:
        """x = T(e)."""
        return self.transform(e)

    def forward(self, e: Tensor) -> Float[Tensor, "*batch"]:
        return self.noise(e) + self.potential(self.transform(e))
