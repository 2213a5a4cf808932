"""The factorial hidden Markov model: the posterior of its binary chains given a real-valued series.

Legend: B batch, L times, K chains (factors), S = 2^K joint states of one time, m sites asked for.
"""

import math
from typing import Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .. import random
from ..check import floats, number
from ..model import Blocked, ClosedForm, Model
from ..random import Seed, Source
from ..space import Binary, whole

_LIMIT = 12  # chains whose joint states forward-backward enumerates


@final
class FHMM(Model, ClosedForm, Blocked):
    """U(x) = log p(x, y): K binary Markov chains x_tk that drive y_t ~ N(W.x_t + b, variance).

    p(x_1k = 1) = start_k, p(x_(t+1)k = x_tk) = stay_k. Z = p(y), and the model is the posterior p(x | y) on {0, 1}^(L x K).
    A transition is linear in each of its two bits and the likelihood is the same Gaussian, so U is a function of real x too.
    `weight` and `bias` are learned parameters. `truth` is the x that made the series, if `FHMM.random` made it.

    `BlockGibbs` draws one chain over all times given the others, exactly.

    References: Ghahramani and Jordan (1997), Factorial hidden Markov models; Grathwohl et al. (2021), appendix G, whose text
    has variance .5 while its released code uses a deviation of .5: the text is followed here.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.FHMM.random(length=5, factors=2, seed=0)
        >>> bool(torch.isclose(model.log_z(), gb.exact.log_z(model), rtol=1e-5))
        True
    """

    observations: Tensor
    variance: Tensor
    start: Tensor
    stay: Tensor
    truth: Tensor | None

    def __init__(
        self,
        observations: Float[Tensor, " L"],
        weight: Float[Tensor, " K"],
        bias: Tensor | float = 0.0,
        *,
        variance: float = 0.5,
        start: Tensor | float = 0.1,
        stay: Tensor | float = 0.95,
    ):
        super().__init__()
        observations, weight = floats(observations, "observations", ("times",)), floats(weight, "weight", ("factors",))
        if not len(observations) or not len(weight):
            raise ValueError(f"observations, weight: expected at least one each, got {len(observations)}, {len(weight)}")
        variance = number(variance, "variance", above=0)
        self.space = Binary((len(observations), len(weight)))
        self.weight = nn.Parameter(weight.detach().clone())
        self.bias = nn.Parameter(floats(bias, "bias", (), dtype=weight.dtype).detach().to(weight).clone())
        self.register_buffer("observations", observations.detach().to(weight).clone())
        self.register_buffer("variance", torch.tensor(variance, dtype=weight.dtype, device=weight.device))
        self.register_buffer("start", _probability("start", start, weight))
        self.register_buffer("stay", _probability("stay", stay, weight))
        self.register_buffer("truth", None, persistent=False)

    @classmethod
    def random(
        cls, length: int, factors: int, *, variance: float = 0.5, start: float = 0.1, stay: float = 0.95, seed: Seed
    ) -> Self:
        """W, b from N(0, 1), then x and y from the model; the drawn x is kept as `truth`."""
        length, factors = whole(length, "length"), whole(factors, "factors")
        variance, start = number(variance, "variance", above=0), number(start, "start", above=0, below=1)
        stay = number(stay, "stay", above=0, below=1)
        source, dtype = random.generator(seed), torch.get_default_dtype()
        weight, bias = random.normal((factors,), source, dtype), random.normal((), source, dtype)
        odds = torch.logit(torch.tensor([start, stay], dtype=dtype, device=weight.device))
        rows = [random.bernoulli(odds[0].expand(factors), source)]
        for _ in range(length - 1):
            rows.append(rows[-1] == random.bernoulli(odds[1].expand(factors), source))
        x = torch.stack(rows).to(torch.int8)
        y = x.to(dtype) @ weight + bias + variance**0.5 * random.normal((length,), source, dtype)
        model = cls(y, weight, bias, variance=variance, start=start, stay=stay)
        model.truth = x
        return model

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        z = self.space.embed(x, self.weight.dtype)
        first = z[..., 0, :] * self.start.log() + (1 - z[..., 0, :]) * torch.log1p(-self.start)
        here, after = z[..., :-1, :], z[..., 1:, :]
        same = here * after + (1 - here) * (1 - after)
        moves = same * self.stay.log() + (1 - same) * torch.log1p(-self.stay)
        return first.sum(-1) + moves.sum((-2, -1)) + self._log_normal(z @ self.weight + self.bias).sum(-1)

    def _log_normal(self, mean: Float[Tensor, "*batch L"]) -> Tensor:
        return -((self.observations - mean) ** 2) / (2 * self.variance) - 0.5 * torch.log(2 * math.pi * self.variance)

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Float[Tensor, "batch m 2"]:
        z = self.space.embed(x, self.weight.dtype)
        times, factors = self.space.shape
        if sites is None:
            rest = (self.observations - self.bias - z @ self.weight)[..., None] + z * self.weight
            log_odds = (self._prior_odds(z) + self._evidence(rest, self.weight)).flatten(1)
            value = z.flatten(1)
        else:
            time, factor, row = sites // factors, sites % factors, torch.arange(len(z), device=z.device)[:, None]
            value, weight = z[row, time, factor], self.weight[factor]
            rest = self.observations[time] - self.bias - z[row, time] @ self.weight + value * weight
            before, after = z[row, (time - 1).clamp(min=0), factor], z[row, (time + 1).clamp(max=times - 1), factor]
            stay = torch.logit(self.stay)[factor]
            prior = torch.where(time > 0, (2 * before - 1) * stay, torch.logit(self.start)[factor])
            prior = prior + torch.where(time + 1 < times, (2 * after - 1) * stay, 0)
            log_odds = prior + self._evidence(rest, weight)
        return (torch.arange(2, dtype=z.dtype, device=z.device) - value[..., None]) * log_odds[..., None]

    def _prior_odds(self, z: Float[Tensor, "B L K"]) -> Float[Tensor, "B L K"]:
        """log p(x_tk = 1 | the chain's other times) - log p(x_tk = 0 | ...)."""
        link = (2 * z - 1) * torch.logit(self.stay)
        first = torch.logit(self.start).expand(len(z), 1, -1)
        return torch.cat((first, link[:, :-1]), 1) + torch.cat((link[:, 1:], torch.zeros_like(first)), 1)

    def _evidence(self, rest: Tensor, weight: Tensor) -> Tensor:
        """log N(rest; weight, variance) - log N(rest; 0, variance): what y says for a bit, the others' part taken off y."""
        return weight * (rest - weight / 2) / self.variance

    @property
    def blocks(self) -> int:
        return self.space.shape[1]

    def draw_block(self, block: int, x: Tensor, source: Source, clamp: Tensor | None) -> Int[Tensor, "batch L K"]:
        held = None if clamp is None else clamp[:, block].to(x.device)
        if held is not None and held.all():
            return x
        z = self.space.embed(x, self.weight.dtype)
        weight = self.weight[block]
        rest = self.observations - self.bias - z @ self.weight + z[..., block] * weight
        evidence = self._evidence(rest, weight)
        seen = torch.stack((torch.zeros_like(evidence), evidence), -1)
        if held is not None:
            other = torch.arange(2, device=x.device) != x[..., block, None]
            seen = seen.masked_fill(other & held[:, None], -torch.inf)
        start = torch.stack((torch.log1p(-self.start[block]), self.start[block].log()))
        chain = _draw_chain(seen, start, self.stay[block], source)
        return torch.cat((x[..., :block], chain[..., None].to(x.dtype), x[..., block + 1 :]), -1)

    def _bits(self) -> Float[Tensor, "S K"]:
        factors = self.space.shape[1]
        if factors > _LIMIT:
            raise ValueError(
                f"FHMM: expected at most {_LIMIT} chains to sum 2^K joint states, got {factors}; sample instead"
            )
        code = torch.arange(2**factors, device=self.weight.device)[:, None]
        return (code >> torch.arange(factors - 1, -1, -1, device=code.device) & 1).double()

    def _log_emission(self, bits: Float[Tensor, "S K"]) -> Float[Tensor, "L S"]:
        mean = bits @ self.weight.double() + self.bias.double()
        variance = self.variance.double()
        square = (self.observations.double()[:, None] - mean) ** 2
        return -square / (2 * variance) - 0.5 * torch.log(2 * math.pi * variance)

    def _advance(self, message: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """log sum_s' p(s | s') exp(message_s'), chain after chain; p is symmetric, so this serves both directions."""
        stay, move = self.stay.double().log(), torch.log1p(-self.stay.double())
        for k in range(len(stay)):
            here = message.view(2**k, 2, -1)
            message = torch.logaddexp(here + stay[k], here.flip(1) + move[k]).flatten()
        return message

    def _filter(self, bits: Float[Tensor, "S K"]) -> list[Float[Tensor, " S"]]:
        """log p(x_t, y_1..t) at every t."""
        start, emission = self.start.double(), self._log_emission(bits)
        messages = [bits @ start.log() + (1 - bits) @ torch.log1p(-start) + emission[0]]
        for row in emission[1:]:
            messages.append(self._advance(messages[-1]) + row)
        return messages

    def log_z(self) -> Float[Tensor, ""]:
        """log Z = log p(y) by the forward recursion over 2^K joint states, in double precision; differentiable."""
        return self._filter(self._bits())[-1].logsumexp(0)

    def marginals(self) -> Float[Tensor, "L K"]:
        """p(x_tk = 1 | y) by forward-backward over 2^K joint states, in double precision."""
        bits = self._bits()
        forward, emission = self._filter(bits), self._log_emission(bits)
        backward = [torch.zeros_like(forward[0])]
        for row in emission[1:].flip(0):
            backward.append(self._advance(backward[-1] + row))
        return (torch.stack(forward) + torch.stack(backward[::-1])).softmax(-1) @ bits

    @torch.no_grad()
    def sample_exact(self, n: int, *, seed: Seed) -> Int[Tensor, "n L K"]:
        """n independent draws from p(x | y), by filtering forward and sampling backward."""
        n, source = whole(n, "n", 0), random.generator(seed, self.weight.device)
        bits = self._bits()
        stay, move = self.stay.double().log(), torch.log1p(-self.stay.double())
        forward = self._filter(bits)
        rows = [bits[random.categorical(forward[-1].expand(n, -1), source)]]
        for message in forward[-2::-1]:
            # log p(x_(t+1) | s) up to a constant in s: a chain counts stay - move where s agrees with x_(t+1)
            agreement = ((2 * rows[-1] - 1) * (stay - move)) @ bits.T
            rows.append(bits[random.categorical(message + agreement, source)])
        return torch.stack(rows[::-1], 1).to(torch.int8)


def _draw_chain(seen: Float[Tensor, "B L 2"], start: Tensor, stay: Tensor, source: Source) -> Int[Tensor, "B L"]:
    """Two-state chains drawn exactly given their evidence: filtered forward, sampled backward."""
    log_stay, log_move = stay.log(), torch.log1p(-stay)
    message = start + seen[:, 0]
    messages = [message]
    for row in seen[:, 1:].unbind(1):
        message = torch.logaddexp(message + log_stay, message.flip(-1) + log_move) + row
        message = message - message.logsumexp(-1, keepdim=True)
        messages.append(message)
    drawn = [random.categorical(message, source)]
    value = torch.arange(2, device=seen.device)
    for message in messages[-2::-1]:
        link = torch.where(value == drawn[-1][:, None], log_stay, log_move)
        drawn.append(random.categorical(message + link, source))
    return torch.stack(drawn[::-1], 1)


def _probability(name: str, value: Tensor | float, weight: Tensor) -> Float[Tensor, " K"]:
    p = floats(value, name, dtype=weight.dtype).to(weight)
    if tuple(p.shape) not in ((), weight.shape) or not bool(((p > 0) & (p < 1)).all()):
        raise ValueError(f"{name}: expected a probability in (0, 1), one or {len(weight)}, got {value}")
    return p.expand(len(weight)).clone()
