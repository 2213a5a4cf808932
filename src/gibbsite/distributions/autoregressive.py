"""Autoregressive distributions over token sequences, with one convention for their end."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .. import random
from ..check import instance
from ..model import Distribution, device_of, dtype_of
from ..random import Script, Seed, Source
from ..space import Categorical, Tokens, whole
from .continued import Continued
from .incremental import State, incremental
from .truncation import Truncated, Truncation

_AT_ONCE = {"cpu": 1 << 21}  # logits that are there at one time: about what caches hold
_ELSEWHERE = 1 << 27


@final
class Autoregressive(Distribution):
    """log q(x) = sum_t log softmax(l(x_<t))[x_t], over the tokens up to the first eos, that one included.

    A sequence that fills the space's length ends there without an eos, and so what q gives all sequences sums to 1.
    `conditional` is a module that takes the tokens before each place, of which the first is the start, id `vocabulary`, to
    the logits of the token there: `NGramTable`, `LSTM`, `Transformer`, or one's own. Draws read each token once where it is
    `Incremental`; a plain module is asked anew for all tokens so far.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Tokens(length=3, vocabulary=4, eos=0)
        >>> q = gb.distributions.Autoregressive(gb.distributions.LSTM(4, hidden=8, seed=0), space)
        >>> round(gb.exact.log_z(q).abs().item(), 5)
        0.0
        >>> q.sample(2, seed=0).shape
        torch.Size([2, 3])
        >>> likely = q.truncated(top_k=2).after([3])  # the law of the two tokens after a 3
        >>> round(gb.exact.log_z(likely).abs().item(), 5)
        0.0
    """

    def __init__(self, conditional: nn.Module, space: Tokens):
        super().__init__()
        self.conditional = instance(
            conditional, nn.Module, "conditional", "; such as gb.distributions.LSTM(vocabulary, seed=0)"
        )
        self.space: Tokens = instance(space, Tokens, "space")

    def truncated(
        self, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
    ) -> "Autoregressive":
        """The law of which each token is drawn by a `Truncation`; the weights are shared."""
        return Autoregressive(Truncated(self.conditional, Truncation(temperature, top_k, top_p)), self.space)

    def after(self, prefix: Int[Tensor, " t"] | Sequence[int]) -> "Autoregressive":
        """The law of what follows a prefix that no eos has ended; the weights are shared.

        q(prefix, x) = q(prefix) q.after(prefix)(x), where q(prefix) is the product of its tokens' conditionals.
        """
        prefix = self._prefixes(torch.as_tensor(prefix, dtype=torch.long).reshape(1, -1))[0]
        if not len(prefix):
            return self
        space = Tokens(self.space.length - len(prefix), self.space.vocabulary, self.space.eos)
        return Autoregressive(Continued(self.conditional, prefix, self.space.vocabulary), space)

    def logits(self, x: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """l(x_<t) at each place t; their constant is free: log q does not depend on it (E-ARM uses it)."""
        return self._read(x, None)

    def _read(self, x: Int[Tensor, "batch t"], source: Source | None) -> Float[Tensor, "batch t vocabulary"]:
        start = x.new_full((len(x), 1), self.space.vocabulary)
        return self._step(torch.cat((start, x[:, :-1]), 1), incremental(self.conditional).start(len(x)), source)[0]

    def _step(
        self, tokens: Int[Tensor, "batch t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "batch t vocabulary"], State]:
        logits, state = incremental(self.conditional).step(tokens, state, source)
        if logits.shape != (expected := (*tokens.shape, self.space.vocabulary)):
            raise ValueError(f"conditional: expected logits of shape {expected}, got {tuple(logits.shape)}")
        return logits, state

    def running(self, x: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch length"]:
        """Whether no eos stands before each place: whether the token there was drawn."""
        ended = x == self.space.eos
        return ended.cumsum(1) - ended.long() == 0

    def forward(self, x: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch"]:
        return self.log_q(x)

    def log_q(self, x: Int[Tensor, "*batch length"], *, source: Source | None = None) -> Float[Tensor, "*batch"]:
        """log q(x); with a source, as while learning: with components dropped by it where the conditional does so."""
        batch = x.shape[:-1]
        x = self.space.check(x).reshape(-1, self.space.length)
        drawn = (self.space.lengths(x) + 1).clamp(max=self.space.length)
        order = drawn.argsort(stable=True)  # rows of about one length together, so that little padding is read
        parts = [self._log_q(x[rows], drawn[rows], source) for rows in self._shares(order, drawn[order])]
        return (
            torch.cat(parts)[order.argsort()].reshape(batch)
            if parts
            else torch.zeros(batch, dtype=dtype_of(self), device=x.device)
        )

    def _log_q(self, x: Int[Tensor, "n length"], drawn: Int[Tensor, " n"], source: Source | None) -> Float[Tensor, " n"]:
        """log q of rows of which the first `drawn` tokens were drawn."""
        x = x[:, : int(drawn.max())]
        logits = self._read(x, source)
        fine = torch.promote_types(logits.dtype, torch.float32)
        each = logits.log_softmax(-1, dtype=fine).gather(-1, x[..., None])[..., 0]
        running = torch.arange(x.shape[1], device=x.device) < drawn[:, None]
        return torch.where(running, each, 0.0).sum(-1)

    def _shares(self, order: Int[Tensor, " n"], drawn: Int[Tensor, " n"]) -> list[Int[Tensor, " rows"]]:
        """The rows, from the shortest to the longest, in shares whose logits are at most `_AT_ONCE` numbers or one row's."""
        most, shares, first, lengths = self._at_once(), [], 0, drawn.tolist()
        for last in range(1, len(lengths) + 1):
            if last == len(lengths) or (last + 1 - first) * lengths[last] > most:
                shares.append(order[first:last])
                first = last
        return shares

    def sample(self, n: int, *, seed: Seed) -> Int[Tensor, "n length"]:
        return self.complete(torch.empty(whole(n, "n", 0), 0, dtype=torch.long), seed=seed)

    @torch.no_grad()
    def complete(self, prefix: Int[Tensor, "n t"], *, seed: Seed) -> Int[Tensor, "n length"]:
        """One draw of q for each row of `prefix`, given that it begins with that row: the prefix and what follows it."""
        prefix, device = self._prefixes(prefix), device_of(self)
        source = random.generator(seed, device)
        x = torch.full((len(prefix), self.space.length), self.space.eos, device=device)
        x[:, : prefix.shape[1]] = prefix
        start = prefix.new_full((len(prefix), 1), self.space.vocabulary)
        tokens, state = self._begun(torch.cat((start, prefix), 1))
        row, running = torch.arange(len(x), device=device), torch.ones(len(x), dtype=torch.bool, device=device)
        for place in range(prefix.shape[1], self.space.length):
            if not (left := int(running.sum())):
                break
            if 2 * left <= len(row) and not isinstance(source, Script):  # those that have ended leave the batch
                tokens, state, row, running = tokens[running], state.rows(running), row[running], running[running]
            logits, state = self._step(tokens, state)
            token = random.categorical(logits[:, -1], source).to(device)
            token = torch.where(running, token, self.space.eos)
            x[row, place], tokens, running = token, token[:, None], running & (token != self.space.eos)
        return x

    def _begun(self, tokens: Int[Tensor, "n t"]) -> tuple[Int[Tensor, "n 1"], State]:
        """The last of the tokens, and the state before it, read in pieces whose logits are at most `_AT_ONCE` numbers."""
        state = incremental(self.conditional).start(len(tokens))
        if tokens.shape[1] > 1 and len(tokens):
            most = max(1, self._at_once() // len(tokens))
            for piece in tokens[:, :-1].split(most, 1):
                state = self._step(piece, state)[1]
        return tokens[:, -1:], state

    def _at_once(self) -> int:
        """How many tokens are read at one time."""
        return max(1, _AT_ONCE.get(device_of(self).type, _ELSEWHERE) // self.space.vocabulary)

    def _prefixes(self, prefix: Int[Tensor, "n t"]) -> Int[Tensor, "n t"]:
        """Prefixes where the conditional is; an error unless they are ids, none of them eos, and leave a place free."""
        length = prefix.shape[-1]
        if not length < self.space.length:
            raise ValueError(f"prefix: expected fewer tokens than the space's length={self.space.length}, got {length}")
        if length and prefix.numel():
            prefix = Categorical(length, self.space.vocabulary).check(prefix, "prefix")
            if bool((prefix == self.space.eos).any()):
                raise ValueError(f"prefix: expected tokens other than eos={self.space.eos}, which ends a sequence")
        return prefix.to(device_of(self))
