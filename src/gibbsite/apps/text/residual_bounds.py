"""What a residual model q(x) exp V(x) / Z gives texts: perplexity and step-wise probabilities, as intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ... import random
from ...algebra import Tilt
from ...distributions import Autoregressive
from ...estimate.bounds import Bounds, residual_bounds
from ...model import device_of, evaluate
from ...random import Seed, Source
from ...space import whole
from .residual_sampling import residual


@final
@dataclass(frozen=True)
class Perplexity:
    """lower <= perplexity <= upper, as far as the bounds of log Z hold: n draws a prefix, `ess` the least of their ESS."""

    lower: float
    upper: float
    ess: float
    n: int
    tokens: int

    def __str__(self) -> str:
        return (
            f"[{self.lower:.4f}, {self.upper:.4f}] over {self.tokens:,} tokens from n = {self.n:,} with ESS {self.ess:,.1f}"
        )


@final
@dataclass(frozen=True, eq=False)
class Steps:
    """Bounds of log p(x_t | x_<t) at each place t up to the first eos; `ess` is that of the n draws that followed x_<t.

    `lower` and `upper` are equal up to rounding, and `ess` is n, at the last place: what follows is enumerated there.
    """

    lower: Float[Tensor, " steps"]
    upper: Float[Tensor, " steps"]
    ess: Float[Tensor, " steps"]
    n: int


@torch.no_grad()
def residual_perplexity(
    tilt: Tilt, x: Int[Tensor, "sequences length"], n: int, *, seed: Seed, given: int = 0, batch: int = 256
) -> Perplexity:
    """exp(-sum log p(x_(>g) | x_(<=g)) / tokens), where log p = log q + V - log Z(x_(<=g)) and g = `given` tokens are known.

    log E_q[exp V(x) | x_(<=g)] lies between T_n and (2n - 1) T_n - 2 (n - 1) T_(n-1) (`gb.estimate.residual_bounds`) in the
    mean and for n large enough: look at the ESS. Each prefix that differs takes n draws of its own.

    References: Deng et al. (2020), Residual energy-based models for text generation, theorem 2.

    Example:
        >>> import torch, gibbsite as gb
        >>> q = gb.distributions.Autoregressive(gb.distributions.NGramTable(3), gb.Tokens(3, 3, eos=0))
        >>> tilt = gb.Tilt(q, lambda x: 0.5 * (x == 1).float().sum(-1))
        >>> print(gb.text.residual_perplexity(tilt, torch.tensor([[1, 1, 0], [1, 0, 0]]), 2000, seed=0))
        [..., ...] over 5 tokens from n = 2,000 with ESS ...
    """
    base, n, given, batch = residual(tilt), whole(n, "n", 2), whole(given, "given", 0), whole(batch, "batch")
    x = base.space.check(x).reshape(-1, base.space.length).to(device_of(base))
    if not len(x):
        raise ValueError("x: expected sequences, got none")
    source, drawn = random.generator(seed, device_of(base)), (base.space.lengths(x) + 1).clamp(max=base.space.length)
    prefixes, which = torch.unique(x[:, :given], dim=0, return_inverse=True) if given else (x[:1, :0], drawn * 0)
    tokens, low, high, least = int((drawn - given).sum()), 0.0, 0.0, math.inf
    for number, prefix in enumerate(prefixes):
        rows = x[which == number]
        bounds = log_z_after(tilt, prefix, n, source, batch)
        u = float((base.after(prefix.tolist())(rows[:, given:]).double() + _potential(tilt, rows, batch)).sum())
        low, high = low + u - len(rows) * bounds.upper, high + u - len(rows) * bounds.lower
        least = min(least, bounds.ess)
    return Perplexity(_exp(-high / tokens), _exp(-low / tokens), least, n, tokens)


@torch.no_grad()
def residual_steps(tilt: Tilt, x: Int[Tensor, " length"] | Sequence[int], n: int, *, seed: Seed, batch: int = 256) -> Steps:
    """log p(x_t | x_<t) = log q(x_t | x_<t) + log Z(x_<=t) - log Z(x_<t), Z(x_<=t) = E_q[exp V(x) | x_<=t]: one sequence's.

    Each Z is bounded by n draws of what follows, and opposite ends of the two bound the step. These ends are in the mean:
    each Z has an error of about sqrt(1 / ess - 1 / n) of its own, so that a step of near certainty may come out above 0.
    Where at most one token is free all of them are enumerated, so that the last place is exact.

    References: Deng et al. (2020), Residual energy-based models for text generation, equation 5.

    Example:
        >>> import torch, gibbsite as gb
        >>> q = gb.distributions.Autoregressive(gb.distributions.NGramTable(3), gb.Tokens(2, 3, eos=0))
        >>> steps = gb.text.residual_steps(gb.Tilt(q, lambda x: (x == 1).float().sum(-1)), [2, 1], 500, seed=0)
        >>> round(float(steps.lower[1].exp()), 4) == round(2.718281828 / (2 + 2.718281828), 4)
        True
    """
    base, n, batch = residual(tilt), whole(n, "n", 2), whole(batch, "batch")
    x = base.space.check(torch.as_tensor(x)).reshape(-1).to(device_of(base))
    if len(x) != base.space.length:
        raise ValueError(f"x: expected one sequence of length {base.space.length}, got {len(x)} tokens")
    source, steps = random.generator(seed, x.device), int(base.running(x[None]).sum())
    log_q = base.logits(x[None])[0, :steps].double().log_softmax(-1).gather(-1, x[:steps, None])[:, 0]
    found = [log_z_after(tilt, x[:place], n, source, batch) for place in range(steps + 1)]
    lower = log_q.new_tensor([after.lower - before.upper for before, after in pairwise(found)])
    upper = log_q.new_tensor([after.upper - before.lower for before, after in pairwise(found)])
    return Steps(log_q + lower, log_q + upper, log_q.new_tensor([bounds.ess for bounds in found[:-1]]), n)


def log_z_after(tilt: Tilt, prefix: Int[Tensor, " t"], n: int, source: Source, batch: int = 256) -> Bounds:
    """Bounds of log E_q[exp V(x) | x begins with the prefix] by n draws; exact where at most one token is free."""
    base, space = residual(tilt), residual(tilt).space
    if bool((prefix == space.eos).any()) or len(prefix) == space.length:
        whole_text = torch.cat((prefix, prefix.new_full((space.length - len(prefix),), space.eos)))
        return _exact(evaluate(tilt.potential, whole_text[None]), n)
    if len(prefix) == space.length - 1:
        return _exact(_enumerated(tilt, base, prefix, batch), n)
    log_w, left = [], n
    while left:
        x = base.complete(prefix.expand(min(left, batch), -1), seed=source)
        log_w.append(evaluate(tilt.potential, x).double())
        left -= len(x)
    return residual_bounds(torch.cat(log_w))


def _enumerated(tilt: Tilt, base: Autoregressive, prefix: Int[Tensor, " t"], batch: int) -> Float[Tensor, " vocabulary"]:
    """log q(k | prefix) + V(prefix, k) for each last token k."""
    last = torch.arange(base.space.vocabulary, device=prefix.device)[:, None]
    every = torch.cat((prefix.expand(len(last), -1), last), 1)
    log_q = base.logits(every[:1])[0, -1].double().log_softmax(-1)
    return log_q + _potential(tilt, every, batch)


def _potential(tilt: Tilt, x: Int[Tensor, "n length"], batch: int) -> Float[Tensor, " n"]:
    """V(x), `batch` rows at a time."""
    return torch.cat([evaluate(tilt.potential, part).double() for part in x.split(batch)])


def _exact(log_w: Float[Tensor, " terms"], n: int) -> Bounds:
    value = float(log_w.double().logsumexp(0))
    if value == -math.inf:
        raise ValueError("tilt: V is -inf for all that may follow a prefix, which then has probability 0")
    return Bounds(value, value, float(n), n)


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf
