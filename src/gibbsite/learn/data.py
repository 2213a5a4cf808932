"""Data as learning reads it: rows by number, so that a mini-batch can be drawn again after a restart."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from .. import random
from ..random import Source
from ..space import Space


class Data(ABC):
    """A finite set of examples."""

    @abstractmethod
    def __len__(self) -> int:
        """How many examples."""

    @abstractmethod
    def rows(self, index: Int[Tensor, " batch"], source: Source) -> Any:
        """The examples with these numbers; what is random in them (binarisation, noise) comes from the source."""


@final
class Rows(Data):
    """Tensors with one example a row, given together: a tensor alone, or several (states and labels, say)."""

    def __init__(self, *tensors: Shaped[Tensor, "examples ..."]):
        sizes = {len(tensor) for tensor in tensors}
        if len(sizes) != 1 or not min(sizes):
            raise ValueError(f"data: expected tensors of one length, at least 1, got lengths {sorted(sizes)}")
        for number, tensor in enumerate(tensors):
            if tensor.is_floating_point() and not tensor.isfinite().all():
                row = (~tensor.isfinite()).nonzero()[0].tolist()
                raise ValueError(
                    f"data: expected finite numbers, got {tensor[tuple(row)].item()} at {row} of tensor {number}"
                )
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def rows(self, index: Tensor, source: Source) -> Any:
        parts = tuple(tensor[index.to(tensor.device)] for tensor in self.tensors)
        return parts[0] if len(parts) == 1 else parts


@final
class Binarised(Data):
    """Bits drawn anew, with the grey values as probabilities, each time an example is read (Salakhutdinov, Murray 2008)."""

    def __init__(self, probabilities: Float[Tensor, "examples *event"]):
        if not probabilities.is_floating_point() or not bool(((probabilities >= 0) & (probabilities <= 1)).all()):
            raise ValueError(f"probabilities: expected floats in [0, 1], got {probabilities.dtype}, or numbers outside")
        self.probabilities = Rows(probabilities)

    def __len__(self) -> int:
        return len(self.probabilities)

    def rows(self, index: Tensor, source: Source) -> Tensor:
        grey = self.probabilities.rows(index, source)
        return (random.uniform(grey.shape, source, grey.dtype) < grey).to(torch.int8)


def as_data(data: Data | Tensor | Sequence[Tensor], space: Space | None = None) -> Data:
    """Data as it is, or made of a tensor (checked against the space) or of several tensors."""
    if isinstance(data, Data):
        return data
    if isinstance(data, Tensor):
        return Rows(data if space is None else space.check(data, "data"))
    if isinstance(data, Sequence) and data and all(isinstance(tensor, Tensor) for tensor in data):
        return Rows(*data)
    raise TypeError(f"data: expected a tensor, several tensors or a gibbsite.learn.Data, got {type(data).__name__}")
