"""Scores against counts by hand, and F1 of spans by seqeval against spans read here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsite.apps.tagging import accuracy, confusion, span_score, spans

GOLD = [("B-PER", "I-PER", "O"), ("B-LOC", "O", "O"), ()]
FOUND = [("B-PER", "I-PER", "O"), ("B-PER", "O", "B-LOC"), ()]


def test_by_hand():
    assert accuracy(GOLD, FOUND) == 4 / 6
    assert confusion(GOLD, FOUND)["O", "B-LOC"] == 1
    assert span_score(GOLD, FOUND) == (1 / 3, 1 / 2, pytest.approx(0.4))


label = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])
sentence = st.lists(st.tuples(label, label), min_size=1, max_size=6)


def f1(gold, found, spans=spans):
    there = {(i, *s) for i, labels in enumerate(gold) for s in spans(labels)}
    here = {(i, *s) for i, labels in enumerate(found) for s in spans(labels)}
    return 2 * len(there & here) / (len(there) + len(here)) if there or here else 0.0


@given(st.lists(sentence, min_size=1, max_size=4))
def test_seqeval_counts_the_spans_that_are_read_here(sentences):
    gold, found = ([tuple(pair[side] for pair in s) for s in sentences] for side in (0, 1))
    assert span_score(gold, found).f1 == pytest.approx(f1(gold, found), abs=1e-12)


def test_a_count_of_words_is_another_score():
    def one_word_each(labels):
        return [(label, place) for place, label in enumerate(labels) if label != "O"]

    assert abs(span_score(GOLD, FOUND).f1 - f1(GOLD, FOUND, one_word_each)) > 0.1


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="expected labels of 3 sentences, got 1"):
        accuracy(GOLD, FOUND[:1])
    with pytest.raises(ValueError, match="expected 3 labels in sentence 1, got 2"):
        accuracy(GOLD, [FOUND[0], ("O", "O"), ()])
    with pytest.raises(ValueError, match="at least one word"):
        accuracy([()], [()])
