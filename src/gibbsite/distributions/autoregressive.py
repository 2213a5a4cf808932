"""Autoregressive distributions over token sequences, with one convention for their end."""

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .. import random
from ..check import instance
from ..model import Distribution, device_of
from ..random import Seed
from ..space import Tokens, whole


@final
class Autoregressive(Distribution):
    """log q(x) = sum_t log softmax(l(x_<t))[x_t], over the tokens up to the first eos, that one included.

    A sequence that fills the space's length ends there without an eos, and so what q gives all sequences sums to 1.
    `conditional` is a module that takes the tokens before each place, of which the first is the start, id `vocabulary`, to
    the logits of the token there: `NGramTable`, `LSTM`, or one's own.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Tokens(length=3, vocabulary=4, eos=0)
        >>> q = gb.distributions.Autoregressive(gb.distributions.LSTM(4, hidden=8, seed=0), space)
        >>> round(gb.exact.log_z(q).abs().item(), 5)
        0.0
        >>> q.sample(2, seed=0).shape
        torch.Size([2, 3])
    """

    def __init__(self, conditional: nn.Module, space: Tokens):
        super().__init__()
        self.conditional = instance(
            conditional, nn.Module, "conditional", "; such as gb.distributions.LSTM(vocabulary, seed=0)"
        )
        self.space: Tokens = instance(space, Tokens, "space")

    def logits(self, x: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """l(x_<t) at each place t; their constant is free: log q does not depend on it (E-ARM uses it)."""
        start = x.new_full((len(x), 1), self.space.vocabulary)
        return self._asked(torch.cat((start, x[:, :-1]), 1))

    def _asked(self, previous: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t vocabulary"]:
        logits, expected = self.conditional(previous), (*previous.shape, self.space.vocabulary)
        if logits.shape != expected:
            raise ValueError(f"conditional: expected logits of shape {expected}, got {tuple(logits.shape)}")
        return logits

    def running(self, x: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch length"]:
        """Whether no eos stands before each place: whether the token there was drawn."""
        ended = x == self.space.eos
        return ended.cumsum(1) - ended.long() == 0

    def forward(self, x: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch"]:
        batch = x.shape[:-1]
        x = self.space.check(x).reshape(-1, self.space.length)
        each = self.logits(x).log_softmax(-1).gather(-1, x[..., None])[..., 0]
        return torch.where(self.running(x), each, 0.0).sum(-1).reshape(batch)

    @torch.no_grad()
    def sample(self, n: int, *, seed: Seed) -> Int[Tensor, "n length"]:
        n, device = whole(n, "n", 0), device_of(self)
        source = random.generator(seed, device)
        previous = torch.full((n, 1), self.space.vocabulary, device=device)
        ended = torch.zeros(n, dtype=torch.bool, device=device)
        for _ in range(self.space.length):
            token = random.categorical(self._asked(previous)[:, -1], source).to(device)
            token = torch.where(ended, self.space.eos, token)
            previous, ended = torch.cat((previous, token[:, None]), 1), ended | (token == self.space.eos)
        return previous[:, 1:]
