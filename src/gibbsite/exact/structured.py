"""What all structures share: from one function, the total of a structure's scores in any semiring, come its answers.

`total(semiring, *scores)` sums over all structures the product of the scores of their parts, a row of the batch: log Z in
`Log`. Its gradient with respect to a score is the probability of that part; in `Max` the parts of the best structure, in
`KBest` of the n-th best, in `Sample` of a draw. Nothing else is derived by hand.

References: Eisner (2016), Inside-outside and forward-backward algorithms are just backprop; Rush (2020), Torch-Struct.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .. import random
from ..random import Seed, Source
from ..space import whole
from .semirings import KBest, Log, Sample, Semiring

Total = Callable[..., Tensor]  # (semiring, *scores) -> (*element, B)


class NBest(NamedTuple):
    """The k most probable states, best first; where there are fewer than k, log_prob is -inf and the labels mean nothing."""

    labels: Int[Tensor, "k ..."]
    log_prob: Float[Tensor, "k *batch"]


class Structured(ABC):
    """Mixed into a distribution over structures: what follows from its total in any semiring.

    A state is decided by the parts of the first score that it has.
    """

    batch_shape: torch.Size
    lengths: Int[Tensor, "..."]

    @abstractmethod
    def _scores(self) -> tuple[Tensor, ...]:
        """The scores, (B, ...) each: one batch dimension, at least float32, checked."""

    @abstractmethod
    def _total(self, semiring: Semiring, *scores: Tensor) -> Tensor:
        """The sum over all structures, (*element, rows); there may be n B rows, the batch n times."""

    @abstractmethod
    def _states(self, parts: Float[Tensor, "n B ..."]) -> Int[Tensor, "n B ..."]:
        """The states with these parts, given as 0 or 1 for each entry of the first score."""

    @abstractmethod
    def score(self, x: Tensor) -> Float[Tensor, "*n batch"]:
        """U(x), the sum of the scores of the parts of x; -inf where x is no structure."""

    def log_partition(self) -> Float[Tensor, "*batch"]:
        """log Z of each row; an error where every structure is forbidden."""
        return checked(self._total(Log(), *self._scores())).view(self.batch_shape)

    def forward(self, x: Tensor) -> Float[Tensor, "*n batch"]:
        """log p(x)."""
        return self.score(x) - self.log_partition()

    def marginals(self) -> Float[Tensor, "..."]:
        """The probability of each part, in the shape of its scores: the gradient of log Z. Differentiable."""
        return self._batched(marginals(self._total, self._scores())[0])

    def mode(self) -> Int[Tensor, "..."]:
        """The most probable state."""
        return self.n_best(1).labels[0]

    def n_best(self, k: int) -> NBest:
        """The k most probable states, best first."""
        log_z, (score, parts) = self.log_partition().detach(), best(self._total, self._scores(), whole(k, "k"))
        return NBest(self._batched(self._states(parts), 1), score.view(len(score), *self.batch_shape) - log_z)

    def sample(self, n: int, *, seed: Seed) -> Int[Tensor, "n ..."]:
        """n independent draws."""
        self.log_partition()
        scores = self._scores()
        parts = draw(self._total, scores, whole(n, "n", 0), random.generator(seed, scores[0].device))
        return self._batched(self._states(parts), 1)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """-E[log p(x)] of each row, in nats."""
        return self.cross_entropy(self)

    def cross_entropy(self, other: Self) -> Float[Tensor, "*batch"]:
        """-E_p[log q(x)], p this law and q the other, a row; inf where q forbids what p may draw."""
        p = self._scores()
        if type(other) is not type(self) or [x.shape for x in p] != [x.shape for x in other._scores()]:
            raise ValueError(f"other: expected a {type(self).__name__} with scores of shape {tuple(p[0].shape)}, as here")
        each = (mean(part, value) for part, value in zip(marginals(self._total, p, len(p)), other._scores(), strict=True))
        return other.log_partition() - torch.stack(list(each)).sum(0).view(self.batch_shape)

    def kl(self, other: Self) -> Float[Tensor, "*batch"]:
        """KL(p || q) = E_p[log p(x) - log q(x)] of each row, p this law and q the other."""
        return self.cross_entropy(other) - self.entropy()

    def _lengths(self, rows: int) -> Int[Tensor, " rows"]:
        """The lengths of n B rows, the batch n times."""
        return self.lengths.reshape(-1).repeat(rows // max(self.lengths.numel(), 1))

    def _batched(self, x: Tensor, rows: int = 0) -> Tensor:
        """x with the batch's own dimensions in place of dimension `rows`."""
        return x.reshape(*x.shape[:rows], *self.batch_shape, *x.shape[rows + 1 :])


def checked(log_z: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """log Z, if it is finite in every row."""
    if bool((log_z.detach().abs() < torch.inf).all()):
        return log_z
    row = int((~log_z.isfinite()).nonzero()[0])
    raise ValueError(
        f"log_partition: expected a structure with a finite potential in every row, got log Z = {log_z[row].item()} in row "
        f"{row} of {len(log_z)}: -inf means that each one meets a potential of -inf (allow one), NaN that one of them is NaN"
    )


def marginals(total: Total, scores: tuple[Tensor, ...], of: int = 1) -> tuple[Tensor, ...]:
    """The probabilities of parts: d log Z / d score, for the first `of` scores; with a graph where one can be wanted."""
    graph = torch.is_grad_enabled() and any(x.requires_grad for x in scores)
    return _gradients(lambda *s: checked(total(Log(), *s)), scores, of, graph)


def best(total: Total, scores: tuple[Tensor, ...], k: int) -> tuple[Float[Tensor, "k B"], Tensor]:
    """The k highest totals, -inf where there are fewer, and the parts (k, B, ...) of the first score in each, 0 or 1."""
    value = total(KBest(k), *(x.detach() for x in scores))
    parts = [_gradients(lambda *s, n=n: total(KBest(k), *s)[n], scores, 1, False)[0] for n in range(k)]
    return value, torch.stack(parts)


def draw(total: Total, scores: tuple[Tensor, ...], n: int, source: Source) -> Tensor:
    """n independent structures a row: the parts (n, B, ...) of the first score in each, 0 or 1."""
    rows = tuple(x.detach().expand(n, *x.shape).flatten(0, 1) for x in scores)
    parts = _gradients(lambda *s: total(Sample(source), *s), rows, 1, False)[0]
    return parts.reshape(n, *scores[0].shape)


def mean(p: Tensor, value: Tensor) -> Float[Tensor, " B"]:
    """sum p value, a row, where 0 times -inf is 0."""
    return (p * value.expand_as(p).masked_fill(p == 0, 0)).flatten(1).sum(1)


def _gradients(value: Total, scores: tuple[Tensor, ...], of: int, graph: bool) -> tuple[Tensor, ...]:
    with torch.inference_mode(False), torch.enable_grad():
        scores = tuple(x.clone() if x.is_inference() else x for x in scores)
        scores = tuple(x if graph else x.detach() for x in scores)
        wanted = tuple(x if x.requires_grad else x.detach().requires_grad_() for x in scores[:of])
        total = value(*wanted, *scores[of:]).sum()
        return torch.autograd.grad(total, wanted, create_graph=graph, materialize_grads=True)


def hold(module: nn.Module, **values: Tensor | None) -> None:
    """Each value as the module's parameter if it is one, else as its buffer: both follow `.to`, and keep their graph."""
    for name, value in values.items():
        if isinstance(value, nn.Parameter):
            module.register_parameter(name, value)
        else:
            module.register_buffer(name, value)


def log_potentials(x: object, name: str) -> Tensor:
    """x as a tensor, if it holds floats."""
    x = torch.as_tensor(x)
    if not x.is_floating_point():
        raise TypeError(f"{name}: expected floats, log-potentials, got {x.dtype}")
    return x


def check_below_inf(x: Tensor, name: str) -> None:
    """An error if a log-potential is NaN or +inf; -inf forbids."""
    if x.numel() and not bool(x.detach().amax() < torch.inf):
        bad = (~(x < torch.inf)).nonzero()[0].tolist()
        raise ValueError(f"{name}: expected finite numbers or -inf, which forbids, got {x[tuple(bad)].item()} at {bad}")


def wide(*values: Tensor | None) -> torch.dtype:
    """The type to compute in, at least float32: sums of half types would be rounded to their few digits."""
    dtype = torch.float32
    for x in values:
        dtype = dtype if x is None else torch.promote_types(dtype, x.dtype)
    return dtype


def check_rows(x: object, shape: tuple[int, ...]) -> Tensor:
    """x as a tensor of integers, if its shape ends with `shape`."""
    x = torch.as_tensor(x)
    if x.is_floating_point() or x.shape[-len(shape) :] != shape:
        raise ValueError(f"x: expected integers of shape (*, {', '.join(map(str, shape))}), got {x.dtype} {tuple(x.shape)}")
    return x


def check_lengths(lengths: Tensor | None, batch: torch.Size, T: int, device: torch.device) -> Int[Tensor, "*batch"]:
    """How many positions each row has, if these are integers from 0 to T; None: T."""
    if lengths is None:
        return torch.full(batch, T, device=device)
    lengths = torch.as_tensor(lengths)
    if lengths.is_floating_point() or lengths.shape != batch or bool(((lengths < 0) | (lengths > T)).any()):
        got = f"{lengths.dtype} {tuple(lengths.shape)}" + (f" up to {lengths.max().item()}" if lengths.numel() else "")
        raise ValueError(f"lengths: expected integers from 0 to {T} of shape {tuple(batch)}, got {got}")
    return lengths.long()


def fold(x: Tensor, batch: torch.Size, event: int) -> Tensor:
    """(*n, *batch, *event) as (n, B, *event), `event` of them; sizes are said, so that there may be no rows at all."""
    lead = x.shape[: x.ndim - event - len(batch)]
    return x.reshape(lead.numel(), batch.numel(), *x.shape[x.ndim - event :])


def spreads(x: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether x broadcasts to `shape`."""
    return x.ndim <= len(shape) and all(a in (1, b) for a, b in zip(reversed(x.shape), reversed(shape)))
