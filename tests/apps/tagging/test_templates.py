"""Hashed features against the same features as texts: equal where the texts are, and only there."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.apps.tagging import USUAL, Sentence, Templates

AFFIX = re.compile(r"(prefix|suffix)(\d)")


def pattern(word):
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)


def look(name, word):
    lower = "".join(c.lower()[0] for c in word)
    if affix := AFFIX.fullmatch(name):
        size = int(affix[2])
        if len(word) < size:
            return ("short", lower)
        return lower[:size] if affix[1] == "prefix" else lower[-size:]
    plain = {"word": word, "lower": lower, "pattern": pattern(word), "shape": re.sub(r"(.)\1+", r"\1", pattern(word))}
    return plain[name]


def as_texts(templates, sentences):
    """The definition: what each hash stands for."""
    for sentence in sentences:
        for t in range(len(sentence)):
            for number, template in enumerate(templates.texts):
                parts = []
                for name, distance in re.findall(r"(\w+)\[([+-]?\d+)\]", template):
                    place = t + int(distance)
                    inside = 0 <= place < len(sentence)
                    beyond = ("start", place) if place < 0 else ("end", place - len(sentence))
                    parts.append((name, look(name, sentence.words[place])) if inside else beyond)
                yield number, tuple(parts)


words = st.lists(st.text("aAbB1-é漢", min_size=1, max_size=6).map(lambda w: w), max_size=5)


@settings(deadline=None)
@given(st.lists(words, max_size=4))
def test_hashes_are_equal_where_the_features_are(sentences):
    """Of at most 10^4 features two distinct ones share a 64-bit hash with probability below 1e-11."""
    templates, sentences = Templates(), [Sentence(tuple(s)) for s in sentences]
    hashes, ends = templates.hashes(sentences)
    texts = list(as_texts(templates, sentences))
    lengths = [len(sentence) for sentence in sentences]
    assert hashes.shape == (sum(lengths), len(USUAL)) and ends.tolist() == np.cumsum(lengths).tolist()
    assert len(set(zip(texts, hashes.ravel().tolist()))) == len(set(texts)) == len(set(hashes.ravel().tolist()))


def test_a_hash_without_the_template_fails():
    """A mutant: templates whose own number is not in the hash mix up lower[-1] and lower[1]."""
    sentence = [Sentence(("a", "b", "a"))]
    hashes, _ = Templates(("lower[-1]", "lower[1]")).hashes(sentence)
    one_by_one = [Templates((text,)).hashes(sentence)[0][1, 0] for text in ("lower[-1]", "lower[1]")]
    assert one_by_one[0] == one_by_one[1] and hashes[1, 0] != hashes[1, 1]


def test_strange_words_have_features():
    hashes, _ = Templates().hashes([Sentence(("\ud800", "İ", "x" * 5000))])
    assert hashes.shape == (3, len(USUAL))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((), "expected at least one"),
        (("",), "expected parts such as"),
        (("lower",), r"expected LOOK\[DISTANCE\], such as lower\[-1\], got 'lower'"),
        (("lower[9999]",), "expected LOOK"),
        (("lowr[0]",), "there is no look 'lowr' of words; did you mean lower"),
    ],
)
def test_mistakes_are_named(texts, said):
    with pytest.raises(ValueError, match=said):
        Templates(texts)
