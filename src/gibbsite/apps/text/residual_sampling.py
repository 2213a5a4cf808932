"""Draws of a residual model q(x) exp V(x) / Z: candidates from the language model q, of which one is kept by exp V."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ... import random
from ...algebra import Tilt
from ...check import instance
from ...distributions import Autoregressive
from ...model import device_of, evaluate
from ...random import Seed, Source
from ...space import whole
from .choice import Resampled


@final
@dataclass(frozen=True, eq=False)
class JointDraws:
    """Draws `x`; `ess` is the effective number of the candidates that each was kept from, `drawn` how many all had."""

    x: Int[Tensor, "draws length"]
    ess: Float[Tensor, " draws"]
    drawn: int


def residual(tilt: Tilt) -> Autoregressive:
    """The language model q of a residual model q(x) exp V(x), or an error where the tilt's base is none."""
    hint = "; such as gb.Tilt(lm.distribution, lambda x: ...)"
    return instance(instance(tilt, Tilt, "tilt", hint).base, Autoregressive, "tilt.base", "; such as lm.distribution")


@torch.no_grad()
def residual_sample(
    tilt: Tilt, draws: int = 1, *, n: int, seed: Seed, prefix: Sequence[int] | Tensor = (), batch: int = 256
) -> JointDraws:
    """`draws` independent sequences, each of its own n candidates: x_i ~ q with probability exp V(x_i) / sum_j exp V(x_j).

    Their law is near q exp V / Z as far as n and the ESS are large, and q itself for n = 1. Top-k joint sampling is this
    from a base that was `truncated`. With a prefix (ids) all begin with it, and V sees it too. Candidates come in blocks of
    about `batch`: what is held does not grow with n. `gb.sample.MH(gb.sample.Independent(q))` is the Markov chain of the
    same proposals, whose law is exact in the end.

    References: Deng et al. (2020), Residual energy-based models for text generation, algorithm 1.

    Example:
        >>> import gibbsite as gb
        >>> space = gb.Tokens(length=4, vocabulary=3, eos=0)
        >>> q = gb.distributions.Autoregressive(gb.distributions.LSTM(3, hidden=8, seed=0), space)
        >>> tilt = gb.Tilt(q.truncated(top_k=2), lambda x: 2.0 * (x == 1).float().sum(-1))
        >>> found = gb.text.residual_sample(tilt, 5, n=100, seed=0)
        >>> found.x.shape, found.drawn, bool((found.ess < 100).all())
        (torch.Size([5, 4]), 500, True)
    """
    base, draws, n, batch = residual(tilt), whole(draws, "draws"), whole(n, "n"), whole(batch, "batch")
    device = device_of(base)
    source, begun = random.generator(seed, device), torch.as_tensor(prefix, dtype=torch.long, device=device).reshape(1, -1)
    x, sizes = [], []
    for first in range(0, draws, batch):
        kept = _kept(tilt, base, begun.expand(min(batch, draws - first), -1), n, batch, source)
        x.append(kept.x)
        sizes.append(kept.ess)
    return JointDraws(torch.cat(x), torch.cat(sizes), draws * n)


def _kept(tilt: Tilt, base: Autoregressive, prefix: Int[Tensor, "rows t"], n: int, batch: int, source: Source) -> Resampled:
    """One of n candidates for each row, from blocks of at most `batch` in all."""
    kept, left, rows = Resampled(), n, len(prefix)
    while left:
        block = min(left, max(1, batch // rows))
        x = base.complete(prefix.repeat_interleave(block, 0), seed=source)
        kept.add(x.view(rows, block, -1), evaluate(tilt.potential, x).view(rows, block), source)
        left -= block
    if bool((kept.total == -math.inf).any()):
        raise ValueError(f"tilt: V is -inf at each of n={n} candidates, so that none can be kept; draw more")
    return kept
