"""Distributions: models with log Z = 0 that can be drawn from."""

from .factorised import Bernoulli, Independent
from .mixture import Mixture, NormalMixture
from .normal import Moments, Normal
from .toys import Banana, Funnel, Pinwheel, Rings, twenty_five_gaussians, two_moons

__all__ = [
    "Banana",
    "Bernoulli",
    "Funnel",
    "Independent",
    "Mixture",
    "Moments",
    "Normal",
    "NormalMixture",
    "Pinwheel",
    "Rings",
    "twenty_five_gaussians",
    "two_moons",
]
