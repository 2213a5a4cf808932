"""Kernels, proposals, combinators, adaptation."""

from . import adapt
from .anneal import anneal
from .balance import Balance, Barker, Maximum, Minimum, Power
from .clusters import SwendsenWang, Wolff
from .combine import Cycle, Followed, Mixture, Repeat
from .compiled import compiled
from .discrete_langevin import DiscreteLangevin
from .gibbs import BlockGibbs, Gibbs, GibbsSweep
from .hamming_ball import HammingBall
from .hmc import HMC, Leapfrog
from .independent import Independent, RandomFlips
from .informed import Informed
from .kernel import MH, Alias, Cost, Info, Kernel, Proposal, State, Unadjusted
from .ladder import tuned_ladder
from .langevin import MALA, Drift, Langevin, RandomWalk
from .nuts import NUTS
from .path_auxiliary import PathAuxiliary
from .relaxed import DiscreteSVGD, RelaxedHMC, RelaxedMALA
from .stochastic import SGHMC, SGLD, polynomial_decay
from .tempering import Tempering
from .trace import Trace, trace
from .window import InformedWindow
from .within_gibbs import WithinGibbs
