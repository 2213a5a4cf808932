"""What run this is, as text: a checkpoint keeps it, so that another run never goes on from it by mistake."""

import hashlib
import re
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .snapshot import CheckpointError

_LONG = 200  # texts that are longer are kept as a digest


def settings(module: nn.Module) -> dict[str, str]:
    """The kinds of all modules inside, and their numbers, texts and configurations: `negatives.steps`, `model.space`, ..."""
    found = {}
    for name, part in module.named_modules():
        prefix = f"{name}." if name else ""
        found[f"{prefix}kind"] = type(part).__name__
        for key, value in vars(part).items():
            plain = isinstance(value, bool | int | float | str) or (is_dataclass(value) and not isinstance(value, type))
            if plain and not key.startswith("_") and key != "training":
                found[prefix + key] = _text(value)
    return found


def of_optimiser(optimiser: torch.optim.Optimizer) -> dict[str, str]:
    """Its kind and the numbers of its groups."""
    found = {"optimiser": type(optimiser).__name__}
    for number, group in enumerate(optimiser.param_groups):
        for key, value in group.items():
            if key != "params":
                found[f"optimiser.{number}.{key}"] = _text(float(value) if isinstance(value, Tensor) else value)
    return found


def of_function(function: Any) -> str:
    """A configuration's own text, or a function's name: what it does cannot be compared."""
    if function is None or isinstance(function, int | float) or is_dataclass(function):
        return _text(function)
    return getattr(function, "__qualname__", type(function).__qualname__)


def check(own: dict[str, str], given: dict[str, str]) -> None:
    """An error that names the first difference; a setting that one of the two does not know is none."""
    for key in own:
        if own[key] != given.get(key, own[key]):
            raise CheckpointError(
                f"{key}: the checkpoint is of another run: expected {own[key]}, it has {given[key]}; run as before, or "
                "choose another directory"
            )


def _text(value: Any) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return text if len(text) <= _LONG else f"{text[:_LONG]}... {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
