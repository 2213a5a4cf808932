"""The normaliser as something learned: one number, or one a length."""

import math
from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from ..check import floats, instance, number
from ..space import Tokens


class LogZ(nn.Module, ABC):
    """What is taken off U(x) so that log p(x) = U(x) - log_z(x); learned beside U where it cannot be computed."""

    @abstractmethod
    def forward(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The normaliser at each state, or one for all."""


@final
class Constant(LogZ):
    """log_z(x) = zeta, one learned number (Gutmann and Hyvarinen, 2010).

    Example:
        >>> import torch, gibbsite as gb
        >>> gb.learn.Constant(2.0)(torch.zeros(3, 4)).tolist()
        2.0
    """

    def __init__(self, start: float = 0.0):
        super().__init__()
        self.zeta = nn.Parameter(torch.tensor(number(start, "start")))

    def forward(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.zeta


@final
class PerLength(LogZ):
    """log_z(x) = zeta_l - log pi_l, l the length of x, for random fields log p(l, x) = log pi_l + U(x) - zeta_l.

    pi are the probabilities of the lengths 0, ..., length of the space: they sum to 1, and a length that has none is
    impossible. One zeta is a matter of gauge where U has a constant to spare at every length (a weight a token is enough):
    zeta_1 stays what it is given as (`first`: 0, or log Z_1 by enumeration where U has none to spare). The others are
    learned, and start at first + (l - 1) log(vocabulary - 1), which is right where U is constant: eos is no token of a
    sequence, so that vocabulary - 1 are left. U should not read the eos.

    References: Wang, Ou and Tan (2018), Learning trans-dimensional random fields; EBM-SLP, section 3.2.2.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Tokens(length=2, vocabulary=3, eos=0)
        >>> log_z = gb.learn.PerLength(space, torch.tensor([0.0, 0.5, 0.5]))
        >>> every = gb.exact.states(space)                               # with U = 0 every word is as likely
        >>> round((-log_z(every)).exp().sum().item(), 3)
        2.0
    """

    log_pi: Tensor
    first: Tensor

    def __init__(self, space: Tokens, probabilities: Float[Tensor, " lengths"], *, first: float = 0.0):
        super().__init__()
        self.space = instance(space, Tokens, "space")
        pi = floats(probabilities, "probabilities", (space.length + 1,))
        if bool((pi < 0).any()) or abs(float(pi.double().sum()) - 1) > 1e-5:
            raise ValueError(
                f"probabilities: expected {space.length + 1} that sum to 1, one a length from 0 to {space.length}, "
                f"got {pi.tolist()}, which sum to {float(pi.double().sum()):g}"
            )
        steps = torch.arange(-1, space.length, dtype=pi.dtype)
        zeta = number(first, "first") + steps * math.log(space.vocabulary - 1)
        self.register_buffer("log_pi", (pi.double() / pi.double().sum()).log().to(pi.dtype))
        self.register_buffer("first", zeta[1].clone())
        self.zeta_0, self.zeta = nn.Parameter(zeta[:1].clone()), nn.Parameter(zeta[2:].clone())

    @classmethod
    def fit(cls, space: Tokens, data: Tensor, *, first: float = 0.0) -> "PerLength":
        """With the lengths' frequencies in data as their probabilities."""
        lengths = instance(space, Tokens, "space").lengths(space.check(data, "data"))
        if not len(lengths):
            raise ValueError("data: expected at least one sequence, got none")
        counts = torch.bincount(lengths.flatten(), minlength=space.length + 1)
        return cls(space, (counts.double() / counts.sum()).to(torch.get_default_dtype()), first=first)

    @property
    def by_length(self) -> Float[Tensor, " lengths"]:
        """zeta_0, ..., zeta_length."""
        return torch.cat((self.zeta_0, self.first[None], self.zeta))

    def forward(self, x: Shaped[Tensor, "*batch length"]) -> Float[Tensor, "*batch"]:
        return (self.by_length - self.log_pi)[self.space.lengths(x)]
