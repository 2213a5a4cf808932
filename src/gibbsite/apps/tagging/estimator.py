"""The feature CRF as an estimator of scikit-learn: fits into cross-validation, grid search and pipelines."""

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("CRFTagger is an estimator of scikit-learn; install: pip install 'gibbsite[tagging]'") from error

from .corpus import Corpus, Sentence
from .feature_crf import FeatureCRF
from .features import FeatureTagger
from .scores import accuracy
from .templates import USUAL

Texts = Sequence[Sequence[str]]


@final
class CRFTagger(BaseEstimator):
    """A linear-chain CRF on sparse features of words: X holds sentences as lists of words, y their labels as lists.

    What the parameters mean is said by `FeatureCRF`. After `fit`, `classes_` has the labels in the order of the columns of
    `predict_marginals`, and `tagger_` is the tagger, with n best labellings and chains.

    Example:
        >>> X, y = [["the", "dog"], ["a", "cat"]], [["D", "N"], ["D", "N"]]
        >>> model = CRFTagger(epochs=10).fit(X, y)
        >>> model.predict([["the", "cat"]]), model.score(X, y)
        ([['D', 'N']], 1.0)
    """

    tagger_: FeatureTagger
    classes_: np.ndarray

    def __init__(
        self,
        *,
        templates: Sequence[str] = USUAL,
        l1: float = 0.0,
        l2: float = 0.1,
        least: int = 1,
        rate: float = 0.1,
        epochs: int = 5,
        seed: int = 0,
    ):
        self.templates, self.l1, self.l2, self.least = templates, l1, l2, least
        self.rate, self.epochs, self.seed = rate, epochs, seed

    def fit(self, X: Texts, y: Texts) -> Self:
        """Learns from sentences and their labels."""
        settings: dict[str, Any] = self.get_params() | {"templates": tuple(self.templates)}
        seed = settings.pop("seed")
        self.tagger_ = FeatureCRF(**settings).fit(_corpus(X, y), seed=seed)
        self.classes_ = np.array(self.tagger_.labels.names)
        return self

    def predict(self, X: Texts) -> list[list[str]]:
        """The most probable labels of each sentence."""
        check_is_fitted(self)
        return [list(labels) for labels in self.tagger_.predict(_sentences(X))]

    def predict_marginals(self, X: Texts) -> list[np.ndarray]:
        """p(label | all words) at each word, (words, labels) for each sentence."""
        check_is_fitted(self)
        return [p.numpy() for p in self.tagger_.predict_marginals(_sentences(X))]

    def score(self, X: Texts, y: Texts) -> float:
        """The share of words with the right label."""
        return accuracy(_corpus(X, y).labels, self.predict(X))


def _sentences(X: Texts) -> list[Sentence]:
    if isinstance(X, str):
        raise TypeError("X: expected sentences, each a list of words, got one text; split it into sentences and words")
    return [Sentence(_texts(words, "X")) for words in X]


def _corpus(X: Texts, y: Texts) -> Corpus:
    if len(X) != len(y):
        raise ValueError(f"X, y: expected as many lists of labels as sentences, got {len(X)} sentences and {len(y)} lists")
    pairs = zip(X, y)
    return Corpus(tuple(Sentence(_texts(words, "X"), _texts(labels, "y")) for words, labels in pairs), "X, y")


def _texts(texts: Sequence[str], name: str) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected a list of texts for each sentence, got the text {texts!r}; split it into words")
    return tuple(map(str, texts)) if isinstance(texts, np.ndarray) else tuple(texts)
