"""Distributions over tokens that are read token by token: what decoding asks of a language model."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..random import Seed
from ..space import Categorical, Tokens, whole


class Stepwise(ABC):
    """Mixed into a distribution over Tokens whose states stand for prefixes: log q is the sum of what the steps cost.

    It says what one token costs without the row of all of them, as n-gram models can and networks (`Incremental`) cannot.
    """

    space: Tokens

    @abstractmethod
    def initial(self, n: int) -> Int[Tensor, " n"]:
        """The state of n sequences before their first token."""

    @abstractmethod
    def step(self, state: Int[Tensor, " n"], token: Int[Tensor, " n"]) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
        """The states after one token more, and log p(token | state)."""

    @abstractmethod
    def conditionals_at(self, state: Int[Tensor, " n"]) -> Float[Tensor, "n vocabulary"]:
        """log p(next token | state)."""

    def conditionals(self, prefix: Int[Tensor, "n t"]) -> Float[Tensor, "n vocabulary"]:
        """log p(next token | prefix), for prefixes of any length that no eos has ended."""
        if prefix.shape[-1]:
            prefix = Categorical(prefix.shape[-1], self.space.vocabulary).check(prefix, "prefix")
        state = self.initial(len(prefix))
        for token in prefix.unbind(1):
            state, _ = self.step(state, token)
        return self.conditionals_at(state)

    def sample(self, n: int, *, seed: Seed) -> Int[Tensor, "n length"]:
        """n draws, token by token."""
        state = self.initial(whole(n, "n", 0))
        source = random.generator(seed, state.device)
        x = torch.full((n, self.space.length), self.space.eos, device=state.device)
        running = torch.ones(n, dtype=torch.bool, device=state.device)
        for t in range(self.space.length):
            token = random.categorical(self.conditionals_at(state), source).to(x.device)
            x[:, t] = torch.where(running, token, self.space.eos)
            running = running & (token != self.space.eos)
            state, _ = self.step(state, token)
        return x
