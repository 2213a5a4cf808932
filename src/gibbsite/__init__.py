"""gibbsite: energy-based models, p(x) = exp U(x) / Z, sampled exactly and normalised from both sides."""

from . import apps, datasets, diagnose, distributions, estimate, exact, learn, models, processes, sample
from .algebra import Geometric, Path, Product, Pullback, Tempered, Tilt
from .apps import text
from .estimate.ais import ais
from .estimate.bracket import bracket
from .estimate.estimate import Estimate
from .estimate.importance import importance
from .local import score, site_logits
from .model import Blocked, ClosedForm, ClosedScore, Composite, Distribution, Factorised, Ferromagnet, Model, Potential
from .sample.chain import Chain
from .sample.moments import Moments, moments
from .sample.run import run
from .space import Binary, Categorical, Discrete, Real, Space, Tokens
