"""Data sets that come as a zip file: the wanted members by name, whatever folder they lie in."""

import io
import re
import struct
import zipfile
from collections.abc import Callable, Mapping

_HEAD = struct.Struct("<II")


def members(wanted: re.Pattern[str]) -> Callable[[bytes], bytes]:
    """A decoder of zip files for `Source`: the members whose paths match, in the order of their names, the first groups."""

    def decode(raw: bytes) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as file:
                found = {match[1]: file.read(path) for path in file.namelist() if (match := wanted.search(path))}
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise ValueError(f"no zip file: {error}") from error
        return pack(found)

    return decode


def pack(files: Mapping[str, bytes]) -> bytes:
    """Files as one text of bytes, each behind the lengths of its name and its content."""
    parts = ((name.encode(), files[name]) for name in sorted(files))
    return b"".join(_HEAD.pack(len(name), len(content)) + name + content for name, content in parts)


def unpack(content: bytes) -> dict[str, bytes]:
    """The files that `pack` put together."""
    files, place = {}, 0
    while place < len(content):
        name, size = _HEAD.unpack_from(content, place)
        start = place + _HEAD.size + name
        files[content[start - name : start].decode()] = content[start : start + size]
        place = start + size
    return files
