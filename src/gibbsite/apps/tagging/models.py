"""The taggers that a command line can name."""

from pathlib import Path

from .feature_crf import FeatureCRF
from .features import FeatureTagger
from .learners import NeuralCRF, NeuralCRFTransducer, NeuralRNNTransducer, NeuralSoftmax
from .neural import NeuralTagger
from .tagger import Learner, Tagger, load

MODELS: dict[str, type[Learner]] = {
    "features": FeatureCRF,
    "bilstm-softmax": NeuralSoftmax,
    "bilstm-crf": NeuralCRF,
    "rnn-transducer": NeuralRNNTransducer,
    "crf-transducer": NeuralCRFTransducer,
}


def read(path: str | Path) -> Tagger:
    """The tagger in a file that `Tagger.save` wrote, of whichever kind."""
    return load(Path(path), (FeatureTagger, NeuralTagger))
