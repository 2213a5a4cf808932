"""Spans in labels: BIO, IOB1 and BIOES are read by one rule, and written as BIO or BIOES."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

_SPAN_LABEL = re.compile(r"O|[BIESLU]-.+", re.DOTALL)
_STARTS, _ENDS = "BSU", "ESLU"
SCHEMES = ("bio", "bioes")


class Span(NamedTuple):
    """Words start, ..., end - 1 are one thing of a kind."""

    kind: str
    start: int
    end: int


def are_spans(labels: Iterable[str]) -> bool:
    """Whether all are O or a position and a kind (B-PER), and not all are O."""
    distinct = set(labels)
    return distinct != {"O"} and bool(distinct) and all(_SPAN_LABEL.fullmatch(label) for label in distinct)


def spans(labels: Sequence[str]) -> tuple[Span, ...]:
    """The spans in a sentence's labels.

    One starts at B, S or U, and wherever the kind changes or nothing is open; one ends at E, L, S or U, and before O, a
    start or another kind. BIO, IOB1, BIOES and BILOU labels all keep their meaning by this rule, and what no scheme
    allows (I-PER after O) still has one (the rule of the CoNLL-2000 scorer).

    Example:
        >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
        (Span(kind='PER', start=0, end=2), Span(kind='LOC', start=3, end=4))
    """
    found, kind, start = [], None, 0
    for place, label in enumerate([*labels, "O"]):
        position, _, new = label.partition("-")
        if kind is not None and (label == "O" or position in _STARTS or new != kind):
            found.append(Span(kind, start, place))
            kind = None
        if label == "O":
            continue
        if kind is None:
            kind, start = new, place
        if position in _ENDS:
            found.append(Span(kind, start, place + 1))
            kind = None
    return tuple(found)


def written(found: Iterable[Span], length: int, scheme: str = "bio") -> tuple[str, ...]:
    """The labels of a sentence of `length` words with these spans, which must not overlap, in BIO or BIOES."""
    labels = ["O"] * length
    inside = _WRITERS[scheme]
    for span in found:
        if not 0 <= span.start < span.end <= length:
            raise ValueError(f"{span}: expected 0 <= start < end <= {length}, the sentence's length")
        if set(labels[span.start : span.end]) != {"O"}:
            raise ValueError(f"{span}: expected spans that do not overlap")
        labels[span.start : span.end] = inside(span)
    return tuple(labels)


def _bio(span: Span) -> list[str]:
    return [f"B-{span.kind}", *[f"I-{span.kind}"] * (span.end - span.start - 1)]


def _bioes(span: Span) -> list[str]:
    if span.end - span.start == 1:
        return [f"S-{span.kind}"]
    return [f"B-{span.kind}", *[f"I-{span.kind}"] * (span.end - span.start - 2), f"E-{span.kind}"]


_WRITERS: dict[str, Callable[[Span], list[str]]] = {"bio": _bio, "bioes": _bioes}
