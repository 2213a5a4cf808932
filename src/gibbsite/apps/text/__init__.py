"""Text: tokenisers, corpora, and language models, of one's own or of the transformers library, as distributions."""

from .causal import from_hugging_face
from .characters import Characters
from .corpora import Corpus, king_james, lines, wikitext2
from .energy_rerank import EnergyRerank, energy_rerank
from .language_model import LanguageModel
from .masked import MaskedLanguageModel, masked_from_hugging_face
from .pieces import Pieces
from .residual_bounds import Perplexity, Steps, residual_perplexity, residual_steps
from .residual_sampling import JointDraws, residual_sample
from .sentences import Sentences, sentences
from .tokeniser import Tokeniser
from .words import Words
