"""Dynamic noise-contrastive estimation: the noise learns too, and some of it counts as data."""

from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from ..check import instance, number
from ..model import Distribution, Model, check_model
from ..random import Source
from .log_z import Constant, LogZ
from .nce import count, drawn, logits, loss_of
from .objective import Objective, Report


@final
class DynamicNCE(Objective):
    """NCE whose noise q is trained along, by its own likelihood only, and whose data are alpha p_data + (1 - alpha) q.

    Of q, (1 - alpha) / alpha draws for each example are added to the data, and nu / alpha are the noise (nu = `ratio`). The
    mixture has q's support, so that few data do not overfit; as q comes near the data a small ratio is enough.

    References: Wang and Ou (2018), Improved training of neural trans-dimensional random field language models with
    dynamic noise-contrastive estimation; EBM-SLP, eq. 2.48.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising.lattice(3, coupling=0.1)
        >>> data = model.space.uniform().sample(64, seed=0)
        >>> objective = gb.learn.DynamicNCE(model, gb.distributions.Bernoulli(torch.zeros(9)), alpha=0.5)
        >>> round(float(objective(data, seed=1).metrics["noise_loss"]), 2)       # 9 log 2
        6.24
    """

    def __init__(
        self, model: Model, noise: Distribution, ratio: float = 1.0, *, alpha: float = 0.5, log_z: LogZ | None = None
    ):
        super().__init__(check_model(model).space)
        self.model, self.noise, self.log_z = model, instance(noise, Distribution, "noise"), log_z or Constant()
        self.ratio, self.alpha = number(ratio, "ratio", above=0), number(alpha, "alpha", above=0, most=1)

    def forward(self, data: Shaped[Tensor, "batch *event"], *, seed: Source) -> Report:
        data = self.model.space.check(data, "data")
        extra = round((1 / self.alpha - 1) * len(data))
        draws = drawn(self.noise, extra + count(self.ratio / self.alpha, data), seed)
        mixed = torch.cat((data, draws[:extra].to(data.dtype)))
        told = loss_of(*logits(self.model, mixed, draws[extra:], noise=self.noise, log_z=self.log_z))
        own = -self.noise(data).mean()
        return Report(told.loss + own, {**told.metrics, "nce": told.loss.detach(), "noise_loss": own.detach()})
