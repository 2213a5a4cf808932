"""Laws of label sequences given the features of a sentence: softmax, linear-chain CRF, RNN transducer, CRF transducer."""

from .beam import Found, search, sequence_scores
from .crf_transducer import CRFTransducer
from .head import Best, Head, Losses
from .linear_chain import LinearChainCRF
from .potentials import Local, Potentials, Separate, Sum
from .prediction import Prediction
from .rnn_transducer import RNNTransducer
from .softmax import Softmax
from .transducer import Transducer
