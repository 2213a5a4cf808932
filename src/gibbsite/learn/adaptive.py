"""A step size that follows the model: as the energy sharpens, the sampler's step shrinks with it."""

import math
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor

from ..check import function, instance, number
from ..model import Model
from ..random import Source
from ..sample.kernel import Kernel, check_kernel
from .chains import FromData, Persistent, Reservoir
from .contrastive import Drawn, Negatives
from .replay import Replay

Chains = FromData | Persistent | Reservoir | Replay


@final
class Adaptive(Negatives):
    """A source whose kernel is `make(eps)`: after each update log eps <- log eps + rate (acceptance - target).

    A fixed step loses its acceptance as the energy sharpens, the chains stand still, and the energy sharpens the more. The
    acceptance is that of the source's own kernel, which must therefore reject (MALA, HMC): an unadjusted one tells 1. The
    step is a buffer, so that it is saved; since it depends on the chains' past, each update keeps its target only as the
    changes become small.

    References: Andrieu and Thoms (2008), A tutorial on adaptive MCMC, algorithm 4; Roberts and Rosenthal (1998) for 0.574.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.distributions.Normal.diagonal(torch.zeros(2), 0.01)
        >>> chains = gb.learn.Persistent(gb.sample.MALA(1.0), torch.zeros(16, 2))
        >>> source = gb.learn.Adaptive(chains, gb.sample.MALA, start=1.0, rate=0.1)
        >>> generator = torch.Generator().manual_seed(0)
        >>> for _ in range(200):
        ...     _ = source.draw(model, None, seed=generator)
        >>> 0.003 < source.step_size < 0.03
        True
    """

    log_step: Tensor

    def __init__(
        self, source: Chains, make: Callable[[float], Kernel], *, start: float, target: float = 0.574, rate: float = 0.05
    ):
        super().__init__()
        instance(source, Negatives, "source")
        self.source: Chains = source
        self.make = make if isinstance(make, type) else function(make, "make", "lambda eps: MALA(eps)")
        self.target, self.rate = number(target, "target", above=0, below=1), number(rate, "rate", above=0)
        log_step = math.log(number(start, "start", above=0))
        self.register_buffer("log_step", torch.tensor(log_step, dtype=torch.float64))
        check_kernel(make(start), "make(...)")

    @property
    def step_size(self) -> float:
        """The step as it is now."""
        return math.exp(float(self.log_step))

    def draw(self, model: Model, data: Any, *, seed: Source) -> Drawn:
        self.source.kernel = self.make(self.step_size)
        drawn = self.source.draw(model, data, seed=seed)
        assert drawn.acceptance is not None
        self.log_step = self.log_step + self.rate * (drawn.acceptance.double().to(self.log_step.device) - self.target)
        return drawn
