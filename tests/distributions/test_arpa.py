"""ARPA files: there and back, read by KenLM to the same scores, pruned ones too, and what is said of broken ones."""

import gzip
import math

import pytest
import torch

import gibbsite as gb

from .test_kneser_ney import sequences

D = gb.distributions
SPACE = gb.Tokens(7, 5, 0)
WORDS = ["</s>", "<unk>", "a", "b", "c"]
PRUNED = """\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-1\t</s>
-99\t<s>\t-0.2
-0.4\ta\t-0.25
-0.5\tb\t-0.125
-2\t<unk>

\\2-grams:
-0.3\t<s> a\t-0.5
-0.25\ta b
-0.75\tb b\t-1

\\3-grams:
-0.1\t<s> a a

\\end\\
"""


@pytest.fixture
def model():
    return D.kneser_ney(sequences(60), SPACE, order=4)


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_there_and_back(model, name, tmp_path, device):
    """Twelve digits of log10: 5e-12 of each number, of at most 7 tokens with 4 numbers below 10. The mutant has six."""
    D.write_arpa(model, WORDS, tmp_path / name)
    same, words = D.read_arpa(tmp_path / name, 7)
    assert words == WORDS and same.space == SPACE and same.states == model.states and same.order == 4
    x = sequences(200, seed=1)
    found = same.to(device)(x.to(device)).cpu()
    assert torch.allclose(found, model(x), atol=7 * 4 * 10 * 5e-12 * 2.4, rtol=0)
    assert not torch.allclose(model(x).float().double(), model(x), atol=7 * 4 * 10 * 5e-12 * 2.4, rtol=0)
    D.write_arpa(same.cpu(), words, tmp_path / "again.arpa")
    raw = (tmp_path / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith("gz") else raw).decode()
    assert len(text.splitlines()) == len((tmp_path / "again.arpa").read_text().splitlines())


def test_scores_of_a_pruned_file_by_hand(tmp_path):
    """Suffixes that are not listed are passed over: <s> a, then a, are the contexts of b though a is none after <s> a a."""
    (tmp_path / "pruned.arpa").write_text(PRUNED)
    model, words = D.read_arpa(tmp_path / "pruned.arpa", 4)
    assert words == ["</s>", "a", "b", "<unk>"]
    x = torch.tensor([[1, 1, 2, 0], [1, 2, 2, 0], [2, 2, 2, 2], [3, 0, 0, 0]])
    expected = [
        (-0.3) + (-0.1) + (-0.25) + (-0.125 - 1),
        (-0.3) + (-0.5 - 0.25) + (-0.75) + (-1 - 0.125 - 1),
        (-0.2 - 0.5) + (-0.75) + (-1 - 0.75) + (-1 - 0.75),
        (-0.2 - 2) + (-1),
    ]
    assert torch.allclose(model(x), torch.tensor(expected, dtype=torch.float64) * math.log(10))


def test_kenlm_reads_the_same(model, tmp_path):
    """KenLM has float32: each of at most 7 tokens is a sum of up to 4 numbers below 10. The mutant has order 2."""
    kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed")
    D.write_arpa(model, WORDS, tmp_path / "model.arpa")
    theirs, x = kenlm.Model(str(tmp_path / "model.arpa")), sequences(100, seed=2)
    x = x[(x == 0).any(1)]  # KenLM scores whole sentences
    rows = [[WORDS[i] for i in row[: int(n)]] for row, n in zip(x.tolist(), SPACE.lengths(x))]
    scores = torch.tensor([theirs.score(" ".join(row)) for row in rows]).double() * math.log(10)
    bound = 7 * 4 * 10 * 2**-24 * math.log(10)
    assert len(x) > 10 and torch.allclose(model(x), scores, atol=bound, rtol=0)
    assert not torch.allclose(D.kneser_ney(sequences(60), SPACE, order=2)(x), scores, atol=bound, rtol=0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\\data\\", "data", ":22: expected \\data\\, where an ARPA file begins, got nothing"),
        ("ngram 2=3", "ngram 3=3", ":3: expected ngram 2=COUNT, got 'ngram 3=3'"),
        ("\\2-grams:", "\\3-grams:", ":13: expected \\2-grams:, got '\\\\3-grams:'"),
        (
            "ngram 1=5",
            "ngram 1=6",
            ":12: expected log10 p, 1 words and possibly a log10 weight (6 such lines, of which 5",
        ),
        ("ngram 1=5", "ngram 1=4", ":11: expected an empty line after 4 1-grams, got '-2\\t<unk>'"),
        ("-0.25\ta b", "-0.25\ta d", ":15: expected words of \\1-grams:, not 'd', got '-0.25\\ta d'"),
        ("-0.25\ta b", "x\ta b", ":15: expected log10 p, 2 words"),
        ("-0.25\ta b", "0.25\ta b", ":15: expected log10 p of at most 0 and a finite log10 weight, got '0.25\\ta b'"),
        ("-0.25\ta b", "-0.25\tb b", ":16: expected an 2-gram that was not there before"),
        ("-0.25\ta b", "-0.25\ta <s>", ":15: expected <s> at the beginning only"),
        ("-0.1\t<s> a a", "-0.1\tb a a", ":19: expected an 3-gram whose first 2 words are listed too"),
        ("-2\t<unk>", "-2\ta", ":11: expected a word that was not there before, got '-2\\ta'"),
        ("\\end\\", "", "expected \\end\\, got nothing"),
        ("</s>", "<end>", "expected the unigram </s>, which ends sequences, got none"),
    ],
)
def test_broken_files_are_named_by_line(old, new, words, tmp_path):
    path = tmp_path / "broken.arpa"
    path.write_text(PRUNED.replace(old, new, 1))
    with pytest.raises(ValueError) as raised:
        D.read_arpa(path, 4)
    assert str(raised.value).startswith(str(path)) and words in str(raised.value)


def test_a_start_that_is_not_listed_is_the_empty_context(tmp_path):
    (tmp_path / "bare.arpa").write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-0.5 </s>\n-0.25 a\n\n\\end\\\n")
    model, words = D.read_arpa(tmp_path / "bare.arpa", 2)
    assert words == ["</s>", "a"] and int(model.start) == 0
    assert float(model(torch.tensor([1, 0]))) == pytest.approx(-0.75 * math.log(10), rel=1e-6)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["</s>", "a"], "words: expected 5, that of eos=0 being '</s>', got 2, that of eos '</s>'"),
        (["x", "a", "b", "c", "d"], "got 5, that of eos 'x'"),
        (["</s>", "a b", "b", "c", "d"], "words[1]: expected a string without spaces"),
        (["</s>", "<s>", "b", "c", "d"], "words[1]: expected a string without spaces that is not '<s>'"),
        (["</s>", "a", "a", "c", "d"], "words: expected no word twice, got 'a'"),
    ],
)
def test_words_are_checked(words, error, model, tmp_path):
    with pytest.raises(ValueError) as raised:
        D.write_arpa(model, words, tmp_path / "model.arpa")
    assert error in str(raised.value) and not list(tmp_path.iterdir())
