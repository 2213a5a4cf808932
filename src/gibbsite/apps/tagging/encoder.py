"""What reads sentences: from words to features of places, of which some have a label."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

from jaxtyping import Float
from torch import Tensor, nn

from ...random import Source

Batch = Mapping[str, Tensor]


class Encoder(nn.Module, ABC):
    """x -> h: a vector of `size` numbers at each place of each sentence, which a head makes a law of labels of."""

    size: int

    @abstractmethod
    def read(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """A batch on the CPU, with `mask` (batch, places) among its tensors: True once for each word, in their order."""

    @abstractmethod
    def forward(self, batch: Batch, *, source: Source | None = None) -> Float[Tensor, "batch places size"]:
        """Features of each place; with a source, as while learning: with words and components dropped."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What `restored` makes such an encoder of, as JSON values."""

    @classmethod
    @abstractmethod
    def restored(cls, settings: Mapping[str, Any]) -> Self:
        """An encoder with these settings, its weights as yet of no value."""
