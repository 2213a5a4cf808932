"""Texts as rows of ids: what could not become a row is counted and said."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from ...check import instance
from ...space import Tokens, whole
from .tokeniser import Tokeniser


@final
@dataclass(frozen=True, eq=False)
class Sentences:
    """Rows `x` of a space of tokens, the place that each text had (`kept`), and what was met on the way.

    `unknown` tokens are in the rows as the unknown id; texts that were `empty` or `long` have no row.
    """

    x: Int[Tensor, "sentences length"]
    space: Tokens
    kept: tuple[int, ...]
    tokens: int
    unknown: int
    empty: int
    long: int

    def __len__(self) -> int:
        return len(self.x)

    def __str__(self) -> str:
        return (
            f"{len(self.x)} sentences of {self.tokens} tokens, {self.unknown} of them unknown; "
            f"left out: {self.empty} empty, {self.long} of more than {self.space.length} tokens"
        )


def sentences(tokeniser: Tokeniser, texts: Iterable[str], *, length: int | None = None) -> Sentences:
    """The texts that have 1 to `length` tokens (None: as many as the longest has) as rows; a warning if any has not.

    A text that fills the length has no eos, as a draw of an `Autoregressive` distribution that fills it.

    Example:
        >>> import gibbsite as gb
        >>> found = gb.text.sentences(gb.text.Characters("ab"), ["ab", "b?"], length=3)
        >>> found.x.tolist(), str(found)
        ([[2, 3, 0], [3, 1, 0]], '2 sentences of 4 tokens, 1 of them unknown; left out: 0 empty, 0 of more than 3 tokens')
    """
    instance(tokeniser, Tokeniser, "tokeniser", "; such as gb.text.Words.of(texts)")
    if isinstance(texts, str):
        raise TypeError("texts: expected several, got one str; put it into a list")
    every = [tokeniser.encode(text) for text in texts]
    most = max([1, *map(len, every)]) if length is None else whole(length, "length")
    kept = tuple(number for number, ids in enumerate(every) if 0 < len(ids) <= most)
    for number in kept:
        if tokeniser.eos in every[number]:
            raise ValueError(
                f"texts: expected none with the token that ends a text, id {tokeniser.eos}, got one at {number}"
            )
    rows = [every[number] + [tokeniser.eos] * (most - len(every[number])) for number in kept]
    found = Sentences(
        x=torch.tensor(rows, dtype=torch.long).reshape(-1, most),
        space=Tokens(most, tokeniser.vocabulary, tokeniser.eos),
        kept=kept,
        tokens=sum(len(every[number]) for number in kept),
        unknown=sum(every[number].count(tokeniser.unknown) for number in kept) if tokeniser.unknown is not None else 0,
        empty=sum(not ids for ids in every),
        long=sum(len(ids) > most for ids in every),
    )
    if found.empty or found.long:
        warnings.warn(f"texts: {found}", stacklevel=2)
    return found
