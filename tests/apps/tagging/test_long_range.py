"""What the label history is for: the last label repeats the first, over labels between that say nothing of it.

The words say nothing either, so that the entropy of the labels is log 2. A linear chain forgets the first label at the
second: whatever it learns, its cross-entropy is at least 2 log 2, that of two independent ends.
"""

import math

import pytest

from gibbsite.apps.tagging import (
    Adam,
    Corpus,
    NeuralCRF,
    NeuralCRFTransducer,
    NeuralRNNTransducer,
    Sentence,
    Words,
)
from gibbsite.apps.tagging.heads import Separate

CORPUS = Corpus(tuple(Sentence(("x",) * 4, (end, "M", "M", end)) for end in "AB" * 20))
SMALL = {
    "reading": Words(word_size=4, filters=2, hidden=4, dropout=0.0), "optimiser": Adam(0.05), "tokens": 32, "window": 0.0,
}  # fmt: skip
LABELS = {"label_hidden": 8, "label_dropout": 0.0, "width": 3**4}


def nats(learner, device):
    tagger = learner.fit(CORPUS, seed=0, device=str(device))
    return -sum(tagger.log_likelihood(CORPUS.sentences)) / len(CORPUS)


@pytest.mark.parametrize(
    "learner",
    [
        NeuralRNNTransducer(**SMALL, **LABELS, epochs=40),
        NeuralCRFTransducer(**SMALL, **LABELS, epochs=40, first_epochs=0),
        NeuralCRFTransducer(**SMALL, **LABELS, epochs=40, first_epochs=10, design=Separate()),
    ],
    ids=["rnn-t", "crf-t, sum", "crf-t, separate"],
)
def test_transducers_learn_what_the_first_label_says_of_the_last(learner, device):
    # Exact cross-entropies of a corpus of which half is A: at least log 2, and nearer to it than to the chain's bound
    assert math.log(2) - 1e-4 <= nats(learner, device) < 1.5 * math.log(2)


def test_a_linear_chain_cannot(device):
    assert nats(NeuralCRF(**SMALL, epochs=40), device) > 2 * math.log(2) - 1e-4
