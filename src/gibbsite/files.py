"""Files that are whole or not there, and values as JSON can hold them."""

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from torch import Tensor


class InUse(Exception):
    """Another process holds the lock; the text is its number."""


def lock(path: Path) -> IO[str]:
    """Takes a lock file for this process, until it is closed."""
    import fcntl

    while True:
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            file.close()
            raise InUse(owner) from error
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            break
        file.close()  # who had it before removed it
    with contextlib.suppress(OSError):  # the number is only for that message
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    return file


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when all of it is on the disk; until then, or if that fails, nothing changes."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
        _settle(path.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _settle(folder: Path) -> None:
    """Has the folder's names on the disk too, where the system can say so."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_unfinished(folder: Path, names: str) -> None:
    """Removes what was left by killed writers of the files that a pattern names."""
    for path in folder.glob(f".{names}.*"):
        path.unlink(missing_ok=True)


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Adds a value to a file of one JSON object a line, at once: all of it or, when the disk is full, nothing."""
    line = memoryview((json.dumps(plain(value), allow_nan=False) + "\n").encode())
    with path.open("ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[file.write(line) :]
        except BaseException:
            file.truncate(size)
            raise


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of such a file, without a last line that a crash cut off; a ValueError where it is something else."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    """Writes such a file anew."""
    with atomic(path) as file:
        file.write(as_lines(values))


def as_lines(values: Iterable[Mapping[str, Any]]) -> bytes:
    """The content of such a file."""
    return b"".join(json.dumps(plain(value), allow_nan=False).encode() + b"\n" for value in values)


def plain(value: Any) -> Any:
    """value as JSON can hold it: tensors as lists, tuples as lists, what is not finite as null."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
