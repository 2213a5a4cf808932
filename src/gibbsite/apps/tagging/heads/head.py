"""What stands on an encoder: a law of the label sequences of a sentence, given the features of its places."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ....random import Source


class Losses(NamedTuple):
    """What learning minimises, a sentence each, and numbers worth writing down."""

    values: Float[Tensor, " batch"]
    metrics: Mapping[str, Float[Tensor, ""]] = {}


class Best(NamedTuple):
    """The most probable label sequences that were found, best first; a row that there is none for has log p = -inf."""

    labels: Int[Tensor, "batch n places"]
    log_p: Float[Tensor, "batch n"]


class Head(nn.Module, ABC):
    """p(y | features): features (batch, places, size), a mask of the places that have a label, labels 0 .. K - 1.

    The mask may have holes (the pieces of a word that are not its first), which no law sees: labels there are ignored where
    they are given, and 0 where they are returned.
    """

    labels: int

    @abstractmethod
    def loss(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
        *,
        source: Source | None,
    ) -> Losses:
        """-log p(y | features) or what stands in for it; what is dropped while learning is drawn from the source."""

    @abstractmethod
    def log_p(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
    ) -> Float[Tensor, " batch"]:
        """log p(y | features) of given labels, 0 of a sentence without any."""

    @abstractmethod
    def best(self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"], count: int = 1) -> Best:
        """The `count` most probable label sequences, or those of them that a search finds."""

    @abstractmethod
    def marginals(
        self, features: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> Float[Tensor, "batch places K"]:
        """p(y_t = k | features) at each place, 0 beyond the mask."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What `restored` makes such a head of, beside its sizes, as JSON values."""

    @classmethod
    @abstractmethod
    def restored(cls, settings: Mapping[str, Any], size: int, labels: int) -> Self:
        """A head with these settings, its weights as yet of no value."""


def any_source() -> torch.Generator:
    """What weights are drawn from that others take the place of."""
    return torch.Generator().manual_seed(0)
