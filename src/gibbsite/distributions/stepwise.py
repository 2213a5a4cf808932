"""What decoding asks of a language model: to be read token by token, many sequences at once."""

from abc import ABC, abstractmethod

from jaxtyping import Float, Int
from torch import Tensor

from ..space import Tokens


class Stepwise(ABC):
    """Mixed into a distribution over Tokens whose states stand for prefixes: log q is the sum of what the steps cost."""

    space: Tokens

    @abstractmethod
    def initial(self, n: int) -> Int[Tensor, " n"]:
        """The state of n sequences before their first token."""

    @abstractmethod
    def step(self, state: Int[Tensor, " n"], token: Int[Tensor, " n"]) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
        """The states after one token more, and log p(token | state)."""
