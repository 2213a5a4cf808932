"""Word classes: the likelihood by the formula written out, exchanges that take the best and never lower it, planted ones."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

import gibbsite as gb
from gibbsite._fast import classes as loops
from gibbsite.distributions import classes as module

from .test_kneser_ney import sentences, sequences

D = gb.distributions
SPACE = gb.Tokens(8, 30, 0)


@pytest.fixture(scope="module")
def x():
    return sequences(120, space=SPACE)


def direct(x, classes, space=SPACE):
    """log p(x), one token at a time, from counts in dictionaries."""
    rows = [[space.eos, *row[1:]] for row in sentences(x, space)]
    pairs = [(v, w) for row in rows for v, w in itertools.pairwise(row)]
    g = classes.tolist()
    together = Counter((g[v], g[w]) for v, w in pairs)
    left, right, words = Counter(g[v] for v, _ in pairs), Counter(g[w] for _, w in pairs), Counter(w for _, w in pairs)
    steps = (together[g[v], g[w]] / left[g[v]] * words[w] / right[g[w]] for v, w in pairs)
    return math.fsum(math.log(p) for p in steps)


def test_the_likelihood_is_that_of_the_equations(x):
    """The mutant puts two tokens of other classes into one."""
    classes = torch.arange(30) % 4
    assert D.class_log_likelihood(x, SPACE, classes) == pytest.approx(direct(x, classes), rel=1e-12)
    assert D.class_log_likelihood(x, SPACE, classes) != pytest.approx(direct(x, classes.clamp(max=2)), rel=1e-4)


def test_each_exchange_goes_where_the_likelihood_is_largest(x):
    """Every single move of two rounds, all classes tried by the equations; 1e-9 is rounding of log p, a few thousand.

    The counts that are kept along are those of the classes, and a mutant that moves at random loses.
    """
    groups = 6
    pairs = module._pairs(x, SPACE)
    classes = np.array([0, *(1 + np.arange(29) % (groups - 1))])
    counts = module._class_counts(pairs, classes, groups)
    after = module._sparse(pairs, 30)
    before = module._sparse(module._Pairs(pairs.right, pairs.left, pairs.count), 30)
    tables = (counts, counts.sum(1), counts.sum(0), np.zeros(1))  # of n log n: all but the first are computed
    at = direct(x, torch.from_numpy(classes))
    start, moves = at, 0
    for word in [*range(1, 30)] * 2:
        trials = []
        for group in range(1, groups):
            trial = torch.from_numpy(classes.copy())
            trial[word] = group
            trials.append(direct(x, trial))
        moves += loops.exchange(np.array([word]), 1, 1e-9, after, before, classes, *tables)
        now = direct(x, torch.from_numpy(classes))
        assert now >= at - 1e-9 and now == pytest.approx(max(trials), abs=1e-8)
        at = now
        kept = module._class_counts(pairs, classes, groups)
        assert (counts == kept).all() and (tables[1] == kept.sum(1)).all() and (tables[2] == kept.sum(0)).all()
    assert moves > 10 and at > start + 50
    shuffled = torch.from_numpy(np.array([0, *classes[1:][::-1]]))
    assert direct(x, shuffled) < at - 1


def test_the_table_of_logarithms_may_end(x, monkeypatch):
    whole = D.word_classes(x, SPACE, classes=6)
    monkeypatch.setattr(module, "_TABLE", 10)
    assert torch.equal(D.word_classes(x, SPACE, classes=6), whole)


def test_nothing_is_drawn_and_rounds_raise_the_likelihood(x):
    """The order of the sequences does not matter; likelihoods rise from round to round until nothing moves."""
    every = [D.word_classes(x, SPACE, classes=6, rounds=rounds) for rounds in (0, 1, 2, 40, 41)]
    likelihoods = [D.class_log_likelihood(x, SPACE, classes) for classes in every]
    assert likelihoods == sorted(likelihoods) and likelihoods[1] > likelihoods[0] + 50
    assert torch.equal(every[3], every[4]) and torch.equal(D.word_classes(x.flip(0), SPACE, classes=6, rounds=40), every[3])
    assert all(int(classes[0]) == 0 and (classes[1:] > 0).all() and int(classes.max()) == 5 for classes in every)


def test_planted_classes_are_found():
    """Tokens 1 to 20 by turns of two kinds; the exchange separates them, and cannot where the kinds are alike."""
    source = torch.Generator().manual_seed(0)
    odd, even = (torch.randint(1 + 10 * kind, 11 + 10 * kind, (400, 4), generator=source) for kind in range(2))
    space = gb.Tokens(8, 21, 0)
    classes = D.word_classes(torch.stack((odd, even), -1).flatten(1), space, classes=3)
    assert len(set(classes[1:11].tolist())) == len(set(classes[11:].tolist())) == 1 and classes[1] != classes[11]
    mixed = D.word_classes(torch.randint(1, 21, (400, 8), generator=source), space, classes=3)
    assert len(set(mixed[1:11].tolist())) == 2


def test_words_that_never_occur_stay():
    x = torch.tensor([[1, 2, 0], [2, 1, 0]])
    space = gb.Tokens(3, 6, 0)
    began, found = (D.word_classes(x, space, classes=4, rounds=rounds) for rounds in (0, 5))
    assert torch.equal(began[3:], found[3:]) and began.tolist() == [0, 1, 2, 3, 1, 2]
