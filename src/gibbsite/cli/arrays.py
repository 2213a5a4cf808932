"""States in NumPy's files: read and checked against a space, and written whole where nothing is yet."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..files import atomic
from ..model import Model, dtype_of
from ..space import Real
from .words import UsageError

_KEY = "x"
_SUFFIXES = (".npy", ".npz")


def read_states(path: Path, model: Model) -> Tensor:
    """The states (n, *event) in a .npy file, or in a .npz file under the name x or as its only array."""
    try:
        x = torch.from_numpy(_plain(_array(path), path))
        if isinstance(model.space, Real):
            x = x.to(dtype_of(model))
        x = model.space.check(x, str(path))
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    if x.ndim != 1 + len(model.space.shape) or not len(x):
        sizes = ", ".join(map(str, ("n", *model.space.shape)))
        raise UsageError(f"{path}: expected an array ({sizes}) of at least 1 state, got {tuple(x.shape)}")
    return x


def _array(path: Path) -> np.ndarray:
    if path.suffix not in _SUFFIXES:
        raise UsageError(f"{path}: expected a .npy or .npz file, as numpy.save and numpy.savez write them")
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            if _KEY not in found and len(found.files) != 1:
                held = ", ".join(found.files) or "nothing"
                raise UsageError(f"{path}: expected an array named {_KEY}, or one alone; it holds {held}")
            return found[_KEY if _KEY in found else found.files[0]]
    except (ValueError, EOFError, zipfile.BadZipFile, OSError) as error:
        raise UsageError(f"{path}: cannot be read as numbers ({error})") from error


def _plain(array: np.ndarray, path: Path) -> np.ndarray:
    """The array in a type that torch has: integers as int64, floats as float64."""
    kinds = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}
    if array.dtype.kind not in kinds:
        raise UsageError(f"{path}: expected numbers, got {array.dtype}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise UsageError(f"{path}: expected integers below 2^63, got {array.max()}")
    return np.ascontiguousarray(array, dtype=kinds[array.dtype.kind])


def check_new(path: Path) -> Path:
    """A .npy or .npz file that does not exist yet, in a directory that does."""
    if path.suffix not in _SUFFIXES:
        raise UsageError(f"--out {path}: expected a name that ends in .npz or .npy")
    if path.exists():
        raise UsageError(f"--out {path}: exists, and is not overwritten; choose another")
    if not path.parent.is_dir():
        raise UsageError(f"--out {path}: the directory {path.parent} does not exist")
    return path


def write_arrays(path: Path, arrays: Mapping[str, Tensor]) -> None:
    """All arrays by name in a .npz file, or the first alone in a .npy file."""
    content, plain = io.BytesIO(), {name: array.detach().cpu().numpy() for name, array in arrays.items()}
    if path.suffix == ".npz":
        np.savez_compressed(content, **plain)  # pyright: ignore[reportArgumentType]
    else:
        np.save(content, next(iter(plain.values())), allow_pickle=False)
    with atomic(path) as file:
        file.write(content.getvalue())
