"""What a report says, before it is HTML: sections of text, tables and pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.figure import Figure

MINUS, MISSING = "\u2212", "\u2013"


@final
@dataclass(frozen=True)
class Text:
    """One paragraph."""

    text: str


@final
@dataclass(frozen=True)
class Table:
    """Rows of cells that are already words; `caption` says what they are."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str


@final
@dataclass(frozen=True)
class Picture:
    """A figure with its caption; `alt` is what a reader who cannot see it needs."""

    figure: Figure
    caption: str
    alt: str


Block = Text | Table | Picture


@final
@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: Sequence[Block]


@final
@dataclass(frozen=True)
class Page:
    """A whole report; `lead` says in a sentence or two what was found."""

    title: str
    lead: str
    sections: Sequence[Section]


def number(value: float | None, error: float | None = None) -> str:
    """A number for a table; with an error, as many digits as the error's first two deserve.

    Example:
        >>> number(0.123456, 0.00078), number(1234.5)
        ('0.12346 ± 0.00078', '1234.5')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if error is None or not math.isfinite(error) or error <= 0:
        return f"{value:.5g}".replace("-", MINUS)
    digits = min(8, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", MINUS)
