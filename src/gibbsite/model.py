"""What a model is: an `nn.Module` with a space, whose forward is the log-potential U of p(x) = exp U(x) / Z."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from .random import Seed, Source

if TYPE_CHECKING:
    from .space import Space


class Model(nn.Module, ABC):
    """p(x) = exp U(x) / Z on a space; `model(x)` is U(x), and `-model(x)` is the energy.

    A subclass sets `self.space` and writes `forward`. On a discrete space, start it with `z = self.space.embed(x)`: then
    x may be integer states or their float view, and gradient-informed samplers work.

    Example:
        >>> import torch, gibbsite as gb
        >>> class Independent(gb.Model):
        ...     def __init__(self, field):
        ...         super().__init__()
        ...         self.space = gb.Binary(len(field))
        ...         self.field = torch.nn.Parameter(field)
        ...     def forward(self, x):
        ...         return self.space.embed(x) @ self.field
        >>> Independent(torch.tensor([0.5, -1.0]))(torch.tensor([[1, 1]])).tolist()
        [-0.5]
    """

    space: "Space"

    @abstractmethod
    def forward(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        """U(x)."""


class Distribution(Model):
    """A model whose log Z is 0 (so forward is log q) and that can be drawn from."""

    @abstractmethod
    def sample(self, n: int, *, seed: Seed) -> Shaped[Tensor, "n *event"]:
        """n independent draws."""


class ClosedForm(ABC):
    """Mixed into a discrete model that knows all its one-site changes of U without enumerating them."""

    @abstractmethod
    def site_logits(
        self, x: Int[Tensor, "batch *event"], sites: Int[Tensor, "batch m"] | None = None
    ) -> Float[Tensor, "batch m states"]:
        """U(x with site i at k) - U(x) for the given sites of each row (None: all, in row-major order)."""


class Multilinear:
    """Marks a `ClosedForm` model whose U is linear in each site's float view: the first-order changes are then exact."""


class ClosedScore(ABC):
    """Mixed into a model on real states that knows U and its gradient together without automatic differentiation."""

    @abstractmethod
    def closed_score(self, x: Float[Tensor, "..."]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "..."]]:
        """U(x) and its gradient."""


class Blocked(ABC):
    """Mixed into a model that can redraw blocks of sites exactly from their conditional law given the rest."""

    @property
    @abstractmethod
    def blocks(self) -> int:
        """How many blocks; redrawing each once touches every site."""

    @abstractmethod
    def draw_block(self, block: int, x: Int[Tensor, "batch *event"], source: Source, clamp: Tensor | None) -> Tensor:
        """x with the block's sites that are not clamped drawn anew from p(block | rest)."""


class Ferromagnet(ABC):
    """Mixed into a pairwise model that may have U = sum_(edges) b_e [x_i = x_j] + sum_i f_i(x_i) + constant with b >= 0."""

    @abstractmethod
    def bonds(self) -> tuple[Int[Tensor, "edges 2"], Float[Tensor, " edges"], Float[Tensor, "sites states"]]:
        """The edges, their b, and f; an error that names the first edge that is not ferromagnetic."""


class Factorised:
    """Marks a distribution whose sites are independent, so that it stays known when some are clamped."""


class Composite(ABC):
    """Mixed into a model that is a weighted sum of other models' log-potentials."""

    @abstractmethod
    def terms(self) -> list[tuple[float, Model]]:
        """The weights a_i and models U_i with U = sum_i a_i U_i."""


def leaves(model: Model, scale: float = 1.0) -> list[tuple[float, Model]]:
    """A sum taken apart to models that are no sums: the weights a_i and models U_i with scale U = sum_i a_i U_i."""
    if not isinstance(model, Composite):
        return [(scale, model)]
    return [leaf for weight, term in model.terms() for leaf in leaves(term, scale * weight)]


@final
class Potential(Model):
    """Any callable x -> U(x) as a model on `space`.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.Potential(lambda x: -x.square().sum(-1), gb.Real(3))
        >>> model(torch.ones(2, 3)).tolist()
        [-3.0, -3.0]
    """

    def __init__(self, function: Callable[[Tensor], Tensor], space: "Space"):
        super().__init__()
        if not callable(function):
            raise TypeError(f"function: expected a callable x -> U(x), got {type(function).__name__}")
        self.function, self.space = function, space

    def forward(self, x: Tensor) -> Tensor:
        # bits are stored in a byte; a function that multiplies them should not have to know
        return self.function(x.long() if x.dtype == torch.int8 else x)


def as_model(model: Callable[[Tensor], Tensor], space: "Space | None" = None) -> Model:
    """`model` itself if it is a Model, else the callable wrapped as one on `space`."""
    if isinstance(model, Model):
        if space is not None and space != model.space:
            raise ValueError(f"space: the model lives on {model.space}, got space={space}")
        return model
    if space is None:
        raise TypeError(
            f"model: expected a gibbsite.Model, got {type(model).__name__}; a plain callable needs space=, for example "
            "space=gb.Binary(100)"
        )
    return Potential(model, space)


def check_model(model: object) -> Model:
    """The model itself, or an error that says how to make one of a callable."""
    if not isinstance(model, Model):
        raise TypeError(
            f"model: expected a gibbsite.Model, got {type(model).__name__}; wrap a callable as gb.Potential(function, space)"
        )
    return model


def dtype_of(model: nn.Module) -> torch.dtype:
    """The floating type that the model computes in: that of its first parameter or buffer, else torch's default."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype
    return torch.get_default_dtype()


def device_of(model: nn.Module) -> torch.device:
    """The device of the model's first parameter or buffer, else the CPU."""
    return next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))


class NotFinite(ValueError):
    """A U(x) that is not finite where it must be."""


class Count:
    """States at which U, and its gradient, were evaluated; U of some sites only counts as their share."""

    def __init__(self):
        self.evaluations, self.gradients = 0.0, 0.0


_counts: ContextVar[tuple[Count, ...]] = ContextVar("counts", default=())


@contextmanager
def counting() -> Iterator[Count]:
    """Counts what `evaluate`, `score` and `site_logits` evaluate inside."""
    count = Count()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


def potential(model: Model, x: Tensor) -> Tensor:
    """model(x), if it is a tensor."""
    u = model(x)
    if not isinstance(u, Tensor):
        raise TypeError(f"U(x): expected a tensor, one float a state, got {type(u).__name__}")
    return u


def tell(evaluations: float, gradients: float = 0) -> None:
    """Adds to the open counts."""
    for count in _counts.get():
        count.evaluations += evaluations
        count.gradients += gradients


def check_potential(u: Tensor, x: Tensor, batch: torch.Size, *, start: bool = True) -> Tensor:
    """u, if it has the batch's shape and is finite; at a proposed state (`start=False`) -inf, probability 0, passes too."""
    if not u.is_floating_point():
        raise TypeError(f"U(x): expected floats, got {u.dtype}; convert what the model returns, for example by .float()")
    if u.shape != batch:
        raise ValueError(f"U(x): expected one number a state, shape {tuple(batch)}, got shape {tuple(u.shape)}")
    if not u.numel() or bool((u.detach().abs() if start else u.detach()).amax() < torch.inf):  # false for NaN too
        return u
    bad = ~u.isfinite() if start else u.isnan() | (u == torch.inf)
    if bad.any():
        index = tuple(int(i) for i in bad.nonzero()[0])
        state = x[index].flatten()
        shown = ", ".join(f"{v:g}" for v in state[:8].tolist()) + (", ..." if len(state) > 8 else "")
        raise NotFinite(
            f"U(x): expected finite values, got {u[index].item()} at state {list(index)} of {tuple(batch)}: x = [{shown}]; "
            f"{int(bad.sum())} of {bad.numel()} states are affected. Check the model's weights and the range of x."
        )
    return u


def evaluate(model: Model, x: Tensor, *, start: bool = False, graph: bool = False) -> Float[Tensor, "*batch"]:
    """U(x), checked, without a graph unless asked; `start=True` checks x against the space too and wants U finite."""
    if start:
        x = check_model(model).space.check(x)
    with torch.set_grad_enabled(graph):
        u = potential(model, x)
    tell(u.numel())
    return check_potential(u, x, x.shape[: x.ndim - len(model.space.shape)], start=start)
