"""The labels that a recogniser writes: symbols numbered from 1, for 0 is the blank."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, final

import torch
from jaxtyping import Int
from torch import Tensor

from .errors import SpeechError

BLANK = 0


@final
@dataclass(frozen=True)
class Alphabet:
    """Symbols with the labels 1, 2, ...; `classes` counts the blank too.

    Example:
        >>> from gibbsite.apps.speech import Alphabet
        >>> alphabet = Alphabet.of([["K", "AE", "T"]])
        >>> alphabet.symbols, alphabet.encode(["K", "AE", "T"]).tolist()
        (('AE', 'K', 'T'), [2, 1, 3])
    """

    symbols: tuple[str, ...]

    def __post_init__(self):
        if not self.symbols or len(set(self.symbols)) != len(self.symbols):
            raise SpeechError(f"symbols: expected at least 1, all different, got {self.symbols}")

    @classmethod
    def of(cls, transcripts: Iterable[Sequence[str]]) -> Self:
        """All units of some transcripts, in alphabetical order."""
        return cls(tuple(sorted({unit for units in transcripts for unit in units})))

    @property
    def classes(self) -> int:
        """The labels and the blank."""
        return len(self.symbols) + 1

    def encode(self, units: Sequence[str], name: str = "transcript") -> Int[Tensor, " labels"]:
        """The labels of a transcript's units."""
        if not len(units):
            raise SpeechError(f"{name}: expected a transcript with at least 1 unit, got none; leave the utterance out")
        known = {symbol: label for label, symbol in enumerate(self.symbols, 1)}
        if foreign := sorted(set(units) - set(known)):
            raise SpeechError(
                f"{name}: {', '.join(map(repr, foreign[:5]))} not in the alphabet of {len(known)} symbols "
                f"({' '.join(self.symbols)}), which is that of the training transcripts; mend or leave out the utterance"
            )
        return torch.tensor([known[unit] for unit in units])

    def decode(self, labels: Iterable[int]) -> tuple[str, ...]:
        """The symbols of labels."""
        return tuple(self.symbols[label - 1] for label in labels)
