"""Distributions: models with log Z = 0 that can be drawn from."""

from .arpa import read_arpa, write_arpa
from .autoregressive import Autoregressive
from .backoff import Backoff
from .classes import class_log_likelihood, word_classes
from .conditional import ConditionalNormal, FixedScale, OwnScale, SharedScale
from .conditionals import LSTM, NGramTable
from .factorised import Bernoulli, Independent
from .incremental import Incremental
from .kenlm import KenLM
from .kneser_ney import kneser_ney
from .latent import LatentNormal
from .marginal import Marginal
from .mixture import Mixture, NormalMixture
from .ngram import NGram
from .ngram_conditional import NGramConditional
from .normal import Moments, Normal
from .perplexity import perplexity
from .stepwise import Stepwise
from .toys import Banana, Funnel, Pinwheel, Rings, twenty_five_gaussians, two_moons
from .transformer import Transformer
from .truncation import Truncation

__all__ = [
    "LSTM",
    "Autoregressive",
    "Backoff",
    "Banana",
    "Bernoulli",
    "ConditionalNormal",
    "FixedScale",
    "Funnel",
    "Incremental",
    "Independent",
    "KenLM",
    "LatentNormal",
    "Marginal",
    "Mixture",
    "Moments",
    "NGram",
    "NGramConditional",
    "NGramTable",
    "Normal",
    "NormalMixture",
    "OwnScale",
    "Pinwheel",
    "Rings",
    "SharedScale",
    "Stepwise",
    "Transformer",
    "Truncation",
    "class_log_likelihood",
    "kneser_ney",
    "perplexity",
    "read_arpa",
    "twenty_five_gaussians",
    "two_moons",
    "word_classes",
    "write_arpa",
]
