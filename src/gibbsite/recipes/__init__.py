"""One file an experiment; `gibbsite run NAME` runs it."""

from typing import Any

from .deep_ebm import RECIPE as _DEEP_EBM
from .earm_toy import RECIPE as _EARM_TOY
from .fhmm import RECIPE as _FHMM
from .ising_learning import RECIPE as _ISING_LEARNING
from .ising_sampling import RECIPE as _ISING_SAMPLING
from .ising_transition import RECIPE as _ISING_TRANSITION
from .label_bias import RECIPE as _LABEL_BIAS
from .nrf_toy import RECIPE as _NRF_TOY
from .rbm_digits import RECIPE as _RBM_DIGITS
from .rbm_mnist import RECIPE as _RBM_MNIST
from .recipe import Bars, Recipe
from .relaxations import RECIPE as _RELAXATIONS
from .speech import SPEECH
from .trained import Trained
from .vaebm_gaussians import RECIPE as _VAEBM_GAUSSIANS

RECIPES: dict[str, Recipe[Any]] = {
    "rbm-digits": _RBM_DIGITS,
    "rbm-mnist": _RBM_MNIST,
    "ising-transition": _ISING_TRANSITION,
    "ising-sampling": _ISING_SAMPLING,
    "ising-learning": _ISING_LEARNING,
    "fhmm": _FHMM,
    "label-bias": _LABEL_BIAS,
    "deep-ebm": _DEEP_EBM,
    "earm-toy": _EARM_TOY,
    "relaxations": _RELAXATIONS,
    "nrf-toy": _NRF_TOY,
    "vaebm-25gaussians": _VAEBM_GAUSSIANS,
}

APPLICATIONS: dict[str, Recipe[Any]] = {"speech": SPEECH}  # runs with commands of their own, which learn from a user's data

__all__ = ["APPLICATIONS", "RECIPES", "Bars", "Recipe", "Trained"]
