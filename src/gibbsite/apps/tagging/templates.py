"""Which features a word has: templates of looks of words near it, and the features they make as hashes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import final

import numpy as np

from ..._fast import word_features as loops
from .corpus import Sentence

_PART = re.compile(r"(\w+)\[([+-]?\d+)\]")
_FARTHEST = 1000
USUAL = (
    *("word[0]", "lower[0]", "shape[0]", "pattern[0]"),
    *(f"{affix}{length}[0]" for affix in ("prefix", "suffix") for length in (1, 2, 3, 4)),
    *("lower[-2]", "lower[-1]", "lower[1]", "lower[2]", "lower[-1] lower[0]", "lower[0] lower[1]", "lower[-1] lower[1]"),
    *("shape[-1]", "shape[1]", "shape[-1] shape[0]", "shape[0] shape[1]", "shape[0] lower[-1]"),
    *("suffix2[-1]", "suffix2[1]", "suffix3[-1]", "suffix3[1]", "suffix3[-1] suffix3[0]", "suffix3[0] suffix3[1]"),
)


@final
@dataclass(frozen=True)
class Templates:
    """Each text is one template, its parts LOOK[DISTANCE] joined by spaces: "lower[-1] lower[0]" is a pair of words.

    Looks: word, lower (in lower case), prefix1 ... prefix4, suffix1 ... suffix4 (in lower case), pattern (capital letters as
    X, others as x, digits as d) and shape (a pattern without repetitions).

    Example:
        >>> hashes, ends = Templates(("word[0]", "lower[-1]")).hashes([Sentence(("The", "the"))])
        >>> hashes.shape, ends, bool(hashes[0, 0] == hashes[1, 0])
        ((2, 2), array([2]), False)
    """

    texts: tuple[str, ...] = USUAL
    _ends: np.ndarray = field(init=False, repr=False, compare=False)
    _look: np.ndarray = field(init=False, repr=False, compare=False)
    _distance: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        parts = [_parsed(text) for text in self.texts]
        if not parts:
            raise ValueError("templates: expected at least one, such as lower[0]")
        flat = [part for template in parts for part in template]
        object.__setattr__(self, "_ends", np.cumsum([len(template) for template in parts]))
        object.__setattr__(self, "_look", np.array([look for look, _ in flat]))
        object.__setattr__(self, "_distance", np.array([distance for _, distance in flat]))

    def hashes(self, sentences: Sequence[Sentence]) -> tuple[np.ndarray, np.ndarray]:
        """(words, templates) uint64 of all words one after the other, and before which word each sentence ends."""
        words = [word for sentence in sentences for word in sentence.words]
        codes = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
        distinct, place = np.unique(codes, return_inverse=True)
        characters = [chr(code) for code in distinct]
        lower = np.array([ord(c.lower()[0]) for c in characters], np.uint32)[place]
        kinds = np.array([_kind(c) for c in characters], np.int64)[place]
        table = loops.looks(codes, lower, kinds, np.cumsum([len(word) for word in words], dtype=np.int64))
        ends = np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64)
        return loops.features(table, ends, self._ends, self._look, self._distance), ends


def _parsed(text: str) -> list[tuple[int, int]]:
    parts = text.split()
    if not parts:
        raise ValueError(f"templates: expected parts such as lower[-1], got {text!r}")
    return [_part(part, text) for part in parts]


def _part(part: str, text: str) -> tuple[int, int]:
    found = _PART.fullmatch(part)
    if found is None or abs(int(found[2])) > _FARTHEST:
        raise ValueError(f"templates: expected LOOK[DISTANCE], such as lower[-1], got {part!r} in {text!r}")
    look = found[1]
    if look not in loops.LOOKS:
        near = get_close_matches(look, loops.LOOKS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"templates: there is no look {look!r} of words; {hint}(looks: {', '.join(loops.LOOKS)})")
    return loops.LOOKS.index(look), int(found[2])


def _kind(character: str) -> int:
    if character.isupper():
        return ord("X")
    if character.isalpha():
        return ord("x")
    return ord("d") if character.isdigit() else ord(character)
