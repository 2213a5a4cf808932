"""How the transcription vector f_t and the prediction vector g_t make the score of each label at a place."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor


class Potentials(ABC):
    """(f_t, g_t) -> the score of y_t = k given y_1 .. y_(t-1); a sequence's log-potential is the sum over its places."""

    @abstractmethod
    def __call__(self, f: Float[Tensor, "*batch K"], g: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch K"]:
        """The scores of all labels."""


@final
@dataclass(frozen=True)
class Local(Potentials):
    """log softmax(f + g): normalised at every place, so that a sequence's score is log p(y | x) of the RNN transducer.

    References: EBM-SLP, eq. 4.29.
    """

    def __call__(self, f: Tensor, g: Tensor) -> Tensor:
        return (f + g).log_softmax(-1)


@final
@dataclass(frozen=True)
class Sum(Potentials):
    """f + g: the first design of a CRF transducer (EBM-SLP, eq. 4.30)."""

    def __call__(self, f: Tensor, g: Tensor) -> Tensor:
        return f + g


@final
@dataclass(frozen=True)
class Separate(Potentials):
    """log softmax(f) + log softmax(g): the second design of a CRF transducer (EBM-SLP, eq. 4.31)."""

    def __call__(self, f: Tensor, g: Tensor) -> Tensor:
        return f.log_softmax(-1) + g.log_softmax(-1)
