"""How two sequences differ: the fewest substitutions, deletions and insertions, and where they are."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Edits(NamedTuple):
    """What turns a reference into a hypothesis."""

    substitutions: int
    deletions: int
    insertions: int
    length: int

    @property
    def errors(self) -> int:
        """All three kinds together."""
        return self.substitutions + self.deletions + self.insertions


Pair = tuple[Hashable | None, Hashable | None]


def edits(reference: Sequence[Hashable], hypothesis: Sequence[Hashable]) -> Edits:
    """The fewest edits between two sequences (Levenshtein, 1966).

    Example:
        >>> from gibbsite.apps.speech.edits import edits
        >>> edits("sitting", "kitten").errors
        3
    """
    pairs = aligned(reference, hypothesis)
    deletions, insertions = (sum(pair[side] is None for pair in pairs) for side in (1, 0))
    changed = sum(a != b for a, b in pairs) - deletions - insertions
    return Edits(changed, deletions, insertions, len(reference))


def aligned(reference: Sequence[Hashable], hypothesis: Sequence[Hashable]) -> list[Pair]:
    """Units beside each other with the fewest edits; None stands where one has no unit."""
    rows = [list(range(len(hypothesis) + 1))]
    for i, a in enumerate(reference, 1):
        above, row = rows[-1], [i]
        for j, b in enumerate(hypothesis, 1):
            row.append(min(above[j - 1] + (a != b), above[j] + 1, row[j - 1] + 1))
        rows.append(row)
    i, j, pairs = len(reference), len(hypothesis), list[Pair]()
    while i or j:
        if i and j and rows[i][j] == rows[i - 1][j - 1] + (reference[i - 1] != hypothesis[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((reference[i], hypothesis[j]))
        elif i and rows[i][j] == rows[i - 1][j] + 1:
            i -= 1
            pairs.append((reference[i], None))
        else:
            j -= 1
            pairs.append((None, hypothesis[j]))
    return pairs[::-1]
