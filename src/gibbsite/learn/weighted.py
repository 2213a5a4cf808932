"""Negatives that are draws of a proposal with importance weights: maximum likelihood without a chain."""

from typing import final

import torch
from torch import Tensor

from ..check import instance
from ..model import Distribution, Model, evaluate
from ..random import Source
from ..space import whole
from .contrastive import Drawn, Negatives


@final
class Weighted(Negatives):
    """x_j ~ q with weights w_j proportional to exp(U(x_j)) / q(x_j), normalised to sum to 1 (SNIS).

    With them the contrastive gradient is that of mean U(data) - log (1/n sum_j exp(U(x_j)) / q(x_j)), the likelihood with
    log Z estimated from the same draws; its bias falls as 1/n. Worth it where q is near the model: the effective sample
    size, 1 / sum_j w_j^2, is reported. q itself is not learned here.

    References: EBM-SLP, section 2.3.2, eq. 2.29 and 2.30; Bengio and Senecal (2008), Adaptive importance sampling to
    accelerate training of a neural probabilistic language model.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising.lattice(3, coupling=0.2)
        >>> source = gb.learn.Weighted(gb.distributions.Bernoulli(torch.zeros(9)), 64)
        >>> objective = gb.learn.Contrastive(model, source)
        >>> data = model.space.uniform().sample(8, seed=0)
        >>> sorted(objective(data, seed=torch.Generator().manual_seed(0)).metrics)
        ['ess', 'gap']
    """

    def __init__(self, proposal: Distribution, draws: int):
        super().__init__()
        self.proposal, self.draws = instance(proposal, Distribution, "proposal"), whole(draws, "draws")

    @torch.no_grad()
    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        if model.space != self.proposal.space:
            raise ValueError(f"proposal: expected a distribution on {model.space}, got one on {self.proposal.space}")
        x = self.proposal.sample(self.draws, seed=seed)
        log_weight = evaluate(model, x) - evaluate(self.proposal, x)
        if not bool((log_weight > -torch.inf).any()):
            raise ValueError("proposal: none of its draws is possible under the model; expected one that covers the model")
        return Drawn(x, log_weight)
