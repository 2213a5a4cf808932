"""From words to the units that are recognised: characters, or phones by a pronouncing dictionary."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from .errors import SpeechError


class Units(ABC):
    """How a text is cut into units, and units are put together."""

    @abstractmethod
    def split(self, text: str, name: str) -> tuple[str, ...]:
        """The units of an utterance's words; `name` is for errors."""

    @abstractmethod
    def known(self) -> frozenset[str]:
        """Units that there are, whether or not a training transcript has them."""

    @abstractmethod
    def join(self, units: Sequence[str]) -> str:
        """Units as text."""


@final
@dataclass(frozen=True)
class Characters(Units):
    """One unit a character, in lower case; one space between words."""

    def split(self, text: str, name: str) -> tuple[str, ...]:
        return tuple(" ".join(text.lower().split()))

    def known(self) -> frozenset[str]:
        return frozenset()

    def join(self, units: Sequence[str]) -> str:
        return "".join(units)


@final
@dataclass(frozen=True)
class Written(Units):
    """The text holds the units themselves, with spaces between them."""

    def split(self, text: str, name: str) -> tuple[str, ...]:
        return tuple(text.split())

    def known(self) -> frozenset[str]:
        return frozenset()

    def join(self, units: Sequence[str]) -> str:
        return " ".join(units)


@final
@dataclass(frozen=True)
class Pronounced(Units):
    """The phones of each word, its first pronunciation in a dictionary.

    Example:
        >>> from gibbsite.apps.speech import Pronounced
        >>> Pronounced.parse("YES  Y EH S\\nNO  N OW\\nNO(2)  N AO", "dictionary").split("no yes", "first")
        ('N', 'OW', 'Y', 'EH', 'S')
    """

    words: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, text: str, name: str) -> Self:
        """A dictionary as CMU writes it: `WORD PHONE PHONE ...` a line, other pronunciations as `WORD(2)`."""
        words: dict[str, tuple[str, ...]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            parts = line.split()
            if not parts or line.startswith((";;;", "#")):
                continue
            if len(parts) < 2:
                raise SpeechError(f"{name}, line {number}: expected a word and its phones, got {line!r}")
            words.setdefault(parts[0].upper(), tuple(parts[1:]))
        if not words:
            raise SpeechError(f"{name}: expected a word and its phones a line, got no word")
        return cls(words)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The dictionary in a file."""
        try:
            return cls.parse(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SpeechError(f"{path}: cannot be read as a pronouncing dictionary ({error})") from error

    def split(self, text: str, name: str) -> tuple[str, ...]:
        words = text.upper().split()
        if missing := sorted({word for word in words if word not in self.words}):
            raise SpeechError(
                f"{name}: {', '.join(map(repr, missing[:5]))} not in the pronouncing dictionary of {len(self.words)} words; "
                "add it there"
            )
        return tuple(phone for word in words for phone in self.words[word])

    def known(self) -> frozenset[str]:
        return frozenset(phone for phones in self.words.values() for phone in phones)

    def join(self, units: Sequence[str]) -> str:
        return " ".join(units)
