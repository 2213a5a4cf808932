"""Models: Ising, Potts, RBM, FHMM, networks."""

from .fhmm import FHMM
from .ising import Ising
from .log_linear import LogLinear
from .net import MLP, ResidualNet, perceptron
from .posterior import Posterior, StochasticScore
from .potts import Potts
from .rbm import RBM

__all__ = ["FHMM", "MLP", "RBM", "Ising", "LogLinear", "Posterior", "Potts", "ResidualNet", "StochasticScore", "perceptron"]
