"""What makes numbers of text and text of numbers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence


class Tokeniser(ABC):
    """Text as ids in [0, vocabulary), of which `eos` stands for the end and no text holds it.

    `unknown` is the id of what has none of its own, None where every text has ids that give it back.
    """

    vocabulary: int
    eos: int
    unknown: int | None

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text, without start and end."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids among which there is no end."""
