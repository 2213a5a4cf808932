"""Estimators of log Z and of expectations: each number comes with its error, and says when it cannot be trusted."""

from .ais import ais, reverse_ais
from .base import fit_base
from .bounds import Bounds, iwae, residual_bounds
from .bracket import bracket
from .bridge import Ratio, accept_ratio, bridge
from .estimate import Estimate
from .importance import Expectation, importance, snis
from .integral import divergence, integrate
from .likelihood import log_likelihood
from .rbm_path import RBMPath
from .schedules import adaptive, linear, sigmoid
from .smc import Particles, smc
from .thermodynamic import thermodynamic
