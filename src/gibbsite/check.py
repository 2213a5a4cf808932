"""Checks that public entrances share: a thing of a kind, a function, a finite number, a float tensor of a shape."""

import math
import numbers
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def instance(value: object, kind: type[T], name: str, hint: str = "") -> T:
    """value, if it is a `kind`; a class given in place of its instance is named, and `hint` says what to do otherwise."""
    expected = f"{name}: expected a {kind.__module__.rpartition('.')[0] or kind.__module__}.{kind.__name__}"
    if isinstance(value, type):
        way_out = f"; write {value.__name__}()" if issubclass(value, kind) else ""
        raise TypeError(f"{expected}, got the class {value.__name__}{way_out}")
    if not isinstance(value, kind):
        raise TypeError(f"{expected}, got {type(value).__name__}{hint}")
    return value


def function(value: T, name: str, example: str) -> T:
    """value, if it can be called and is no class."""
    if isinstance(value, type) or not callable(value):
        got = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise TypeError(f"{name}: expected a function such as {example}, got {got}")
    return value


def number(
    value: object,
    name: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """value as a finite float within its bounds (above < value < below, least <= value <= most); no boolean, no string."""
    if isinstance(value, Tensor) and value.ndim == 0:
        value = value.item()
    sound = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not (sound and above < value < below and least <= value <= most):  # type: ignore[operator]
        raise ValueError(f"{name}: expected {_range(above, least, below, most)}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def _range(above: float, least: float, below: float, most: float) -> str:
    named = {(0, -math.inf): "a positive number", (-math.inf, 0): "a non-negative number"}
    bounds = {"above": above, "at least": least, "below": below, "at most": most}
    words = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if math.isfinite(bound))
    if math.isinf(below) and math.isinf(most) and (above, least) in named:
        return named[above, least]
    return f"a number {words}" if words else "a finite number"


def floats(
    value: object, name: str, shape: tuple[int | str, ...] | None = None, *, dtype: torch.dtype | None = None
) -> Tensor:
    """value as a tensor of finite floats; numbers in lists and arrays are taken too, an integer tensor is not.

    In `shape` a name stands for any size, the same one wherever it is repeated. Python's numbers become `dtype` (None:
    torch's default), at once, so that 0.1 is as close to it as that type can be.
    """
    expected = "finite floats" if shape is None else f"finite floats of shape {_text(shape)}"
    try:
        bare = isinstance(value, float | list | tuple)
        x = torch.as_tensor(value, dtype=dtype) if bare and dtype else torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name}: expected {expected}, got {type(value).__name__} {value!r}"[:300]) from None
    if not isinstance(value, Tensor) and not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool):
        x = x.to(torch.get_default_dtype())
    got = f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
    if not x.is_floating_point() or not _fits(tuple(x.shape), shape):
        raise ValueError(f"{name}: expected {expected}, got {got}")
    if not x.isfinite().all():
        bad = (~x.isfinite()).nonzero()[0].tolist()
        raise ValueError(f"{name}: expected {expected}, got {got} with {x[tuple(bad)].item()} at {bad}")
    return x


def _fits(sizes: tuple[int, ...], shape: tuple[int | str, ...] | None) -> bool:
    if shape is None or len(shape) != len(sizes):
        return shape is None
    known: dict[str, int] = {}
    return all(size == (known.setdefault(want, size) if isinstance(want, str) else want) for size, want in zip(sizes, shape))


def _text(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
