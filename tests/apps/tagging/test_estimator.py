"""The estimator: what scikit-learn asks of one, and the same numbers as the tagger inside."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from gibbsite.apps.tagging import Corpus, CRFTagger, FeatureCRF, Sentence

X = [["the", "dog", "runs"], ["a", "cat"], [], ["the", "cat", "sleeps"]] * 3
Y = [["D", "N", "V"], ["D", "N"], [], ["D", "N", "V"]] * 3


@pytest.fixture(scope="module")
def model():
    return CRFTagger(epochs=10, seed=3).fit(X, Y)


def test_it_is_the_tagger_inside(model):
    own = FeatureCRF(epochs=10).fit(Corpus(tuple(map(Sentence, X, Y))), seed=3)
    sentences = [Sentence(tuple(words)) for words in X]
    assert model.predict(X) == [list(labels) for labels in own.predict(sentences)] == Y
    assert list(model.classes_) == ["D", "N", "V"] and model.score(X, Y) == 1.0
    for p, q, words in zip(model.predict_marginals(X), own.predict_marginals(sentences), X):
        assert isinstance(p, np.ndarray) and p.shape == (len(words), 3) and np.array_equal(p, q.numpy())


def test_parameters_are_got_set_and_cloned(model):
    other = clone(model).set_params(l2=0.5)
    assert other.get_params() == model.get_params() | {"l2": 0.5}
    assert set(FeatureCRF.__dataclass_fields__) | {"seed"} == set(model.get_params())
    defaults = CRFTagger().get_params()
    assert all(defaults[name] == getattr(FeatureCRF(), name) for name in FeatureCRF.__dataclass_fields__)
    with pytest.raises(NotFittedError):
        other.predict(X)
    with pytest.raises(ValueError, match="Invalid parameter 'l3'"):
        other.set_params(l3=1)


def test_cross_validation_grid_search_and_pipelines():
    assert cross_val_score(CRFTagger(), X, Y, cv=3).shape == (3,)
    found = GridSearchCV(CRFTagger(), {"l2": [0.1, 100.0]}, cv=2).fit(X, Y)
    assert found.best_params_["l2"] in (0.1, 100.0)
    lower = FunctionTransformer(lambda X: [[word.lower() for word in words] for words in X])
    assert make_pipeline(lower, CRFTagger(epochs=10)).fit(X, Y).predict([["THE", "DOG", "RUNS"]]) == [["D", "N", "V"]]


def test_arrays_of_words_are_sentences(model):
    assert model.predict([np.array(["the", "dog"])]) == [["D", "N"]]


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X, Y[1:], "as many lists of labels as sentences, got 12 sentences and 11 lists"),
        ([["a", "b"]], [["D"]], "expected one for each of 2 words, or none, got 1"),
        (["a b"], [["D"]], "X: expected a list of texts for each sentence, got the text 'a b'"),
        ([["a"]], ["D"], "y: expected a list of texts for each sentence, got the text 'D'"),
        ([[]], [[]], "expected at least one word, got none"),
    ],
)
def test_mistakes_are_named(x, y, said):
    with pytest.raises((ValueError, TypeError), match=said):
        CRFTagger().fit(x, y)


def test_a_text_is_no_list_of_sentences(model):
    with pytest.raises(TypeError, match="split it into sentences and words"):
        model.predict("the dog")


def test_without_scikit_learn_the_extra_is_named():
    program = """import sys
sys.modules["sklearn.base"] = None
import gibbsite.apps.tagging as tagging
try:
    tagging.CRFTagger
except ImportError as error:
    print(error)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'gibbsite[tagging]'" in answer.stdout
