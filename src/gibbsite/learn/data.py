"""Data as learning reads it: rows by number, so that a mini-batch can be drawn again after a restart."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from .. import random
from ..random import Source
from ..space import Space

_PROBED = 64  # rows that stand for all where these are read anew at each call


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
        if bare := [type(tensor).__name__ for tensor in tensors if not isinstance(tensor, Tensor) or not tensor.ndim]:
            raise TypeError(f"data: expected tensors with one example a row, got {', '.join(bare)}")
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
        return (random.uniform(grey.shape, source, grey.dtype).to(grey.device) < grey).to(torch.int8)


def as_data(data: Data | Tensor | Sequence[Tensor], space: Space | None = None) -> Data:
    """Data as it is, or made of a tensor or several; if a space is given, checked to be states of it."""
    if not isinstance(data, Data | Tensor | Sequence) or isinstance(data, str):
        raise TypeError(f"data: expected a tensor, several tensors or a gibbsite.learn.Data, got {type(data).__name__}")
    if space is None:
        return data if isinstance(data, Data) else Rows(*([data] if isinstance(data, Tensor) else data))
    if isinstance(data, Rows) and len(data.tensors) == 1:
        data = data.tensors[0]
    states = data if isinstance(data, Tensor) else probe(data) if isinstance(data, Data) else data
    if not isinstance(states, Tensor):
        raise TypeError(f"data: expected states of {space} alone, got {_told(states)}")
    shape = tuple(space.shape)
    if states.ndim != 1 + len(shape):
        raise ValueError(f"data: expected states of {space}, shape (examples, {', '.join(map(str, shape))}), "
                         f"got {tuple(states.shape)}")  # fmt: skip
    states = space.check(states, "data")
    return data if isinstance(data, Data) else Rows(states)


def _told(parts: Sequence[Any]) -> str:
    """What came in place of states."""
    if len(parts) and all(isinstance(part, Tensor) for part in parts):
        return f"{len(parts)} tensors; this objective takes no labels"
    kinds = ", ".join(sorted({type(part).__name__ for part in parts})) or "nothing"
    return f"a {type(parts).__name__} of {kinds}; make a tensor of it"


def probe(data: Data) -> Any:
    """Some rows, evenly spaced, the same ones each time."""
    if not len(data):
        raise ValueError("data: expected at least 1 example, got none")
    index = torch.linspace(0, len(data) - 1, min(len(data), _PROBED)).long()
    return data.rows(index, torch.Generator().manual_seed(0))


def digest(data: Data) -> str:
    """A short text that differs between data whose number, or whose probed rows, differ."""
    total = hashlib.blake2b(str(len(data)).encode(), digest_size=8)
    for tensor in _tensors(probe(data)):
        total.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def placed(rows: Any, device: torch.device) -> Any:
    """Rows on a device, through tuples, lists and mappings."""
    if isinstance(rows, Tensor):
        return rows.to(device)
    if isinstance(rows, Mapping):
        return {key: placed(value, device) for key, value in rows.items()}
    if type(rows) in (tuple, list):
        return type(rows)(placed(value, device) for value in rows)
    return rows


def _tensors(rows: Any) -> list[Tensor]:
    if isinstance(rows, Tensor):
        return [rows]
    parts = list(rows.values()) if isinstance(rows, Mapping) else rows if isinstance(rows, tuple | list) else []
    return [tensor for part in parts for tensor in _tensors(part)]
