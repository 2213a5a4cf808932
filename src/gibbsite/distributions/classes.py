"""Classes of words: exchange clustering by the likelihood of a bigram model of classes."""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from .._fast import classes as loops
from ..check import instance
from ..space import Tokens, whole

_TABLE = 2**20  # n log n of larger n is computed: a table would be as large as the corpus


def word_classes(
    x: Int[Tensor, "sequences length"], space: Tokens, *, classes: int, rounds: int = 20
) -> Int[Tensor, " vocabulary"]:
    """The class of each token, in [0, classes): found by exchanges that each raise `class_log_likelihood`.

    Tokens are visited by falling frequency, in as many rounds as move any, `rounds` at most; each moves to the class that is
    best for it while all others stay. At first the i-th most frequent token is in class 1 + i mod (classes - 1). Class 0 is
    that of the beginning and the end of sequences, and of eos alone. Nothing is drawn: the same x gives the same classes.
    A token that x never shows stays where it began, for no class is better for it.

    A round costs as many additions as there are pairs of a token and a class beside it, times the number of classes.

    References: Kneser and Ney (1993), Improved clustering techniques for class-based statistical language modelling; Martin,
        Liermann and Ney (1998), Algorithms for bigram and trigram word clustering.

    Example:
        >>> import torch, gibbsite as gb
        >>> x = torch.tensor([[1, 3, 0], [1, 4, 0], [2, 3, 0], [2, 4, 0]])  # 1 and 2 come before 3 and 4
        >>> gb.distributions.word_classes(x, gb.Tokens(3, 5, eos=0), classes=3).tolist()
        [0, 2, 2, 1, 1]
    """
    space = instance(space, Tokens, "space")
    classes, rounds = whole(classes, "classes", 2), whole(rounds, "rounds", 0)
    pairs = _pairs(x, space)
    total = int(pairs.count.sum())
    size = np.bincount(pairs.right, pairs.count, space.vocabulary)
    words = np.argsort(-size, kind="stable")
    words = words[words != space.eos]
    found = np.zeros(space.vocabulary, np.int64)
    found[words] = 1 + np.arange(len(words)) % (classes - 1)
    counts = _class_counts(pairs, found, classes)
    n = np.arange(min(total + 1, _TABLE), dtype=float)
    tables = (counts, counts.sum(1), counts.sum(0), n * np.log(np.maximum(n, 1)))
    rounding = (4 * classes + 4) * np.finfo(float).eps * total * math.log(total + 1)  # of so many terms, each at most that
    after, before = _sparse(pairs, space.vocabulary), _sparse(_Pairs(pairs.right, pairs.left, pairs.count), space.vocabulary)
    seen = words[size[words] > 0]
    for _ in range(rounds):
        if not loops.exchange(seen, 1, rounding, after, before, found, *tables):
            break
    return torch.from_numpy(found)


def class_log_likelihood(x: Int[Tensor, "sequences length"], space: Tokens, classes: Int[Tensor, " vocabulary"]) -> float:
    """log p(x) under the bigram model of these classes that is most likely to give x.

    With N counts in x, g(w) the class of w, g and h classes,

        p(w | v) = N(g(v), g(w)) / N(g(v), .) N(w) / N(., g(w)),
        log p(x) = sum_gh N(g, h) log N(g, h) - sum_g N(g, .) log N(g, .) - sum_h N(., h) log N(., h) + sum_w N(w) log N(w).

    Before the first token stands one of the class of eos.

    References: Brown et al. (1992), Class-based n-gram models of natural language.

    Example:
        >>> import torch, gibbsite as gb
        >>> x = torch.tensor([[1, 3, 0], [1, 4, 0], [2, 3, 0], [2, 4, 0]])
        >>> good, bad = torch.tensor([0, 1, 1, 2, 2]), torch.tensor([0, 1, 2, 1, 2])
        >>> [round(gb.distributions.class_log_likelihood(x, gb.Tokens(3, 5, eos=0), g), 2) for g in (good, bad)]
        [-5.55, -16.64]
    """
    space = instance(space, Tokens, "space")
    if not isinstance(classes, Tensor) or classes.dtype != torch.long or classes.shape != (space.vocabulary,):
        got = f"{classes.dtype} {tuple(classes.shape)}" if isinstance(classes, Tensor) else type(classes).__name__
        raise ValueError(f"classes: expected int64 of shape ({space.vocabulary},), got {got.removeprefix('torch.')}")
    if int(classes.min()) < 0:
        raise ValueError(f"classes: expected numbers of at least 0, got {int(classes.min())}")
    pairs = _pairs(x, space)
    counts = _class_counts(pairs, classes.cpu().numpy(), int(classes.max()) + 1)
    words = np.bincount(pairs.right, pairs.count)
    return float(_entropy(counts) - _entropy(counts.sum(1)) - _entropy(counts.sum(0)) + _entropy(words))


class _Pairs(NamedTuple):
    """Tokens that stand side by side, and how often; eos stands for the start of a sequence on the left."""

    left: Shaped[np.ndarray, " pairs"]
    right: Shaped[np.ndarray, " pairs"]
    count: Shaped[np.ndarray, " pairs"]


def _pairs(x: Int[Tensor, "sequences length"], space: Tokens) -> _Pairs:
    """All pairs in x, sorted."""
    x = space.check(x).reshape(-1, space.length).cpu()
    if not len(x):
        raise ValueError("x: expected sequences to count in, got none")
    right = x.numpy()
    left = np.pad(right[:, :-1], ((0, 0), (1, 0)), constant_values=space.eos)
    kept = np.arange(space.length) <= space.lengths(x).numpy()[:, None]
    keys, count = np.unique(left[kept] * space.vocabulary + right[kept], return_counts=True)
    return _Pairs(*np.divmod(keys, space.vocabulary), count)


def _class_counts(pairs: _Pairs, classes: np.ndarray, number: int) -> Shaped[np.ndarray, "classes classes"]:
    places = classes[pairs.left] * number + classes[pairs.right]
    return np.bincount(places, pairs.count, number * number).astype(np.int64).reshape(number, number)


def _sparse(pairs: _Pairs, vocabulary: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By the left token of each pair: where its pairs begin, what is right of it, how often."""
    rows = np.argsort(pairs.left, kind="stable")
    first = np.searchsorted(pairs.left[rows], np.arange(vocabulary + 1))
    return first, pairs.right[rows], pairs.count[rows]


def _entropy(counts: Float[np.ndarray, "..."]) -> float:
    """sum of n log n."""
    n = counts[counts > 0].astype(float)
    return float((n * np.log(n)).sum())
