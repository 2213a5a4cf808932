"""Spans of labels: every scheme says the same spans, by hand and for random ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.apps.tagging.spans import Span, are_spans, spans, written

FOUND = (Span("PER", 0, 2), Span("PER", 2, 3), Span("LOC", 4, 7))
SCHEMES = {
    "bio": "B-PER I-PER B-PER O B-LOC I-LOC I-LOC",
    "iob1": "I-PER I-PER B-PER O I-LOC I-LOC I-LOC",
    "bioes": "B-PER E-PER S-PER O B-LOC I-LOC E-LOC",
    "bilou": "B-PER L-PER U-PER O B-LOC I-LOC L-LOC",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_schemes_say_the_same(scheme):
    assert spans(SCHEMES[scheme].split()) == FOUND
    assert are_spans(SCHEMES[scheme].split())


def test_both_schemes_are_written():
    for scheme in ("bio", "bioes"):
        assert " ".join(written(FOUND, 7, scheme)) == SCHEMES[scheme]


@st.composite
def sentences(draw):
    length = draw(st.integers(0, 12))
    found, place = [], 0
    while place < length:
        end = draw(st.integers(place + 1, length))
        if draw(st.booleans()):
            found.append(Span(draw(st.sampled_from(["A", "B-C"])), place, end))
        place = end
    return tuple(found), length


@settings(deadline=None)
@given(sentences())
def test_what_is_written_is_read_again(sentence):
    found, length = sentence
    for scheme in ("bio", "bioes"):
        assert spans(written(found, length, scheme)) == found


def merged(labels):
    """A mutant: B goes on with an open span of the same kind."""
    return spans([label.replace("B-", "I-") for label in labels])


def test_a_reader_that_merges_neighbours_fails():
    assert merged(SCHEMES["bio"].split()) != FOUND


def test_what_no_scheme_allows_still_means_something():
    assert spans(["O", "I-PER", "I-LOC", "E-LOC", "E-LOC"]) == (Span("PER", 1, 2), Span("LOC", 2, 4), Span("LOC", 4, 5))
    assert spans([]) == () and not are_spans([]) and not are_spans(["O"]) and not are_spans(["NOUN", "O"])


def test_spans_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="expected 0 <= start < end <= 2"):
        written([Span("A", 1, 3)], 2)
    with pytest.raises(ValueError, match="do not overlap"):
        written([Span("A", 0, 2), Span("B", 1, 2)], 2)
