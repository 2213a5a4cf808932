"""The few random draws the package makes, each from a generator that the caller owns.

Kernels make every discrete decision through this file. That is what lets `gibbsite.exact.transition_matrix` put a
`Script` in the generator's place, take both sides of every decision, and read the exact transition matrix off the very
code that samples.
"""

import hashlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class Script(ABC):
    """Stands in for a generator: its discrete draws are decided elsewhere, chain by chain."""

    @abstractmethod
    def categorical(self, logits: Float[Tensor, "*batch states"]) -> Int[Tensor, "*batch"]:
        """The scripted outcome of a draw with these logits; the leading dimension is the chains."""

    @abstractmethod
    def choose(self, weights: Sequence[float]) -> int:
        """The scripted outcome of one draw that all chains share."""


Source = torch.Generator | Script
Seed = int | torch.Generator | Script


def generator(seed: Seed, device: torch.device | str = "cpu") -> Source:
    """The generator that `seed` names: itself if it is one already, else a new one on `device` started at that integer."""
    if isinstance(seed, Script | torch.Generator):
        return seed
    try:
        number = None if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"seed: expected an int or a torch.Generator, got {type(seed).__name__}")
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"seed: expected an int from -2^63 to 2^64 - 1, got {number}")
    return torch.Generator(device=device).manual_seed(number)


def _of(source: Source) -> torch.Generator:
    if isinstance(source, Script):
        raise TypeError("a continuous draw cannot be enumerated: transition matrices are for discrete kernels")
    return source


def uniform(shape: Sequence[int], source: Source, dtype: torch.dtype = torch.float64) -> Float[Tensor, "..."]:
    """Independent draws from [0, 1)."""
    g = _of(source)
    return torch.rand(tuple(shape), generator=g, dtype=dtype, device=g.device)


def normal(shape: Sequence[int], source: Source, dtype: torch.dtype | None = None) -> Float[Tensor, "..."]:
    """Independent standard normal draws."""
    g = _of(source)
    return torch.randn(tuple(shape), generator=g, dtype=dtype, device=g.device)


def categorical(logits: Float[Tensor, "*batch states"], source: Source) -> Int[Tensor, "*batch"]:
    """k with probability softmax(logits)_k, by inversion in double precision; a state at -inf is never drawn."""
    if isinstance(source, Script):
        return source.categorical(logits)
    cdf = logits.double().softmax(-1).cumsum(-1)
    total = cdf[..., -1:]
    u = torch.minimum(uniform(total.shape, source) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cdf, u, right=True)[..., 0]


def bernoulli(logits: Float[Tensor, "*batch"], source: Source) -> Bool[Tensor, "*batch"]:
    """True with probability sigmoid(logits)."""
    if isinstance(source, Script):
        return source.categorical(torch.stack((torch.zeros_like(logits), logits), -1)).bool()
    fine = torch.promote_types(logits.dtype, torch.float32)  # half types would round the probability to their few digits
    return uniform(logits.shape, source, fine) < logits.to(fine).sigmoid()


def accept(log_probability: Float[Tensor, "*batch"], source: Source) -> Bool[Tensor, "*batch"]:
    """True with probability exp(log_probability), which must not exceed 1."""
    if isinstance(source, Script):
        p = log_probability.exp()
        return source.categorical(torch.stack((1 - p, p), -1).log()).bool()
    return uniform(log_probability.shape, source).log() < log_probability


def permutation(count: int, source: Source) -> Int[Tensor, " count"]:
    """0, ..., count - 1 in a uniformly random order."""
    g = _of(source)
    return torch.randperm(count, generator=g, device=g.device)


def substream(seed: int, number: int) -> int:
    """A seed for stream `number` of those that one seed stands for."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest(), "little")


def integers(high: int, shape: Sequence[int], source: Source) -> Int[Tensor, "..."]:
    """Independent uniform draws from 0, ..., high - 1."""
    if isinstance(source, Script):
        return source.categorical(torch.zeros(*shape, high))
    return torch.randint(high, tuple(shape), generator=source, device=source.device)


def choose(weights: Sequence[float], source: Source) -> int:
    """One index with probability proportional to its weight, shared by all chains.

    A choice made independently of the states keeps every chain's law; chains that share it stay uncorrelated at
    stationarity, because each of the kernels chosen from keeps the mean of any statistic.
    """
    if isinstance(source, Script):
        return source.choose(weights)
    return int(categorical(torch.tensor(weights, device=source.device).log(), source))
