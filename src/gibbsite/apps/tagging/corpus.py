"""Sentences with a label for each word, and corpora of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, final

from .labels import Labels
from .read import read_sentences
from .spans import SCHEMES, are_spans, spans, written


@final
@dataclass(frozen=True)
class Sentence:
    """Words, and a label for each; no labels at all where they are not known.

    Example:
        >>> Sentence(("the", "dog"), ("DET", "NOUN"))
        Sentence(words=('the', 'dog'), labels=('DET', 'NOUN'))
    """

    words: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def __post_init__(self):
        if isinstance(self.words, str) or isinstance(self.labels, str):
            raise TypeError(f"words, labels: expected texts in a tuple, got one text, {self.words!r}; split it into words")
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "labels", tuple(self.labels))
        for name, texts in (("words", self.words), ("labels", self.labels)):
            odd = next((text for text in texts if not isinstance(text, str) or not text), None)
            if odd is not None:
                raise ValueError(f"{name}: expected non-empty texts, got {odd!r}")
        if self.labels and len(self.labels) != len(self.words):
            raise ValueError(f"labels: expected one for each of {len(self.words)} words, or none, got {len(self.labels)}")

    def __len__(self) -> int:
        return len(self.words)


@final
@dataclass(frozen=True)
class Corpus:
    """Sentences, all of them labelled, and where they came from.

    Example:
        >>> corpus = Corpus((Sentence(("the", "dog"), ("DET", "NOUN")),))
        >>> corpus.alphabet().names, corpus.tokens
        (('DET', 'NOUN'), 2)
    """

    sentences: tuple[Sentence, ...]
    source: str = "corpus"

    def __post_init__(self):
        object.__setattr__(self, "sentences", tuple(self.sentences))
        for number, sentence in enumerate(self.sentences):
            if not isinstance(sentence, Sentence):
                raise TypeError(f"sentences: expected Sentence(words, labels), got {type(sentence).__name__} at {number}")
            if len(sentence.labels) != len(sentence.words):
                raise ValueError(f"sentences: expected a label for each word, got none in sentence {number}")

    @classmethod
    def read(cls, path: str | Path, column: str = "upos", scheme: str = "bio") -> Self:
        """A corpus in CoNLL-U, or in columns with an empty line between sentences; also compressed by gzip.

        `column` is a name (in CoNLL-U: upos, xpos, lemma, feats, deprel; in columns: pos, chunk, ner), or the number of a
        column, 1 for the first, -1 for the last. The words are the second column of CoNLL-U and the first of others.
        Labels of spans, in BIO, IOB1, BIOES or BILOU, are rewritten in `scheme`: bio or bioes. A broken line is a
        CorpusError that names the file and the line.
        """
        if scheme not in SCHEMES:
            raise ValueError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}")
        sentences = tuple(Sentence(*pair) for pair in read_sentences(Path(path), column))
        corpus = cls(sentences, str(path))
        return corpus.rewritten(scheme) if are_spans(label for s in sentences for label in s.labels) else corpus

    def rewritten(self, scheme: str) -> Self:
        """The same spans in BIO or BIOES."""
        return replace(
            self, sentences=tuple(Sentence(s.words, written(spans(s.labels), len(s), scheme)) for s in self.sentences)
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.sentences)

    @property
    def tokens(self) -> int:
        """How many words there are."""
        return sum(map(len, self.sentences))

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """Each sentence's labels."""
        return [sentence.labels for sentence in self.sentences]

    def learnable(self) -> Labels:
        """The alphabet, if there is something to learn: words, and at least two labels."""
        labels = self.alphabet() if self.tokens else None
        if labels is None:
            raise ValueError(f"{self.source}: expected at least one word, got none")
        if len(labels) < 2:
            raise ValueError(f"{self.source}: expected at least 2 labels, got {labels.names[0]} alone; is it the column?")
        return labels

    def alphabet(self) -> Labels:
        """The labels that occur, in the order of their names."""
        return Labels(tuple(sorted({label for sentence in self.sentences for label in sentence.labels})))


def sentences_of(lines: Iterable[str]) -> Iterator[Sentence]:
    """Text of one sentence a line, its words parted by spaces; empty lines are sentences without words."""
    for line in lines:
        yield Sentence(tuple(line.split()))
