"""Scores against counts by hand, and F1 of spans against that of seqeval."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.apps.tagging import accuracy, confusion, headline, span_score

GOLD = [("B-PER", "I-PER", "O"), ("B-LOC", "O", "O"), ()]
FOUND = [("B-PER", "I-PER", "O"), ("B-PER", "O", "B-LOC"), ()]


def test_by_hand():
    assert accuracy(GOLD, FOUND) == 4 / 6
    assert confusion(GOLD, FOUND)["O", "B-LOC"] == 1
    assert span_score(GOLD, FOUND) == (1 / 3, 1 / 2, pytest.approx(0.4))


label = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])
sentence = st.lists(st.tuples(label, label), min_size=1, max_size=6)


def f1(gold, found):
    from seqeval.metrics import f1_score

    return f1_score([list(labels) for labels in gold], [list(labels) for labels in found], zero_division=0)


@settings(deadline=None)
@given(st.lists(sentence, min_size=1, max_size=4))
def test_f1_is_that_of_seqeval(sentences):
    gold, found = ([tuple(pair[side] for pair in s) for s in sentences] for side in (0, 1))
    assert span_score(gold, found).f1 == pytest.approx(f1(gold, found), abs=1e-12)


def test_f1_of_single_words_is_another_number():
    def of_words(labels):
        return ["O" if label == "O" else f"S-{label}" for label in labels]

    words = span_score(list(map(of_words, GOLD)), list(map(of_words, FOUND))).f1
    assert abs(words - f1(GOLD, FOUND)) > 0.1 and headline(GOLD, FOUND) == pytest.approx(f1(GOLD, FOUND))
    assert headline([("A", "B")], [("A", "A")]) == 0.5


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="expected labels of 3 sentences, got 1"):
        accuracy(GOLD, FOUND[:1])
    with pytest.raises(ValueError, match="expected 3 labels in sentence 1, got 2"):
        accuracy(GOLD, [FOUND[0], ("O", "O"), ()])
    with pytest.raises(ValueError, match="at least one word"):
        accuracy([()], [()])
