"""n-gram language models with backoff, as distributions over token sequences."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._fast import ngram as loops
from ..check import instance
from ..model import Distribution
from ..space import Tokens
from .backoff import Backoff
from .stepwise import Stepwise


@final
class NGram(Stepwise, Distribution):
    """log q(x) = sum_t log p(x_t | the last tokens before it), over the tokens up to the first eos, that one included.

    The ends of sequences are those of `Autoregressive`. For a context h and a token w that the model lists together p is
    listed too; else log p(w | h) = log b(h) + log p(w | h without its oldest token), so that scores are those of the ARPA
    file that `write_arpa` writes. Made by `kneser_ney` or `read_arpa`.

    A model is an automaton whose states are contexts: `initial`, `step` and `conditionals_at` walk over it, token by token.
    Scores on a CPU are taken in a compiled loop.

    References: Katz (1987), Estimation of probabilities from sparse data for the language model component of a speech
        recognizer; Heafield (2011), KenLM: faster and smaller language model queries.

    Example:
        >>> import torch, gibbsite as gb
        >>> x = torch.tensor([[1, 2, 1, 0], [1, 2, 2, 0], [1, 0, 0, 0]])
        >>> model = gb.distributions.kneser_ney(x, gb.Tokens(length=4, vocabulary=3, eos=0), order=3)
        >>> model(x).shape
        torch.Size([3])
        >>> model.sample(2, seed=0).shape
        torch.Size([2, 4])
    """

    key: Tensor
    log_p: Tensor
    target: Tensor
    log_backoff: Tensor
    fallback: Tensor
    parent: Tensor
    label: Tensor
    start: Tensor

    def __init__(self, backoff: Backoff, space: Tokens):
        super().__init__()
        self.space: Tokens = instance(space, Tokens, "space")
        backoff = instance(backoff, Backoff, "backoff", "; make models by kneser_ney or read_arpa")
        for name, tensor in backoff._asdict().items():
            self.register_buffer(name, tensor)
        self.order = _longest(self.parent) + 1
        self._kept: tuple[Tensor, int, tuple[Tensor, Tensor]] | None = None

    @property
    def states(self) -> int:
        """How many contexts the automaton has."""
        return len(self.fallback)

    def of_length(self, length: int) -> "NGram":
        """The same model, its tensors shared, over sequences of at most `length` tokens."""
        parts = Backoff(*[self.get_buffer(name) for name in Backoff._fields])
        return NGram(parts, Tokens(length, self.space.vocabulary, self.space.eos))

    def forward(self, x: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch"]:
        batch = x.shape[:-1]
        x = self.space.check(x).reshape(-1, self.space.length)
        score = self._by_loop if x.device.type == "cpu" else self._by_steps
        return score(x).reshape(batch)

    def _by_loop(self, x: Int[Tensor, "batch length"]) -> Float[Tensor, " batch"]:
        out = torch.zeros(len(x), dtype=self.log_p.dtype)
        tensors = (*self._tables(), out)
        loops.walk(x.numpy(), self.space.eos, int(self.start), *(tensor.numpy() for tensor in tensors))
        return out

    def _arcs(self) -> tuple[Int[Tensor, " states+1"], Int[Tensor, " arcs"]]:
        """Where the arcs of each state begin and what they read, kept until the keys change."""
        if self._kept is None or self._kept[0] is not self.key or self._kept[1] != self.key._version:
            states = torch.arange(self.states + 1, device=self.key.device)
            arcs = torch.searchsorted(self.key, states * self.space.vocabulary), (self.key % self.space.vocabulary).int()
            self._kept = (self.key, self.key._version, arcs)
        return self._kept[2]

    def _tables(self) -> tuple[Tensor, ...]:
        """What a loop reads."""
        return (*self._arcs(), self.log_p, self.target, self.log_backoff, self.fallback)

    def _by_steps(self, x: Int[Tensor, "batch length"]) -> Float[Tensor, " batch"]:
        state, total = self.initial(len(x)), self.log_p.new_zeros(len(x))
        running = torch.ones(len(x), dtype=torch.bool, device=x.device)
        for token in x.unbind(1):
            state, log_p = self._search(state, token)
            total = torch.where(running, total + log_p, total)
            running = running & (token != self.space.eos)
        return total

    def initial(self, n: int) -> Int[Tensor, " n"]:
        return self.start.expand(n)

    def step(self, state: Int[Tensor, " n"], token: Int[Tensor, " n"]) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
        if state.device.type == "cpu":
            target, log_p = torch.empty_like(state), self.log_p.new_empty(len(state))
            tensors = (state, token, *self._tables(), target, log_p)
            loops.step(*(tensor.numpy() for tensor in tensors))
            return target, log_p
        return self._search(state, token)

    def _search(self, state: Int[Tensor, " n"], token: Int[Tensor, " n"]) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
        """`step` on any device: as many searches as a token may need, for all of them."""
        log_p = self.log_p.new_zeros(len(state))
        for _ in range(self.order):
            wanted = state * self.space.vocabulary + token
            arc = torch.searchsorted(self.key, wanted).clamp(max=len(self.key) - 1)
            missing = self.key[arc] != wanted
            log_p = torch.where(missing, log_p + self.log_backoff[state], log_p)
            state = torch.where(missing, self.fallback[state].long(), state)
        return self.target[arc].long(), log_p + self.log_p[arc]

    def conditionals_at(self, state: Int[Tensor, " n"]) -> Float[Tensor, "n vocabulary"]:
        """log p(next token | state): the unigrams', then what each longer context lists over what it backs off to."""
        chain = [state]
        while len(chain) < self.order:
            chain.append(self.fallback[chain[-1]].long())
        first, word = self._arcs()
        table = self.log_p[: self.space.vocabulary].repeat(len(state), 1)
        for context in chain[::-1]:
            table += self.log_backoff[context][:, None]
            count = first[context + 1] - first[context]
            row = torch.repeat_interleave(torch.arange(len(state), device=count.device), count)
            arc = torch.arange(len(row), device=count.device) + (first[context] - count.cumsum(0) + count)[row]
            table[row, word[arc].long()] = self.log_p[arc]
        return table


def _longest(parent: Tensor) -> int:
    """How many labels the longest context has: how often one can go from a state to its parent."""
    depth, state = 0, parent
    while bool((state >= 0).any()):
        depth, state = depth + 1, torch.where(state >= 0, parent[state.clamp(min=0)], state)
    return depth
