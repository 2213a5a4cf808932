"""Words, parted at white space, as tokens."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

from ...space import whole
from .tokeniser import Tokeniser

END, UNKNOWN = "</s>", "<unk>"
_END, _UNKNOWN = 0, 1


@final
class Words(Tokeniser):
    """Words parted at white space: 0 is the end, 1 is every word that has no number of its own.

    Example:
        >>> import gibbsite as gb
        >>> tokeniser = gb.text.Words.of(["in the beginning", "the word"])
        >>> tokeniser.encode("the beginning was"), tokeniser.decode([2, 4])
        ([2, 4, 1], 'the beginning')
    """

    def __init__(self, words: Sequence[str]):
        self.words = (END, UNKNOWN, *words)
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) != len(self.words) or any(word.split() != [word] for word in words):
            wrong = next(w for k, w in enumerate(self.words) if self._numbers[w] != k or w.split() != [w])
            raise ValueError(
                f"words: expected different words without white space, other than {END} and {UNKNOWN}, got {wrong!r}"
            )
        self.vocabulary, self.eos, self.unknown = len(self.words), _END, _UNKNOWN
        del self._numbers[END]  # a text that has that word has no end there

    @classmethod
    def of(cls, texts: Iterable[str], *, least: int = 1, most: int | None = None) -> "Words":
        """The words that the texts have at least `least` times, the most frequent first, at most `most` of them."""
        counts = Counter(word for text in texts for word in text.split())
        kept = [
            word for word, count in counts.most_common() if count >= whole(least, "least") and word not in (END, UNKNOWN)
        ]
        return cls(kept if most is None else kept[: whole(most, "most")])

    def encode(self, text: str) -> list[int]:
        return [self._numbers.get(word, _UNKNOWN) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.words[number] for number in ids)
