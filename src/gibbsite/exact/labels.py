"""Grammars of label sequences, from the labels' names: which label may follow which, begin a sequence, end it."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor


class Grammar(NamedTuple):
    """Log-potentials of 0, allowed, and -inf, forbidden: added to a chain's own they leave the label sequences allowed.

    Example:
        >>> import torch, gibbsite as gb
        >>> names = ["O", "B-PER", "I-PER"]
        >>> grammar = gb.exact.Grammar.bio(names)
        >>> node = torch.tensor([[0.0, 0.0, 9.0], [0.0, 0.0, 9.0]])
        >>> chain = gb.exact.LinearChain(node, torch.zeros(3, 3) + grammar.edge, start=grammar.start, end=grammar.end)
        >>> [names[k] for k in chain.mode()]
        ['B-PER', 'I-PER']
    """

    start: Float[Tensor, " K"]
    edge: Float[Tensor, "K K"]
    end: Float[Tensor, " K"]

    @classmethod
    def where(cls, labels: Iterable[str], follows: Callable[[str, str], bool], *, border: str = "O") -> Self:
        """`follows(a, b)` says whether b may stand behind a; sequences begin behind and end before the label `border`.

        Example:
            >>> Grammar.where(["a", "b"], lambda left, right: left != right, border="b").edge.tolist()
            [[-inf, 0.0], [0.0, -inf]]
        """
        names = _names(labels)
        pairs = ([border], names), (names, names), (names, [border])
        start, edge, end = (
            torch.tensor([[0.0 if follows(a, b) else -torch.inf for b in right] for a in left]) for left, right in pairs
        )
        return cls(start[0], edge, end[:, 0])

    @classmethod
    def bio(cls, labels: Iterable[str]) -> Self:
        """BIO (IOB2): each span begins with B, and I continues one of its kind."""
        return cls.where(_positions(labels, "BI"), _bio)

    @classmethod
    def iob1(cls, labels: Iterable[str]) -> Self:
        """IOB1: a span is of I, and begins with B only right behind another of its kind."""
        return cls.where(_positions(labels, "BI"), _iob1)

    @classmethod
    def bioes(cls, labels: Iterable[str]) -> Self:
        """BIOES, and BILOU, where L is E and U is S: a span is one S, or begins with B and ends with E."""
        return cls.where(_positions(labels, "BIESLU"), _bioes)

    def to(self, like: Tensor) -> Self:
        """The same on the device and of the type of a tensor, a chain's potentials."""
        return self._make(x.to(like) for x in self)


def _bio(left: str, right: str) -> bool:
    return right[0] != "I" or left[1:] == right[1:]


def _iob1(left: str, right: str) -> bool:
    return right[0] != "B" or left[1:] == right[1:]


def _bioes(left: str, right: str) -> bool:
    runs_on = right[0] in "IEL"
    return runs_on == (left[0] in "BI") and (not runs_on or left[1:] == right[1:])


def _names(labels: Iterable[str]) -> Sequence[str]:
    names = [labels] if isinstance(labels, str) else list(labels)
    if len(names) < 2 or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels: expected at least two names, all distinct, got {names!r}"[:300])
    return names


def _positions(labels: Iterable[str], letters: str) -> Sequence[str]:
    names = _names(labels)
    for name in names:
        if name != "O" and not (len(name) > 2 and name[0] in letters and name[1] == "-"):
            raise ValueError(
                f"labels: expected O, or one of {', '.join(letters)}, '-' and a kind, such as B-PER; got {name!r}"
            )
    return names
