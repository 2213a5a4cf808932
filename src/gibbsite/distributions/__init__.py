"""Distributions: models with log Z = 0 that can be drawn from."""

from .autoregressive import Autoregressive
from .conditional import ConditionalNormal, FixedScale, OwnScale, SharedScale
from .conditionals import LSTM, NGram
from .factorised import Bernoulli, Independent
from .latent import LatentNormal
from .marginal import Marginal
from .mixture import Mixture, NormalMixture
from .normal import Moments, Normal
from .toys import Banana, Funnel, Pinwheel, Rings, twenty_five_gaussians, two_moons

__all__ = [
    "LSTM",
    "Autoregressive",
    "Banana",
    "Bernoulli",
    "ConditionalNormal",
    "FixedScale",
    "Funnel",
    "Independent",
    "LatentNormal",
    "Marginal",
    "Mixture",
    "Moments",
    "NGram",
    "Normal",
    "NormalMixture",
    "OwnScale",
    "Pinwheel",
    "Rings",
    "SharedScale",
    "twenty_five_gaussians",
    "two_moons",
]
