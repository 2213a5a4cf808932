"""Speech recognition with random fields: data, encoders, losses, decoding and scores."""

from .alphabet import BLANK, Alphabet
from .an4 import an4
from .batches import Batch, Batches, Masks, batched, collated
from .bilstm import BiLSTM
from .conformer import Conformer
from .corpus import Corpus, Utterance
from .criterion import CTC, Criterion
from .ctc_crf import CTCRandomField
from .edits import Edits, edits
from .encoder import Encoder
from .errors import SpeechError
from .features import LogMel, normalised, slopes, with_slopes
from .fsdd import fsdd
from .lf_mmi import HMMRandomField
from .manifest import manifest
from .objective import Transcription
from .plan import Plan
from .recogniser import Recogniser, drawn
from .task import Task, criterion_of, heard, recogniser_of, scores_of, seen, task
from .training import counts, learn
from .units import Characters, Pronounced, Units, Written
