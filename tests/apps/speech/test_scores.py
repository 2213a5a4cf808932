"""Error rates: their bootstrap against the binomial law that it draws from, differences in pairs, counts of jiwer."""

import sys

import pytest
from scipy.stats import binom

from gibbsite.apps.speech import SpeechError
from gibbsite.apps.speech.edits import Edits
from gibbsite.apps.speech.scores import counted, difference, error_rate

DRAWS = 10_000


def one(error):
    """An utterance of one unit, with or without an error."""
    return Edits(int(error), 0, 0, 1)


def within(rates, count, chance):
    """Whether the ends of an interval are those of the binomial law, up to the noise of `DRAWS` draws: 1e-6 each."""
    slack = 4.9 * (0.025 * 0.975 / DRAWS) ** 0.5
    return all(
        binom.ppf(level - slack, count, chance) <= count * end <= binom.ppf(level + slack, count, chance)
        for level, end in zip((0.025, 0.975), rates)
    )


def test_the_interval_is_that_of_the_law_that_is_drawn_from():
    for wrong in (40, 200):
        rate = error_rate([one(number < wrong) for number in range(400)], seed=0, draws=DRAWS)
        assert rate.value == wrong / 400 and within(rate[1:], 400, wrong / 400)
        narrow = (rate.value + 0.7 * (end - rate.value) for end in rate[1:])
        assert not within(tuple(narrow), 400, wrong / 400)  # the mutant: an interval of 83 % for one of 95 %


def test_a_rate_is_of_units_not_of_utterances():
    rate = error_rate([Edits(3, 0, 0, 3), Edits(0, 0, 0, 9)], seed=0)
    assert rate == (0.25, 0.0, 1.0)
    assert error_rate([Edits(1, 1, 2, 2)], seed=0) == (2.0, 2.0, 2.0)


def test_differences_are_of_the_same_utterances():
    first = [one(number % 2) for number in range(100)]
    assert difference(first, first, seed=0) == (0, 0, 0)
    better = [one(number % 4 == 1) for number in range(100)]
    gain = difference(first, better, seed=0, draws=DRAWS)
    assert gain.value == 0.25 and within(gain[1:], 100, 0.25)
    apart = [end - start for start, end in zip(error_rate(better, seed=1)[1:], error_rate(first, seed=2)[1:])]
    assert not within(apart, 100, 0.25)  # the mutant: intervals of two rates, one less the other


def test_counts_are_those_of_jiwer():
    assert counted(["a b c", "d"], ["a x", "d e"]) == [Edits(1, 1, 0, 3), Edits(0, 0, 1, 1)]


def test_mistakes_are_named(monkeypatch):
    for call, words in (
        (lambda: error_rate([], seed=0), "expected at least 1 utterance"),
        (lambda: error_rate([Edits(0, 0, 1, 0)], seed=0), "with at least 1 unit"),
        (lambda: difference([one(0)], [], seed=0), "expected edits of the same 1 utterances, got 0"),
        (lambda: counted(["a"], []), "expected one a reference, at least 1, got 0 for 1"),
    ):
        with pytest.raises(SpeechError, match=words):
            call()
    monkeypatch.setitem(sys.modules, "jiwer", None)
    with pytest.raises(SpeechError, match=r"pip install 'gibbsite\[speech\]'"):
        counted(["a"], ["a"])
