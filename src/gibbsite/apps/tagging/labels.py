"""The alphabet of labels: names to numbers and back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import final


class LabelError(ValueError):
    """A label that is not in the alphabet."""


@final
@dataclass(frozen=True)
class Labels:
    """Distinct names in a fixed order; a label's number is its place.

    Example:
        >>> labels = Labels(("DET", "NOUN"))
        >>> labels.encode(["NOUN", "DET"]), labels.decode([1, 1])
        ([1, 0], ('NOUN', 'NOUN'))
    """

    names: tuple[str, ...]

    def __post_init__(self):
        object.__setattr__(self, "names", tuple(self.names))
        if not self.names or not all(isinstance(name, str) and name for name in self.names):
            raise ValueError(f"names: expected at least one label, each a non-empty text, got {self.names!r}")
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(f"names: expected each label once, got {twice!r} again; remove it")

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, labels: Iterable[str]) -> list[int]:
        """The number of each label; one outside of the alphabet is an error that names the nearest."""
        try:
            return [self._numbers[label] for label in labels]
        except KeyError as error:
            unknown = error.args[0]
            near = get_close_matches(str(unknown), self.names, n=1, cutoff=0.4)
            hint = f"; the nearest is {near[0]!r}" if near else ""
            raise LabelError(
                f"label {unknown!r} is none of the {len(self)} labels {', '.join(self.names)}{hint}; correct it, or train "
                "with it"
            ) from None

    def decode(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The name of each number."""
        return tuple(self.names[number] for number in numbers)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}
