"""n-gram models estimated from sequences: interpolated Kneser-Ney smoothing with modified discounts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Shaped
from torch import Tensor

from ..check import instance, number
from ..space import Tokens, whole
from .backoff import Grams, automaton
from .ngram import NGram

SMALL = (0.5, 1.0, 1.5)
"""Discounts of an order whose counts of counts give none: those that KenLM falls back to."""


def kneser_ney(
    x: Int[Tensor, "sequences length"],
    space: Tokens,
    *,
    order: int = 3,
    discounts: Sequence[float] | None = None,
) -> NGram:
    """The n-gram model of sequences x: modified Kneser-Ney, all orders interpolated.

    With h the n - 1 tokens before w, h' those without the oldest, and a(h w) a count of order n,

        p(w | h) = (a(h w) - D_n(a(h w))) / sum_v a(h v) + b(h) p(w | h'),
        b(h) = sum_v D_n(a(h v)) / sum_v a(h v),

    and p(w | nothing) is interpolated with 1 / vocabulary: a token that x never shows has that share, the model's unknown
    word. a counts occurrences at the highest order and where h w begins a sequence, and elsewhere the different tokens
    that come before h w. D_n(1), D_n(2) and D_n(3 or more) are

        D_n(k) = k - (k + 1) t_(k+1) t_1 / ((t_1 + 2 t_2) t_k),    t_k how many n-grams have a = k,

    or `SMALL`, all three, in orders where a t_k, k = 1 to 4, is 0 or one of these is not in (0, k]: those of small corpora.
    `discounts` gives all three for every order; three equal ones are Kneser-Ney with absolute discounting.

    References: Kneser and Ney (1995), Improved backing-off for m-gram language modeling; Chen and Goodman (1999), An
        empirical study of smoothing techniques for language modeling; Heafield et al. (2013), Scalable modified
        Kneser-Ney language model estimation.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Tokens(length=4, vocabulary=3, eos=0)
        >>> x = torch.tensor([[1, 2, 1, 0], [1, 2, 2, 0], [1, 0, 0, 0]])
        >>> model = gb.distributions.kneser_ney(x, space, order=2)
        >>> round(gb.exact.log_z(model).abs().item(), 5)
        0.0
        >>> model.conditionals(torch.tensor([[1]])).exp().round(decimals=3).tolist()
        [[0.417, 0.167, 0.417]]
    """
    space, order = instance(space, Tokens, "space"), whole(order, "order")
    x = space.check(x).reshape(-1, space.length)
    if not len(x):
        raise ValueError("x: expected sequences to count in, got none")
    levels = _levels(*_stream(x.cpu().numpy(), space), space.vocabulary + 1, order)
    given = None if discounts is None else _given(discounts)
    rows = _interpolated(levels, space.vocabulary, given)
    return NGram(automaton(rows, space.vocabulary), space)


class _Level(NamedTuple):
    """All n-grams of one order: rows of the order below, their last token, and how often; whether a sequence begins so."""

    context: Shaped[np.ndarray, " rows"]
    token: Shaped[np.ndarray, " rows"]
    suffix: Shaped[np.ndarray, " rows"]
    count: Shaped[np.ndarray, " rows"]
    initial: Shaped[np.ndarray, " rows"]


def _stream(x: np.ndarray, space: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """All sequences in a row, each a start (id `vocabulary`), its tokens and its eos if it has one; each token's place."""
    ended = np.cumsum(x == space.eos, 1)
    kept = np.pad(ended - (x == space.eos) == 0, ((0, 0), (1, 0)), constant_values=True)
    tokens = np.pad(x, ((0, 0), (1, 0)), constant_values=space.vocabulary)
    return tokens[kept], np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)[kept]


def _levels(tokens: np.ndarray, place: np.ndarray, symbols: int, order: int) -> list[_Level]:
    """The n-grams of orders 1 to `order`, sorted by context and token; the order below a unigram has one row.

    The row of the n-gram that ends at i is found from that of the one that ends at i - 1, an order below, and the token.
    """
    every = np.arange(symbols)
    zero, counted = np.zeros(symbols, np.int64), np.bincount(tokens, minlength=symbols)
    levels = [_Level(zero, every, zero, counted, every == symbols - 1)]
    ends = tokens  # the row, of the last order, of the n-gram that ends at each position
    for n in range(2, order + 1):
        at = np.flatnonzero(place >= n - 1)
        keys = ends[at - 1] * symbols + tokens[at]
        found, first, inverse, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        context, token = np.divmod(found, symbols)
        levels.append(_Level(context, token, ends[at[first]], count, place[at[first]] == n - 1))
        ends = np.zeros_like(ends)
        ends[at] = inverse
    return levels


def _interpolated(levels: list[_Level], vocabulary: int, given: np.ndarray | None) -> Grams:
    """The table of all orders with the probabilities of `kneser_ney`."""
    below, weights, rows, offset, width = np.array([1 / vocabulary]), [], [], 0, 1
    for n, level in enumerate(levels, 1):
        adjusted = _adjusted(level, levels[n] if n < len(levels) else None)
        if n == 1:
            adjusted[vocabulary] = 0  # the start is never predicted
        size = _discounts(adjusted) if given is None else given
        taken = np.concatenate(([0.0], size))[np.minimum(adjusted, 3)]
        totals = np.maximum(np.bincount(level.context, adjusted, width), 1)
        weight = np.bincount(level.context, taken, width) / totals
        below = (adjusted - taken) / totals[level.context] + weight[level.context] * below[level.suffix]
        weights.append(weight)
        rows.append((level.context + offset, level.token, level.suffix + offset, np.full(len(below), n), below))
        offset, width = offset + width, len(below)
    weights.append(np.zeros(width))
    first = (np.zeros(1, np.int64), np.array([-1]), np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1))
    context, token, suffix, order, p = (np.concatenate(column) for column in zip(first, *rows))
    backoff = np.concatenate(weights)
    backoff[0] = 0  # what is left of the unigrams' mass is in their probabilities
    log_backoff = np.log(backoff, where=backoff > 0, out=np.zeros_like(backoff))
    return Grams(context, token, suffix, order, np.log(p), log_backoff)


def _adjusted(level: _Level, above: _Level | None) -> np.ndarray:
    """a of one order: how many tokens come before, except at the highest and where a sequence begins."""
    if above is None:
        return level.count.copy()
    return np.where(level.initial, level.count, np.bincount(above.suffix, minlength=len(level.count)))


def _discounts(adjusted: np.ndarray) -> np.ndarray:
    """D(1), D(2), D(3 or more) from counts of counts, or `SMALL`."""
    t = np.bincount(np.minimum(adjusted, 5), minlength=6)[1:5].astype(float)
    if not t.all():
        return np.array(SMALL)
    k = np.arange(1, 4)
    found = k - (k + 1) * t[1:] * t[0] / ((t[0] + 2 * t[1]) * t[:3])
    return found if ((found > 0) & (found <= k)).all() else np.array(SMALL)


def _given(discounts: Sequence[float]) -> np.ndarray:
    values = list(discounts)
    if len(values) != 3:
        raise ValueError(f"discounts: expected three, of counts 1, 2 and 3 or more, got {len(values)}")
    return np.array([number(value, f"discounts[{i}]", above=0, most=i + 1) for i, value in enumerate(values)])
