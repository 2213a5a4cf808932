"""Files of data sets: found under $GIBBSITE_DATA or in a cache, else fetched, and always checked against a digest."""

import hashlib
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ..files import atomic

_TIMEOUT = 30.0


class DatasetError(Exception):
    """A data set that cannot be had: the file, where it was looked for, and what to do."""


@final
@dataclass(frozen=True)
class Source:
    """One file of a data set: `url` is where the public copy lies (empty: a file that the user brings), `folder` its place
    under $GIBBSITE_DATA or the cache.

    A file may come in several `forms`, file name -> decoder; `sha256` is the digest of what each decodes to, so that
    a copy compressed anew is still the same data.
    """

    folder: str
    url: str
    sha256: str
    forms: Mapping[str, Callable[[bytes], bytes]]

    def read(self) -> bytes:
        """The decoded content, from the first place that has it; fetched into the cache if none has."""
        for place in places():
            for form in self.forms:
                if (path := place / self.folder / form).is_file():
                    return self._decoded(path.read_bytes(), form, str(path), "remove it, and it is fetched anew")
        return self._fetch()

    def _decoded(self, raw: bytes, form: str, where: str, hint: str) -> bytes:
        try:
            content = self.forms[form](raw)
        except (ValueError, KeyError, EOFError, OSError, zlib.error) as error:
            raise DatasetError(f"{where}: cannot be read ({error}); {hint}") from error
        if (found := hashlib.sha256(content).hexdigest()) != self.sha256:
            raise DatasetError(f"{where}: expected content with SHA-256 {self.sha256}, got {found}; {hint}")
        return content

    def _fetch(self) -> bytes:
        form, folder = self.url.rsplit("/", 1)[-1], cache() / self.folder
        if not self.url:
            looked = ", ".join(str(place / self.folder) for place in places())
            names = " or ".join(self.forms)
            raise DatasetError(
                f"{names}: not found in {looked}; put a copy with SHA-256 {self.sha256} (decoded) into {folder}"
            )
        try:
            with urllib.request.urlopen(self.url, timeout=_TIMEOUT) as answer:
                raw = answer.read()
        except (OSError, urllib.error.URLError) as error:
            looked = ", ".join(str(place / self.folder) for place in places())
            raise DatasetError(
                f"{form}: not found in {looked}, and {self.url} cannot be fetched ({error}). Go online and run this again, "
                f"or put the file into {folder}, or set GIBBSITE_DATA to a directory that has {self.folder}/{form}"
            ) from error
        content = self._decoded(raw, form, self.url, f"put a good copy into {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        with atomic(folder / form) as file:
            file.write(raw)
        return content


def places() -> list[Path]:
    """Where files are looked for, in this order: $GIBBSITE_DATA if it is set, then the cache."""
    given = os.environ.get("GIBBSITE_DATA")
    return [Path(given), cache()] if given else [cache()]


def cache() -> Path:
    """Where fetched files are kept: $XDG_CACHE_HOME/gibbsite, or ~/.cache/gibbsite."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gibbsite"
