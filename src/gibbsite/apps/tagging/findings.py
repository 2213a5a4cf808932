"""What a run of a tagger writes down about a corpus: scores, labels taken for others, the errors it was surest of."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from .corpus import Corpus
from .scores import confusion, evaluate
from .tagger import Tagger

_WORST, _CONTEXT = 30, 4


def findings(tagger: Tagger, corpus: Corpus, part: str) -> dict[str, Any]:
    """One row of metrics.jsonl: {"kind": "scores", "part": "dev", "scores": ..., "confusion": ..., "worst": ...}."""
    predicted = tagger.predict(corpus.sentences)
    scores = evaluate(tagger, corpus, predicted=predicted)
    counts = confusion(corpus.labels, predicted)
    return {
        "kind": "scores",
        "part": part,
        "scores": asdict(scores) | {"spans": scores.spans and scores.spans._asdict()},
        "confusion": [[gold, found, count] for (gold, found), count in sorted(counts.items())],
        "worst": worst(tagger, corpus, predicted),
    }


def worst(tagger: Tagger, corpus: Corpus, predicted: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The wrong labels with the highest probability, each with the words around it."""
    marginals: list[Tensor] = tagger.predict_marginals(corpus.sentences)
    errors = []
    for sentence, labels, p in zip(corpus, predicted, marginals):
        numbers = tagger.labels.encode(labels)
        for t, (gold, found) in enumerate(zip(sentence.labels, labels)):
            if gold != found:
                errors.append((float(p[t, numbers[t]]), sentence.words, t, gold, found))
    errors.sort(key=lambda error: -error[0])
    return [
        {
            "before": " ".join(words[max(0, t - _CONTEXT) : t]),
            "word": words[t],
            "after": " ".join(words[t + 1 : t + 1 + _CONTEXT]),
            "gold": gold,
            "predicted": found,
            "probability": p,
        }
        for p, words, t, gold, found in errors[:_WORST]
    ]
