"""Maximum likelihood: learning a distribution whose log-probability is known."""

from typing import final

from jaxtyping import Shaped
from torch import Tensor

from ..check import instance
from ..distributions import Autoregressive
from ..model import Distribution
from ..random import Source
from .objective import Objective, Report


@final
class MaximumLikelihood(Objective):
    """-mean log q(x), in nats an example.

    Components of an `Autoregressive` distribution's network are dropped by the seed where the network has a dropout.

    Example:
        >>> import torch, gibbsite as gb
        >>> q = gb.distributions.Autoregressive(gb.distributions.NGramTable(3), gb.Tokens(4, 3, eos=0))
        >>> report = gb.learn.MaximumLikelihood(q)(torch.tensor([[1, 2, 0, 0], [2, 1, 1, 1]]), seed=0)
        >>> round(report.loss.item(), 4)  # 7 tokens of log 3 each, in 2 sequences
        3.8451
    """

    def __init__(self, model: Distribution):
        super().__init__(instance(model, Distribution, "model").space)
        self.model = model

    def forward(self, data: Shaped[Tensor, "batch *event"], *, seed: Source) -> Report:
        data = self.model.space.check(data, "data")
        if not len(data):
            raise ValueError("data: expected at least one example, got none")
        log_q = self.model.log_q(data, source=seed) if isinstance(self.model, Autoregressive) else self.model(data)
        loss = -log_q.mean()
        return Report(loss, {"nats": loss.detach()})
