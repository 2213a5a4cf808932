"""What reads the words, as configurations, of which flags are made."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...random import Source
from .encoder import Encoder
from .hugging_face import HuggingFace
from .word_encoder import WordEncoder


class Reading(ABC):
    """What reads the words, as a configuration."""

    @abstractmethod
    def make(self, sentences: Sequence[Sequence[str]], source: Source) -> Encoder:
        """An encoder for sentences like these."""


@final
@dataclass(frozen=True)
class Words(Reading):
    """Word vectors, a convolution over characters, LSTMs in both directions."""

    word_size: int = 100
    """Components of a word's vector."""
    filters: int = 50
    """Filters of each width over characters."""
    hidden: int = 200
    """Units of each direction."""
    layers: int = 1
    """Layers of LSTMs."""
    dropout: float = 0.33
    """How much is dropped of what each layer is given."""
    word_dropout: float = 0.25
    """How readily rare words are read as unknown."""
    vectors: Path | None = None
    """A text file of word vectors to begin with; `word_size` is then theirs."""

    def make(self, sentences: Sequence[Sequence[str]], source: Source) -> Encoder:
        return WordEncoder.of(sentences, **vars(self), source=source)


@final
@dataclass(frozen=True)
class Pretrained(Reading):
    """A network of Hugging Face and its tokenizer."""

    name: str
    """The folder that they are in, or their name on the hub."""
    dropout: float = 0.1
    """How much is dropped of what it says."""

    def make(self, sentences: Sequence[Sequence[str]], source: Source) -> Encoder:
        return HuggingFace.load(self.name, dropout=self.dropout)
