"""Corpora: both formats read, broken lines named by file and line, real treebanks counted."""

import gzip

import pytest

from gibbsite.apps.tagging import Corpus, CorpusError, LabelError, Labels, Sentence, sentences_of

CONLLU = """# sent_id = 1
# text = #1 can't
1\t#1\t#1\tNOUN\tNN\t_\t0\troot\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t1\taux\t_\t_
3\tn't\tnot\tPART\tRB\tPolarity=Neg\t1\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

# an empty sentence, which is none

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""
COLUMNS = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP I-PER\nBlackburn NNP B-NP B-PER\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="corpus.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_conllu(written):
    corpus = Corpus.read(written(CONLLU, "some.conllu"))
    assert corpus.sentences == (Sentence(("#1", "ca", "n't"), ("NOUN", "AUX", "PART")), Sentence(("Yes",), ("INTJ",)))
    assert corpus.tokens == 4 and len(corpus) == 2 and corpus.alphabet().names == ("AUX", "INTJ", "NOUN", "PART")
    for column, label in (("xpos", "MD"), ("lemma", "can"), ("feats", "_"), ("deprel", "aux"), ("5", "MD"), ("-3", "aux")):
        assert Corpus.read(written(CONLLU), column).sentences[0].labels[1] == label, column


def test_a_compressed_file_and_line_ends_of_windows_read_the_same(written):
    plain = Corpus.read(written(CONLLU)).sentences
    assert Corpus.read(written(gzip.compress(CONLLU.encode()), "some.gz")).sentences == plain
    assert Corpus.read(written("\ufeff" + CONLLU.replace("\n", "\r\n"))).sentences == plain
    assert Corpus.read(written(CONLLU.rstrip("\n"))).sentences == plain


def test_columns_and_their_schemes(written):
    corpus = Corpus.read(written(COLUMNS), "ner")
    assert corpus.labels == [("B-ORG", "O"), ("B-PER", "B-PER")]
    assert Corpus.read(written(COLUMNS), "ner", "bioes").labels == [("S-ORG", "O"), ("S-PER", "S-PER")]
    assert Corpus.read(written(COLUMNS), "chunk").labels == [("B-NP", "B-VP"), ("B-NP", "B-NP")]
    assert Corpus.read(written(COLUMNS), "pos").labels == Corpus.read(written(COLUMNS), "2").labels


def test_tweets_in_columns(written):
    """A hash sign starts a word, a no-break space is one, and white space may follow on an empty line."""
    corpus = Corpus.read(written("#now\tO\n\u00a0\tO\nObama\tB-person\n\t\n@x\tO\n"), "ner")
    assert [s.words for s in corpus] == [("#now", "\u00a0", "Obama"), ("@x",)]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        (CONLLU.replace("ca\tcan\t", "ca\t"), "upos", r"corpus.txt, line 5: expected 10 fields .*, got 9"),
        (CONLLU.replace("\n2\tca", "\nx\tca"), "upos", "line 5: expected a word's number in the first field.*'x'"),
        (CONLLU.replace("\tAUX", "\t_"), "upos", "line 5: expected a label in column 4, got '_'"),
        (CONLLU, "ner", "is in CoNLL-U, where a column is one of form, lemma, upos.*got 'ner'"),
        (CONLLU, "uposs", "did you mean upos"),
        (CONLLU, "12", "line 3: expected a column 12, got 10 columns"),
        (COLUMNS + "alone\n", "ner", "line 8: expected a word and at least one label, got 'alone' alone"),
        (COLUMNS, "upos", "is in columns, where a column is one of pos, chunk, ner"),
        (COLUMNS, "0", "is in columns"),
        (COLUMNS.encode() + b"\xff O\n", "ner", "line 8: expected text in UTF-8, got the byte 0xff"),
        (gzip.compress(COLUMNS.encode())[:-9], "ner", "not a whole gzip file"),
        ("", "upos", "expected at least one sentence, got none"),
        ("\n\n", "upos", "expected at least one sentence, got none"),
    ],
)
def test_broken_files_are_named_by_file_and_line(written, text, column, words):
    with pytest.raises(CorpusError, match=words):
        Corpus.read(written(text), column)


def test_a_missing_file_and_an_unknown_scheme(tmp_path):
    with pytest.raises(CorpusError, match=r"none\.conllu: cannot be read"):
        Corpus.read(tmp_path / "none.conllu")
    with pytest.raises(ValueError, match="scheme: expected one of bio, bioes, got 'iob'"):
        Corpus.read(tmp_path / "none.conllu", scheme="iob")


def test_sentences_and_corpora_are_checked():
    assert list(sentences_of(["a b\n", "\n"])) == [Sentence(("a", "b")), Sentence(())]
    with pytest.raises(ValueError, match="expected one for each of 2 words, or none, got 1"):
        Sentence(("a", "b"), ("X",))
    with pytest.raises(TypeError, match="split it into words"):
        Sentence("a b")
    with pytest.raises(ValueError, match="words: expected non-empty texts, got ''"):
        Sentence(("a", ""))
    with pytest.raises(ValueError, match="expected a label for each word, got none in sentence 0"):
        Corpus((Sentence(("a",)),))
    with pytest.raises(TypeError, match="got list at 0"):
        Corpus((["a"],))


def test_labels_outside_of_the_alphabet_are_named():
    labels = Labels(("DET", "NOUN"))
    with pytest.raises(LabelError, match=r"label 'NOUM' is none of the 2 labels DET, NOUN; the nearest is 'NOUN'"):
        labels.encode(["DET", "NOUM"])
    assert labels.decode(labels.encode(["NOUN", "DET"])) == ("NOUN", "DET")
    for names, words in (((), "at least one label"), (("A", "A"), "'A' again"), (("",), "non-empty")):
        with pytest.raises(ValueError, match=words):
            Labels(names)


def test_real_treebanks(data):
    """As many sentences and words as the releases' own statistics files and papers say (UD 2; Derczynski et al., 2017)."""
    dev = Corpus.read(data / "tagging/ud_ewt/en_ewt-ud-dev.conllu.gz")
    assert len(dev.alphabet()) == 17 and "PROPN" in dev.alphabet().names
    tweets = Corpus.read(data / "tagging/wnut17/wnut17train.conll", "ner")
    assert len(tweets) == 3394 and len(tweets.alphabet()) == 13
