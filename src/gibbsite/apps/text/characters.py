"""Characters as tokens."""

from collections.abc import Iterable, Sequence
from typing import final

from .tokeniser import Tokeniser

_END, _UNKNOWN = 0, 1
_SHOWN = "\N{REPLACEMENT CHARACTER}"


@final
class Characters(Tokeniser):
    """Characters: 0 is the end, 1 is every character that has no number of its own.

    Example:
        >>> import gibbsite as gb
        >>> tokeniser = gb.text.Characters.of(["abba"])
        >>> tokeniser.encode("baz"), tokeniser.decode([2, 3])
        ([3, 2, 1], 'ab')
    """

    def __init__(self, characters: str):
        self.characters = characters
        self._numbers = {character: number for number, character in enumerate(characters, 2)}
        if len(self._numbers) != len(characters):
            raise ValueError(f"characters: expected each once, got {characters!r}")
        self.vocabulary, self.eos, self.unknown = 2 + len(characters), _END, _UNKNOWN

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Characters":
        """All characters of the texts, in the order of Unicode."""
        return cls("".join(sorted({character for text in texts for character in text})))

    def encode(self, text: str) -> list[int]:
        return [self._numbers.get(character, _UNKNOWN) for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(_SHOWN if number <= _UNKNOWN else self.characters[number - 2] for number in ids)
