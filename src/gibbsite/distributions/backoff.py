"""Backoff automata: n-gram models as states (the contexts) and arcs (the n-grams), from any list of n-grams.

The n-grams of all orders are one flat table, sorted by (order, context, token): row 0 is the empty one, rows 1 to V the
tokens, row V + 1 the start of a sequence. `context` is the row of an n-gram without its last token, `suffix` that of its
longest proper suffix in the table.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


class Grams(NamedTuple):
    """n-grams with their log p(last token | the others) and the log weight of backing off from them as a context."""

    context: Shaped[np.ndarray, " rows"]
    token: Shaped[np.ndarray, " rows"]
    suffix: Shaped[np.ndarray, " rows"]
    order: Shaped[np.ndarray, " rows"]
    log_p: Shaped[np.ndarray, " rows"]
    log_backoff: Shaped[np.ndarray, " rows"]


class Backoff(NamedTuple):
    """State s reads token w by its arc (s, w), and where it has none goes to `fallback[s]`, for `log_backoff[s]`.

    Arcs are sorted by their key s V + w. State 0 is the empty context and has an arc for every token. A state is what
    follows `label` after state `parent`; -1 at state 0.
    """

    key: Int[Tensor, " arcs"]
    log_p: Float[Tensor, " arcs"]
    target: Int[Tensor, " arcs"]
    log_backoff: Float[Tensor, " states"]
    fallback: Int[Tensor, " states"]
    parent: Int[Tensor, " states"]
    label: Int[Tensor, " states"]
    start: Int[Tensor, ""]


def automaton(grams: Grams, vocabulary: int) -> Backoff:
    """The automaton of a table of n-grams.

    Its states are the rows that can matter to what follows: contexts of a longer row, and rows whose log backoff is not 0.
    A row that is none is, as a context, its longest suffix that is one: so no probability changes, and an arc leads to
    the longest context that the model knows.
    """
    rows, start = len(grams.token), vocabulary + 1
    is_state = grams.log_backoff != 0
    is_state[grams.context[1:]] = True
    is_state[0] = True
    number = np.cumsum(is_state) - 1
    resolved = np.zeros(rows, np.int64)
    for order in range(1, int(grams.order.max()) + 1):
        of_order = slice(*np.searchsorted(grams.order, (order, order + 1)))
        shorter = resolved[grams.suffix[of_order]]
        resolved[of_order] = np.where(is_state[of_order], number[of_order], shorter)
    states = np.flatnonzero(is_state)
    arcs = np.delete(np.arange(1, rows), start - 1)  # the start is never predicted
    fallback, parent, label = resolved[grams.suffix[states]], number[grams.context[states]], grams.token[states].copy()
    parent[0] = label[0] = -1
    return Backoff(
        key=torch.from_numpy(number[grams.context[arcs]] * vocabulary + grams.token[arcs]),
        log_p=torch.from_numpy(grams.log_p[arcs]),
        target=torch.from_numpy(resolved[arcs].astype(np.int32)),
        log_backoff=torch.from_numpy(grams.log_backoff[states]),
        fallback=torch.from_numpy(fallback.astype(np.int32)),
        parent=torch.from_numpy(parent.astype(np.int32)),
        label=torch.from_numpy(label.astype(np.int32)),
        start=torch.tensor(resolved[start]),
    )
