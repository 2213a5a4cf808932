"""Tagging: a label for each word of a sentence, by conditional random fields and their relatives."""

from .corpus import Corpus, Sentence, sentences_of
from .feature_crf import FeatureCRF
from .features import FeatureTagger
from .labels import LabelError, Labels
from .learners import NeuralCRF, NeuralCRFTransducer, NeuralLearner, NeuralRNNTransducer, NeuralSoftmax
from .neural import NeuralTagger
from .optimisers import SGD, Adam
from .read import CorpusError
from .reading import Pretrained, Words
from .scores import Scores, SpanScore, accuracy, confusion, evaluate, headline, span_score
from .spans import Span, spans
from .tagger import Hypothesis, Learner, Tagger
from .templates import USUAL, Templates


def __getattr__(name: str):
    """CRFTagger, which needs scikit-learn, is imported when it is asked for."""
    if name == "CRFTagger":
        from .estimator import CRFTagger

        return CRFTagger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
