"""E-ARM: an autoregressive model learned as the energy-based model that the free constant of its softmax makes of it."""

from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import instance, number
from ..distributions import Autoregressive
from ..model import device_of, dtype_of
from ..random import Source
from ..space import whole
from .objective import Objective, Report


class Steps(NamedTuple):
    """What each place of sequences says: running is 1 up to the first eos, that one included."""

    running: Float[Tensor, "batch length"]
    context: Float[Tensor, "batch length"]  # log q of the last few tokens before the place
    token: Float[Tensor, "batch length"]  # the logit of the token there
    total: Float[Tensor, "batch length"]  # log sum exp of the logits there
    cross_entropy: Float[Tensor, "batch"]


def steps(model: Autoregressive, x: Int[Tensor, "batch length"], recent: int) -> Steps:
    """The parts of the loss, from one pass through the network."""
    logits = model.logits(x)
    running, total = model.running(x).to(logits.dtype), logits.logsumexp(-1)
    token = logits.gather(-1, x[..., None])[..., 0]
    log_q = running * (token - total)
    sums = nn.functional.pad(log_q.cumsum(1), (1, 0))  # of the tokens before place t, for t = 0, ..., length
    first = (torch.arange(x.shape[1], device=x.device) - recent).clamp(min=0)
    return Steps(running, sums[:, :-1] - sums[:, first], token, total, -sums[:, -1])


def log_mean_weight(samples: Steps) -> Float[Tensor, " length"]:
    """log E_q[running sum_k exp(logit_k)] at each place: the denominator of the weights, eq. 13."""
    masked = torch.where(samples.running > 0, samples.total.detach(), -torch.inf)
    return masked.logsumexp(0) - torch.tensor(float(len(masked)), dtype=masked.dtype).log()


def effective_share(samples: Steps) -> Float[Tensor, ""]:
    """1 / sum_j w_j^2 over the number of draws, at the place where it is least of those that some draw reaches.

    w_j are the weights there, made to sum to 1; a draw that has ended weighs nothing.
    """
    log_weight = torch.where(samples.running > 0, samples.total.detach(), -torch.inf)
    weight = log_weight[:, samples.running.any(0)].softmax(0)
    return (1 / weight.square().sum(0)).min() / len(weight)


def earm_of(data: Steps, samples: Steps, log_denominator: Float[Tensor, " length"]) -> Float[Tensor, ""]:
    """The loss, from what the data and draws of the model say."""
    weight = torch.where(samples.running > 0, (samples.total.detach() - log_denominator).exp(), 0.0)
    negative = (weight * (samples.context + samples.total)).mean(0)
    positive = (data.running * (data.context + data.token)).mean(0)
    return (data.running.mean(0) * negative - positive).sum()


def earm(
    model: Autoregressive,
    data: Int[Tensor, "batch length"],
    samples: Int[Tensor, "draws length"],
    *,
    recent: int = 2,
    log_denominator: Float[Tensor, " length"] | None = None,
) -> Float[Tensor, ""]:
    """A loss with the gradient of sum_k KL(data || p_k), p_k(x_k, x_<k) = q(x_<k) exp(logit of x_k) / Z_k, k from 1 on.

    Its negative phase weights draws of q itself by w(x_<k) = sum_k exp(logit) / E_q sum_k exp(logit); the mean over x_k is
    taken exactly, not of one draw. log q(x_<k) has a gradient through its last `recent` tokens only, so that early places
    do not weigh more than late ones. At each place only sequences that have not ended before it count. `log_denominator` is
    log E_q sum_k exp(logit) from elsewhere, None: from these draws. Only the gradient means something, not the value.

    References: Wang et al. (2022), Your autoregressive generative model can be better if you treat it as an energy-based
    one, eq. 4 and 12 to 16.
    """
    model, recent = instance(model, Autoregressive, "model"), whole(recent, "recent", 0)
    told = steps(model, model.space.check(data, "data"), recent), steps(model, model.space.check(samples, "samples"), recent)
    return earm_of(*told, log_mean_weight(told[1]) if log_denominator is None else log_denominator)


@final
class EARM(Objective):
    """Cross-entropy, and after `start` steps also `weight` times the E-ARM loss, with as many draws as there are data.

    The weights' denominator is a moving average over steps, `decay` of the last one and the rest of this batch's (0: this
    batch's alone), which lowers the bias of a ratio of two means of few draws.

    References: Wang et al. (2022), section 4; Belghazi et al. (2018), MINE, for the moving average.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Tokens(length=5, vocabulary=4, eos=0)
        >>> q = gb.distributions.Autoregressive(gb.distributions.LSTM(4, hidden=8, seed=0), space)
        >>> report = gb.learn.EARM(q, start=0)(q.sample(16, seed=1), seed=2)
        >>> sorted(report.metrics)
        ['cross_entropy', 'effective_share']
    """

    log_denominator: Tensor
    step: Tensor

    def __init__(self, model: Autoregressive, *, start: int = 0, weight: float = 1.0, recent: int = 2, decay: float = 0.9):
        super().__init__(instance(model, Autoregressive, "model").space)
        self.model = model
        self.start, self.recent = whole(start, "start", 0), whole(recent, "recent", 0)
        self.weight, self.decay = number(weight, "weight", least=0), number(decay, "decay", least=0, below=1)
        empty = torch.full((model.space.length,), -torch.inf, dtype=dtype_of(model), device=device_of(model))
        self.register_buffer("log_denominator", empty)
        self.register_buffer("step", torch.tensor(0))

    def forward(self, data: Int[Tensor, "batch length"], *, seed: Source) -> Report:
        data = self.model.space.check(data, "data")
        if not len(data):
            raise ValueError("data: expected at least one sequence, got none")
        told = steps(self.model, data, self.recent)
        entropy = told.cross_entropy.mean()
        now, self.step = int(self.step), self.step + 1
        if now < self.start or not self.weight:
            return Report(entropy, {"cross_entropy": entropy.detach()})
        drawn = steps(self.model, self.model.sample(len(data), seed=seed), self.recent)
        self._average(log_mean_weight(drawn), first=now == self.start)
        metrics = {"cross_entropy": entropy.detach(), "effective_share": effective_share(drawn)}
        return Report(entropy + self.weight * earm_of(told, drawn, self.log_denominator), metrics)

    def _average(self, batch: Float[Tensor, " length"], first: bool) -> None:
        """decay old + (1 - decay) batch, in logarithms."""
        decay = torch.tensor(0.0 if first else self.decay, dtype=batch.dtype, device=batch.device)
        self.log_denominator = torch.logaddexp(self.log_denominator + decay.log(), batch + torch.log1p(-decay))
