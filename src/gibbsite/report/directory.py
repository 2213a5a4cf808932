"""A run's directory: config.json, metrics.jsonl, samples/, report.html; nothing already written is lost or overwritten."""

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self, final

from torch import Tensor

Result = dict[str, Any]
_CONFIG, _METRICS, _SAMPLES, _REPORT = "config.json", "metrics.jsonl", "samples", "report.html"


class RunDirectoryError(Exception):
    """A run directory that cannot be used, and what to do."""


@final
class RunDirectory:
    """What one run leaves on disk.

    config.json says what was run; metrics.jsonl holds one result a line, written as soon as it is known; samples/ holds
    tensors as safetensors; report.html is made of the other three, and can be made again. Whole files are written beside
    their place and then renamed, so that a full disk or a killed run never leaves half a file.

    Example:
        >>> import tempfile, pathlib
        >>> from gibbsite.report import RunDirectory
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = RunDirectory.create(pathlib.Path(folder) / "first", {"recipe": "none"})
        ...     run.record({"ess": 12.5})
        ...     run.results()
        [{'ess': 12.5}]
    """

    def __init__(self, path: Path):
        self.path = path

    @classmethod
    def create(cls, path: Path, config: Mapping[str, Any]) -> Self:
        """A new run in `path`, which must be empty or not exist yet."""
        try:
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise RunDirectoryError(_occupied(path))
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise RunDirectoryError(f"{path}: this directory cannot be made ({error.strerror}); choose another") from error
        directory = cls(path)
        with _atomic(path / _CONFIG) as file:
            file.write(json.dumps(_plain(config), indent=2).encode() + b"\n")
        return directory

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run that `path` holds."""
        if not (path / _CONFIG).is_file():
            raise RunDirectoryError(f"{path}: expected a run directory with {_CONFIG}; `gibbsite run` makes one")
        return cls(path)

    @classmethod
    def clear(cls, path: Path, recipe: str) -> None:
        """Removes an earlier run of `recipe` from `path`, and only what a run writes; else an error."""
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return
        if not (path / _CONFIG).is_file() or cls(path).config().get("recipe") != recipe:
            raise RunDirectoryError(
                f"{path}: expected an earlier run of {recipe}; it holds something else and is left as it is"
            )
        for file in [*(path / _SAMPLES).glob("*.safetensors"), path / _METRICS, path / _REPORT, path / _CONFIG]:
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (path / _SAMPLES).rmdir()

    @property
    def report_path(self) -> Path:
        """Where the report is written."""
        return self.path / _REPORT

    def config(self) -> dict[str, Any]:
        """What config.json holds."""
        try:
            config = json.loads((self.path / _CONFIG).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunDirectoryError(f"{self.path / _CONFIG}: expected JSON ({error})") from error
        if not isinstance(config, dict):
            raise RunDirectoryError(f"{self.path / _CONFIG}: expected a JSON object, got {type(config).__name__}")
        return config

    def record(self, result: Result) -> None:
        """Appends one result, at once; a number that is not finite is kept as null."""
        with (self.path / _METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(_plain(result), allow_nan=False) + "\n")

    def results(self) -> list[Result]:
        """Every result, in order; a last line cut off by a crash is left out."""
        path = self.path / _METRICS
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        try:
            return [json.loads(line) for line in whole]
        except ValueError as error:
            raise RunDirectoryError(f"{path}: expected one JSON object a line ({error})") from error

    def save_samples(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Writes samples/<name>.safetensors."""
        from safetensors.torch import save

        (self.path / _SAMPLES).mkdir(exist_ok=True)
        with _atomic(self.path / _SAMPLES / f"{name}.safetensors") as file:
            file.write(save({key: value.detach().cpu().contiguous() for key, value in tensors.items()}))

    def samples(self, name: str) -> dict[str, Tensor]:
        """The tensors of samples/<name>.safetensors, or none if the run did not get that far."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        path = self.path / _SAMPLES / f"{name}.safetensors"
        if not path.exists():
            return {}
        try:
            return load(path.read_bytes())
        except SafetensorError as error:
            raise RunDirectoryError(f"{path}: expected a safetensors file ({error})") from error

    def write_report(self, html: str) -> Path:
        """Writes report.html and returns its path."""
        with _atomic(self.report_path) as file:
            file.write(html.encode())
        return self.report_path


def next_directory(parent: Path, recipe: str) -> Path:
    """The first of parent/recipe-1, parent/recipe-2, ... that does not exist."""
    number = 1
    while (parent / f"{recipe}-{number}").exists():
        number += 1
    return parent / f"{recipe}-{number}"


def _occupied(path: Path) -> str:
    if not path.is_dir():
        return f"{path}: expected a directory to write the run to, got a file; choose another --out"
    holds = "files that are no run of gibbsite"
    if (path / _CONFIG).is_file():
        holds = f"a run of {RunDirectory(path).config().get('recipe', 'another recipe')}"
    return f"{path}: holds {holds}, which is not overwritten: choose another --out, or --replace a run of the same recipe"


@contextlib.contextmanager
def _atomic(path: Path) -> Iterator[IO[bytes]]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _plain(value: Any) -> Any:
    """value as JSON can hold it: tensors as lists, tuples as lists, what is not finite as null."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
