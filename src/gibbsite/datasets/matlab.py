"""One byte matrix of a MATLAB 5 file, read as data: enough for the files that data sets come in."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_BYTES, _COMPRESSED, _MATRIX = 2, 15, 14


def byte_matrix(raw: bytes, name: str) -> NDArray[np.uint8]:
    """The uint8 matrix called `name`, (rows, columns), of a little-endian MATLAB 5 file."""
    if len(raw) < 128 or raw[126:128] != b"IM":
        raise ValueError("expected a little-endian MATLAB 5 file")
    for kind, content in _elements(raw[128:]):
        if kind == _COMPRESSED:
            kind, content = next(_elements(zlib.decompress(content)))
        if kind != _MATRIX:
            continue
        _, (_, sizes), (_, label), (stored, values), *_ = [*_elements(content), (0, b"")]
        if label.decode("latin-1") != name:
            continue
        rows, columns = struct.unpack("<2i", sizes)
        if stored != _BYTES or len(values) != rows * columns:
            raise ValueError(f"expected {name} as {rows} x {columns} bytes, got {len(values)} of type {stored}")
        return np.frombuffer(values, np.uint8).reshape(columns, rows).T
    raise ValueError(f"expected a matrix called {name}")


def _elements(raw: bytes):
    """The (type, content) pairs that follow one another, each padded to a multiple of 8 bytes."""
    place = 0
    while place + 8 <= len(raw):
        kind, size = struct.unpack_from("<2I", raw, place)
        if kind >> 16:  # a small element: size and type share one word, the content the next
            yield kind & 0xFFFF, raw[place + 4 : place + 4 + (kind >> 16)]
            place += 8
            continue
        content = raw[place + 8 : place + 8 + size]
        if len(content) < size:
            raise ValueError("the file is cut short")
        yield kind, content
        place += 8 + size + (0 if kind == _COMPRESSED else -size % 8)
