"""Words and characters as numbers; what was not seen in training has a number too."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

PAD, UNKNOWN, BEGIN, END = range(4)  # of characters; of words PAD and UNKNOWN
LONGEST = 32  # characters of a word that are read: its first half of them and its last


@final
@dataclass(frozen=True)
class Vocabulary:
    """Lower-cased words, numbered from 2 in their order, and characters as they are, numbered from 4.

    Example:
        >>> vocabulary = Vocabulary.of([("The", "dog"), ("the",)])
        >>> vocabulary.words, vocabulary.characters, vocabulary.word("THE"), vocabulary.word("cat")
        (('the', 'dog'), 'Tdeghot', 2, 1)
    """

    words: tuple[str, ...]
    characters: str

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], more: Iterable[str] = ()) -> "Vocabulary":
        """All words of the sentences, the most frequent first, then those of `more` (of vectors that are given)."""
        counts = Counter(word for sentence in sentences for word in sentence)
        lower = Counter[str]()
        for word, count in counts.items():
            lower[word.lower()] += count
        words = dict.fromkeys([word for word, _ in lower.most_common()] + [word.lower() for word in more])
        return cls(tuple(words), "".join(sorted({character for word in counts for character in word})))

    def word(self, word: str) -> int:
        """The number of a word, UNKNOWN if it has none."""
        return self._words.get(word.lower(), UNKNOWN)

    def spelling(self, word: str) -> list[int]:
        """The numbers of a word's characters, between BEGIN and END."""
        if len(word) > LONGEST:
            word = word[: LONGEST // 2] + word[-LONGEST // 2 :]
        return [BEGIN, *(self._characters.get(character, UNKNOWN) for character in word), END]

    def read(self, sentences: Sequence[Sequence[str]], least: int = 1) -> dict[str, Tensor]:
        """A batch: `words`, `forms` (B, T) and `mask`, with `spellings` (forms, C >= least) of the distinct forms."""
        longest = max(1, *map(len, sentences))
        forms = {word: number for number, word in enumerate(dict.fromkeys(w for s in sentences for w in s) or {"": 0})}
        spellings = [self.spelling(form) for form in forms]
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        return {
            "words": _padded([[self.word(word) for word in sentence] for sentence in sentences], longest),
            "forms": _padded([[forms[word] for word in sentence] for sentence in sentences], longest),
            "mask": torch.arange(longest) < lengths[:, None],
            "spellings": _padded(spellings, max(least, *map(len, spellings), 1)),
        }

    @cached_property
    def _words(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, UNKNOWN + 1)}

    @cached_property
    def _characters(self) -> dict[str, int]:
        return {character: number for number, character in enumerate(self.characters, END + 1)}


def _padded(rows: Sequence[Sequence[int]], width: int) -> Int[Tensor, "rows width"]:
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], dtype=torch.long).view(len(rows), width)
