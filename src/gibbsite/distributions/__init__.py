"""Distributions: models with log Z = 0 that can be drawn from."""

from .conditional import ConditionalNormal, FixedScale, OwnScale, SharedScale
from .factorised import Bernoulli, Independent
from .latent import LatentNormal
from .mixture import Mixture, NormalMixture
from .normal import Moments, Normal
from .toys import Banana, Funnel, Pinwheel, Rings, twenty_five_gaussians, two_moons

__all__ = [
    "Banana",
    "Bernoulli",
    "ConditionalNormal",
    "FixedScale",
    "Funnel",
    "Independent",
    "LatentNormal",
    "Mixture",
    "Moments",
    "Normal",
    "NormalMixture",
    "OwnScale",
    "Pinwheel",
    "Rings",
    "SharedScale",
    "twenty_five_gaussians",
    "two_moons",
]
