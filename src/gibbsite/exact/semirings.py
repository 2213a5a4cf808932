"""Semirings: what sum and product mean when one algorithm runs over all structures, over the best, or over a draw.

An element's own dimensions lead and those of scores trail, so that negative dimensions mean the same in every semiring.
Scores are log-potentials; -inf forbids and its gradient is 0.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from jaxtyping import Float
from torch import Tensor

from .. import random
from ..random import Source


def log_sum_exp(x: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """log sum exp x along `dim`, with gradient 0 (not NaN) where all are -inf; twice differentiable.

    Example:
        >>> import torch
        >>> x = torch.full((2,), -torch.inf, requires_grad=True)
        >>> torch.autograd.grad(log_sum_exp(x), x)[0].tolist()
        [0.0, 0.0]
    """
    largest = finite(x.detach().amax(dim, keepdim=True))
    total = (x - largest).exp().sum(dim)
    none = total == 0
    return total.masked_fill(none, 1).log().add(largest.squeeze(dim)).masked_fill(none, -torch.inf)


def finite(x: Tensor) -> Tensor:
    """x with 0 in place of -inf: what may be subtracted."""
    return x.masked_fill(x == -torch.inf, 0)


class Semiring(ABC):
    """A sum and a product that distribute: `sum` over alternatives, `times` along a path."""

    @abstractmethod
    def lift(self, score: Tensor) -> Tensor:
        """The element of a score."""

    @abstractmethod
    def times(self, x: Tensor, y: Tensor) -> Tensor:
        """x times y, broadcast over the scores' dimensions."""

    @abstractmethod
    def scale(self, x: Tensor, score: Tensor) -> Tensor:
        """x times lift(score), computed at once."""

    @abstractmethod
    def sum(self, x: Tensor, dim: int = -1) -> Tensor:
        """The sum along one of the scores' dimensions, counted from the end."""

    @abstractmethod
    def level(self, x: Tensor) -> Tensor:
        """A score without gradient, the largest along the last dimension; scale(x, -level) stays in range."""


class _Added(Semiring):
    """Elements that are scores themselves, which add along a path."""

    def lift(self, score: Tensor) -> Tensor:
        return score

    def times(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def scale(self, x: Tensor, score: Tensor) -> Tensor:
        return x + score


@final
@dataclass(frozen=True)
class Log(_Added):
    """(logsumexp, +): the log of the sum over all paths of the product of their weights.

    Example:
        >>> import torch
        >>> round(Log().sum(Log().times(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]))).item(), 4)
        1.6931
    """

    def sum(self, x: Tensor, dim: int = -1) -> Tensor:
        return log_sum_exp(x, dim)

    def level(self, x: Tensor) -> Tensor:
        return finite(x.detach().amax(-1))


@final
@dataclass(frozen=True)
class Max(_Added):
    """(max, +): the score of the best path (Viterbi, 1967).

    Example:
        >>> import torch
        >>> Max().sum(Max().times(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]))).item()
        4.0
    """

    def sum(self, x: Tensor, dim: int = -1) -> Tensor:
        return x.max(dim).values  # its gradient picks one of equals, where that of amax is shared among them

    def level(self, x: Tensor) -> Tensor:
        return finite(x.detach().amax(-1))


@final
@dataclass(frozen=True)
class KBest(Semiring):
    """The scores of the k best paths, best first; -inf where there are fewer. Elements have shape (k, *scores).

    Example:
        >>> import torch
        >>> best = KBest(2)
        >>> best.sum(best.lift(torch.tensor([3.0, 5.0, 4.0]))).tolist()
        [5.0, 4.0]
    """

    k: int

    def lift(self, score: Tensor) -> Tensor:
        none = score.new_full((self.k - 1, *score.shape), -torch.inf)
        return torch.cat((score[None], none))

    def times(self, x: Tensor, y: Tensor) -> Tensor:
        return (x[:, None] + y).flatten(0, 1).topk(self.k, 0).values

    def scale(self, x: Tensor, score: Tensor) -> Tensor:
        return x + score

    def sum(self, x: Tensor, dim: int = -1) -> Tensor:
        return x.movedim(dim, 0).flatten(0, 1).topk(self.k, 0).values

    def level(self, x: Tensor) -> Tensor:
        return finite(x[0].detach().amax(-1))


@final
@dataclass(frozen=True)
class Expectation(_Added):
    """log-weights and the mean of an additive value: elements and scores have shape (2, *), (log-weight, value).

    (w, r) + (w', r') = (log(e^w + e^w'), (e^w r + e^w' r') / (e^w + e^w')), (w, r) (w', r') = (w + w', r + r'). The value of
    the total is E[sum of the values along a path].

    References: Eisner (2002), Parameter estimation for probabilistic finite-state transducers; Li, Eisner (2009).

    Example:
        >>> import torch
        >>> Expectation().sum(torch.tensor([[0.0, 0.0], [1.0, 3.0]]))[1].item()
        2.0
    """

    def sum(self, x: Tensor, dim: int = -1) -> Tensor:
        weight, value = x.unbind(0)
        total = log_sum_exp(weight, dim)
        share = (weight - finite(total).unsqueeze(dim)).exp()
        return torch.stack((total, (share * value.masked_fill(share == 0, 0)).sum(dim)))

    def level(self, x: Tensor) -> Tensor:
        largest = finite(x[0].detach().amax(-1))
        return torch.stack((largest, torch.zeros_like(largest)))


@final
@dataclass(frozen=True)
class Sample(_Added):
    """Sums as `Log` does, with the gradient of a draw: the total's gradient is 1 in the parts of a structure drawn by p.

    Each sum's gradient goes to one alternative, drawn by its share of the sum: backward sampling, whatever the algorithm.

    References: Rush (2020), Torch-Struct.

    Example:
        >>> import torch
        >>> x = torch.tensor([0.0, -torch.inf], requires_grad=True)
        >>> Sample(torch.Generator().manual_seed(0)).sum(x).backward()
        >>> x.grad.tolist()
        [1.0, 0.0]
    """

    source: Source

    def sum(self, x: Tensor, dim: int = -1) -> Tensor:
        return cast(Tensor, _Drawn.apply(x.movedim(dim, -1), self.source))

    def level(self, x: Tensor) -> Tensor:
        return finite(x.detach().amax(-1))


@final
class _Drawn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, source: Source) -> Tensor:
        ctx.save_for_backward(x)
        ctx.source = source
        return log_sum_exp(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        none = (x == -torch.inf).all(-1, keepdim=True)
        drawn = random.categorical(x.masked_fill(none, 0), ctx.source)
        return torch.zeros_like(x).scatter(-1, drawn[..., None], gradients[0][..., None]), None
