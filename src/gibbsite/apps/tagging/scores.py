"""How good a tagger is: accuracy, F1 of spans, calibration."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch

from ...diagnose import calibration_error
from .corpus import Corpus
from .spans import are_spans, spans
from .tagger import Tagger

Labelled = Sequence[Sequence[str]]


class SpanScore(NamedTuple):
    """Of all spans: the share of those found that are right, of those there that were found, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


@final
@dataclass(frozen=True)
class Scores:
    """What `evaluate` finds. `spans` is None where the labels are no spans; `nats` is mean -log p(labels) a word.

    `unknown` words have labels that the tagger does not know: these count as wrong, and their sentences not in `nats`, nor
    they in `calibration`.
    """

    sentences: int
    tokens: int
    unknown: int
    accuracy: float
    whole: float
    spans: SpanScore | None
    calibration: float
    nats: float


def accuracy(gold: Labelled, predicted: Labelled) -> float:
    """The share of words with the right label."""
    pairs = _pairs(gold, predicted)
    return sum(g == p for g, p in pairs) / len(pairs)


def confusion(gold: Labelled, predicted: Labelled) -> Counter[tuple[str, str]]:
    """How often a word of label g was given p: counts of (g, p)."""
    return Counter(_pairs(gold, predicted))


def span_score(gold: Labelled, predicted: Labelled) -> SpanScore:
    """Precision, recall and F1 of whole spans: one counts where kind, start and end are all right. 0 / 0 counts as 0.

    The same numbers as seqeval's in its default mode, and as the scorer of CoNLL-2000.

    References: Tjong Kim Sang and Buchholz (2000), Introduction to the CoNLL-2000 shared task: chunking.
    """
    _pairs(gold, predicted)
    there, found = ({(n, span) for n, labels in enumerate(side) for span in spans(labels)} for side in (gold, predicted))
    right, two = len(there & found), len(there) + len(found)
    return SpanScore(right / max(1, len(found)), right / max(1, len(there)), 2 * right / max(1, two))


def headline(gold: Labelled, predicted: Labelled) -> float:
    """What a tagger is chosen by: F1 of spans where the gold labels are spans, else accuracy."""
    if are_spans(label for labels in gold for label in labels):
        return span_score(gold, predicted).f1
    return accuracy(gold, predicted)


def evaluate(tagger: Tagger, corpus: Corpus, *, predicted: Labelled | None = None) -> Scores:
    """All scores of a tagger on a corpus; `predicted` saves tagging it again. At least one sentence has known labels."""
    names = set(tagger.labels.names)
    check_scorable(corpus, tagger.labels.names)
    predicted = tagger.predict(corpus.sentences) if predicted is None else predicted
    known = [sentence for sentence in corpus if names.issuperset(sentence.labels)]
    words = torch.tensor([label in names for labels in corpus.labels for label in labels])
    marginals = torch.cat(tagger.predict_marginals(corpus.sentences))[words]
    numbers = torch.tensor(tagger.labels.encode(label for labels in corpus.labels for label in labels if label in names))
    return Scores(
        sentences=len(corpus),
        tokens=corpus.tokens,
        unknown=int((~words).sum()),
        accuracy=accuracy(corpus.labels, predicted),
        whole=sum(tuple(g) == tuple(p) for g, p in zip(corpus.labels, predicted)) / len(corpus),
        spans=span_score(corpus.labels, predicted) if are_spans(tagger.labels.names) else None,
        calibration=calibration_error(marginals, numbers),
        nats=-sum(tagger.log_likelihood(known)) / sum(map(len, known)),
    )


def check_scorable(corpus: Corpus, names: Sequence[str]) -> None:
    """An error unless some sentence has only labels that a tagger of these names knows."""
    if not any(sentence.words and set(names).issuperset(sentence.labels) for sentence in corpus):
        expected = f"{corpus.source}: expected a sentence with words whose labels the tagger knows"
        raise ValueError(f"{expected} ({', '.join(names)}), got none; is it the right column?")


def _pairs(gold: Labelled, predicted: Labelled) -> list[tuple[str, str]]:
    """(gold, predicted) of each word, after a check that both say the same words."""
    if len(gold) != len(predicted):
        raise ValueError(f"predicted: expected labels of {len(gold)} sentences, got {len(predicted)}")
    for number, (g, p) in enumerate(zip(gold, predicted)):
        if len(g) != len(p):
            raise ValueError(f"predicted: expected {len(g)} labels in sentence {number}, got {len(p)}")
    pairs = [pair for g, p in zip(gold, predicted) for pair in zip(g, p)]
    if not pairs:
        raise ValueError("gold: expected at least one word, got none")
    return pairs
