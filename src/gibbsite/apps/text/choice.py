"""One candidate of many kept, row by row, while they come in blocks: drawn by weight, or the best."""

import math
from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ... import random
from ...random import Source


class Choice(ABC):
    """What is kept of the candidates so far: `x`, one a row, and the effective size (sum w)^2 / sum w^2 of w = exp V."""

    def __init__(self) -> None:
        self.x = torch.empty(0)
        self.total = self.squares = self.highest = torch.empty(0)  # (rows,) log sum w, log sum w^2, max V

    @abstractmethod
    def pick(self, v: Float[Tensor, "rows block"], source: Source) -> Int[Tensor, " rows"]:
        """The candidate of a block that stands for it."""

    @abstractmethod
    def takes(self, v: Float[Tensor, "rows block"], source: Source) -> Bool[Tensor, " rows"]:
        """Whether the block's candidate takes the place of the one kept from the blocks before."""

    def add(self, x: Int[Tensor, "rows block *event"], v: Float[Tensor, "rows block"], source: Source) -> None:
        """A block of candidates with their V, of which some may be -inf: those are never kept."""
        v = v.double()
        row = torch.arange(len(v), device=v.device)
        picked = x[row, self.pick(v.masked_fill((v == -math.inf).all(1, keepdim=True), 0.0), source).to(v.device)]
        total, squares, highest = v.logsumexp(1), (2 * v).logsumexp(1), v.amax(1)
        if not len(self.x):
            self.x, self.total, self.squares, self.highest = picked, total, squares, highest
            return
        taken = self.takes(v, source).to(v.device)
        self.x = torch.where(taken.view(-1, *[1] * (picked.ndim - 1)), picked, self.x)
        self.total, self.squares = torch.logaddexp(self.total, total), torch.logaddexp(self.squares, squares)
        self.highest = torch.maximum(self.highest, highest)

    @property
    def ess(self) -> Float[Tensor, " rows"]:
        """The effective number of candidates, 0 where none was possible."""
        return (2 * self.total - self.squares).exp().nan_to_num(0.0)


@final
class Resampled(Choice):
    """Each candidate with probability exp V / sum exp V: a block takes the place of those before by its share of the sum.

    References: Chao (1982), A general purpose unequal probability sampling plan.
    """

    def pick(self, v: Float[Tensor, "rows block"], source: Source) -> Int[Tensor, " rows"]:
        return random.categorical(v, source)

    def takes(self, v: Float[Tensor, "rows block"], source: Source) -> Bool[Tensor, " rows"]:
        odds = (v.logsumexp(1) - self.total).nan_to_num(-1e3).clamp(-1e3, 1e3)  # sigmoid(-1e3) is 0, and of 1e3 it is 1
        return random.bernoulli(odds, source)


@final
class Best(Choice):
    """The candidate of the highest V, the first of several."""

    def pick(self, v: Float[Tensor, "rows block"], source: Source) -> Int[Tensor, " rows"]:
        return v.argmax(1)

    def takes(self, v: Float[Tensor, "rows block"], source: Source) -> Bool[Tensor, " rows"]:
        return v.amax(1) > self.highest
