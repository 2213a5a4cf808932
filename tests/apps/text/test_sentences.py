"""Tokenisers give back what they were given; what is left out of rows is counted and said; corpora are what they were."""

import re

import pytest
import torch

import gibbsite as gb

T = gb.text
TEXTS = ["in the beginning", "the word was", "the end"]


def test_known_texts_come_back():
    words, characters = T.Words.of(TEXTS), T.Characters.of(TEXTS)
    for text in TEXTS:
        assert words.decode(words.encode(text)) == characters.decode(characters.encode(text)) == text
    assert words.words[:3] == ("</s>", "<unk>", "the") and words.vocabulary == 8


def test_unknown_and_reserved_words_are_unknown():
    words = T.Words.of([*TEXTS, "<unk> </s>"], least=2)
    assert words.words == ("</s>", "<unk>", "the")
    assert words.encode("the </s> <unk> word") == [2, 1, 1, 1] and words.decode([2, 1]) == "the <unk>"
    characters = T.Characters("ab")
    assert characters.decode(characters.encode("a\N{BULLET}b")) == "a\N{REPLACEMENT CHARACTER}b"
    assert T.Words.of(TEXTS, most=1).vocabulary == 3


def test_rows_end_with_eos_and_the_counts_are_told():
    """The mutant cuts a long text to the length: it would have a row."""
    texts = ["the word", "", "in the beginning was", "the", "  "]
    with pytest.warns(UserWarning, match=re.escape("left out: 2 empty, 1 of more than 3 tokens")):
        found = T.sentences(T.Words.of(TEXTS), texts, length=3)
    assert found.x.tolist() == [[2, 5, 0], [2, 0, 0]] and found.kept == (0, 3)
    assert (len(found), found.tokens, found.unknown, found.empty, found.long) == (2, 3, 0, 2, 1)
    found.space.check(found.x)
    assert T.sentences(T.Words.of(TEXTS), ["in the beginning was it"]).unknown == 1


def test_a_text_that_fills_the_length_has_no_eos_and_probabilities_count_it():
    """Data follow the convention of draws: with q uniform over 8 ids, log q of 2 and 3 tokens of at most 3 is -3 log 8."""
    tokeniser = T.Words.of(TEXTS)
    found = T.sentences(tokeniser, ["the word", "the word was"])
    q = gb.distributions.Autoregressive(gb.distributions.NGramTable(8), found.space)
    assert found.x.shape == (2, 3) and torch.allclose(q(found.x), -3 * torch.tensor(8.0).log())


def test_no_texts_are_no_rows():
    assert T.sentences(T.Characters("ab"), [], length=4).x.shape == (0, 4)


class Bad(T.Tokeniser):
    vocabulary, eos, unknown = 3, 0, None

    def encode(self, text):
        return [1, 0, 2]

    def decode(self, ids):
        return ""


def test_mistakes_are_told(tmp_path):
    with pytest.raises(ValueError, match="expected none with the token that ends a text, id 0, got one at 0"):
        T.sentences(Bad(), ["x"])
    with pytest.raises(TypeError, match="texts: expected several, got one str"):
        T.sentences(T.Characters("ab"), "abba")
    with pytest.raises(ValueError, match="words: expected different words without white space"):
        T.Words(["a", "b", "a"])
    with pytest.raises(ValueError, match=r"words: .* got 'a b'"):
        T.Words(["a b"])
    with pytest.raises(ValueError, match="characters: expected each once, got 'aba'"):
        T.Characters("aba")
    (tmp_path / "latin").write_bytes("eins\nzwei\nf\xfcnf\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin, line 3: expected text in UTF-8, got byte 0xfc; convert"):
        T.lines(tmp_path / "latin")


def test_lines_keep_empty_ones(tmp_path):
    (tmp_path / "text").write_bytes("\ufeffone \r\n\r\ntwo".encode())
    assert T.lines(tmp_path / "text") == ["one", "", "two"]


def test_the_king_james_bible(data):
    corpus = T.king_james()
    assert [len(part) for part in (corpus.train, corpus.validation, corpus.test)] == [27992, 1555, 1555]
    assert corpus.train[0] == "In the beginning God created the heaven and the earth."
    assert len({*corpus.train} & {*corpus.test}) < 30  # verses that the Bible has twice


def test_a_bible_that_is_nowhere_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("GIBBSITE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(gb.datasets.DatasetError, match=r"kjv.txt.gz or kjv.txt: not found in .*; put a copy with SHA-256"):
        T.king_james()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "kjv.txt").write_text("Ge1:1 In the beginning")
    with pytest.raises(gb.datasets.DatasetError, match="expected content with SHA-256"):
        T.king_james()


def test_wikitext(data):
    corpus = T.wikitext2()
    assert corpus.validation[0] == "= Homarus gammarus =" and not corpus.train
    tokens = [sum(len(text.split()) + 1 for text in part) for part in (corpus.validation, corpus.test)]
    assert all(corpus.test) and tokens[0] > 200_000
