"""A run's directory: config.json, metrics.jsonl, samples/, report.html; nothing already written is lost or overwritten."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, TypeVar, final

from torch import Tensor, nn

from ..estimate import Estimate
from ..files import InUse, append_line, atomic, lock, plain, read_lines, write_lines
from ..learn import identity, sealed
from ..learn.snapshot import Snapshot, check_tensors, into_tensors, of_module
from ..sample.kernel import Cost

Result = dict[str, Any]
Module = TypeVar("Module", bound=nn.Module)
_CONFIG, _METRICS, _SAMPLES, _REPORT = "config.json", "metrics.jsonl", "samples", "report.html"
_MODEL, _CHECKPOINT, _LOG_Z, _LOCK = "model.safetensors", "checkpoint", "log_z.json", ".lock"
_WRITTEN = (  # patterns of what a run, and the commands on it, write
    _CONFIG, _METRICS, _REPORT, _MODEL, _LOG_Z, f"{_CHECKPOINT}/step-*.safetensors", f"{_CHECKPOINT}/.lock*",
    "best.safetensors", "first/best.safetensors", "first/metrics.jsonl", "first/checkpoint/step-*.safetensors",
    "first/checkpoint/.lock*", f"{_SAMPLES}/*.safetensors", f"{_SAMPLES}/drawn-*.npz", f"{_SAMPLES}/drawn-*.png",
)  # fmt: skip


class RunDirectoryError(Exception):
    """A run directory that cannot be used, and what to do."""


@final
class RunDirectory:
    """What one run leaves on disk.

    config.json says what was run; metrics.jsonl holds one result a line, written as soon as it is known; samples/ holds
    tensors as safetensors; checkpoint/ what an interrupted training goes on from, model.safetensors the trained model;
    report.html is made of the others, and can be made again. Whole files are written beside their place and then renamed,
    so that a full disk or a killed run never leaves half a file.

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
            if path.exists() and (not path.is_dir() or _holds(path)):
                raise RunDirectoryError(_occupied(path))
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise RunDirectoryError(f"{path}: this directory cannot be made ({error.strerror}); choose another") from error
        directory = cls(path)
        with atomic(path / _CONFIG) as file:
            file.write(json.dumps(plain(config), indent=2).encode() + b"\n")
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
        if not path.exists() or (path.is_dir() and not _holds(path)):
            return
        if not (path / _CONFIG).is_file() or cls(path).config().get("recipe") != recipe:
            raise RunDirectoryError(
                f"{path}: expected an earlier run of {recipe}; it holds something else and is left as it is"
            )
        unfinished = [str(Path(pattern).with_name(f".{Path(pattern).name}.*")) for pattern in _WRITTEN]
        written = {inside for pattern in [*_WRITTEN, *unfinished] for inside in path.glob(pattern)}
        files = {inside for inside in path.rglob("*") if not inside.is_dir()}
        if foreign := sorted(str(inside.relative_to(path)) for inside in files - written - {path / _LOCK}):
            raise RunDirectoryError(f"{path}: holds files that no run wrote ({', '.join(foreign[:3])}); it is left as it is")
        for file in written:
            file.unlink(missing_ok=True)
        for folder in (path / _SAMPLES, path / _CHECKPOINT, path / "first" / _CHECKPOINT, path / "first"):
            with contextlib.suppress(OSError):
                folder.rmdir()

    @classmethod
    @contextlib.contextmanager
    def held(cls, path: Path) -> Iterator[None]:
        """Inside, no other process that asks writes to the run in `path`, which is made if it does not exist."""
        try:
            if path.exists() and not path.is_dir():
                raise RunDirectoryError(_occupied(path))
            path.mkdir(parents=True, exist_ok=True)
            file = lock(path / _LOCK)
        except InUse as error:
            raise RunDirectoryError(
                f"{path}: in use by another process ({error}); wait for it, or choose another directory"
            ) from error
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise RunDirectoryError(f"{path}: cannot be written to ({error.strerror}); choose another directory") from error
        try:
            yield
        finally:
            (path / _LOCK).unlink(missing_ok=True)
            file.close()

    @property
    def report_path(self) -> Path:
        """Where the report is written."""
        return self.path / _REPORT

    @property
    def model_path(self) -> Path:
        """Where the trained model is written."""
        return self.path / _MODEL

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
        append_line(self.path / _METRICS, result)

    def results(self) -> list[Result]:
        """Every result, in order; a last line cut off by a crash is left out."""
        path = self.path / _METRICS
        try:
            return read_lines(path)
        except ValueError as error:
            raise RunDirectoryError(f"{path}: expected one JSON object a line ({error})") from error

    def forget(self, kind: str) -> None:
        """Removes the results of a kind."""
        write_lines(self.path / _METRICS, [row for row in self.results() if row.get("kind") != kind])

    def save_samples(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Writes samples/<name>.safetensors."""
        from safetensors.torch import save

        (self.path / _SAMPLES).mkdir(exist_ok=True)
        with atomic(self.path / _SAMPLES / f"{name}.safetensors") as file:
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

    def save_model(self, model: nn.Module) -> None:
        """Writes the parameters and buffers of the trained model, and what kind of model it is, as model.safetensors."""
        content = sealed.pack(Snapshot(of_module(model, "model"), {"identity": identity.settings(model)}))
        with atomic(self.model_path) as file:
            file.write(content)

    def load_model(self, model: Module) -> Module:
        """The model, made as it was before training, with the trained weights; nothing is changed if they do not fit."""
        path = self.model_path
        if not path.is_file():
            how = "`gibbsite resume` goes on with it" if (self.path / _CHECKPOINT).is_dir() else "run it again"
            raise RunDirectoryError(f"{path}: there is no such file, for the run did not train to its end; {how}")
        tensors, state = sealed.read(path, "run it again")
        identity.check(identity.settings(model), state["identity"])
        check_tensors(model.state_dict(), "model", tensors)
        into_tensors(model.state_dict(), "model", tensors)
        return model

    def save_log_z(self, estimate: Estimate) -> None:
        """Keeps an estimate of the model's log Z as log_z.json."""
        with atomic(self.path / _LOG_Z) as file:
            file.write(json.dumps(asdict(estimate), indent=2).encode() + b"\n")

    def log_z(self) -> Estimate | None:
        """The estimate of log Z that was kept, if there is one."""
        path = self.path / _LOG_Z
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return Estimate(**{**kept, "cost": Cost(*kept["cost"])})
        except (ValueError, TypeError, KeyError) as error:
            raise RunDirectoryError(
                f"{path}: expected an estimate as JSON ({error}); `gibbsite logz` makes it anew"
            ) from error

    def write_report(self, html: str) -> Path:
        """Writes report.html and returns its path."""
        with atomic(self.report_path) as file:
            file.write(html.encode())
        return self.report_path


def next_directory(parent: Path, recipe: str) -> Path:
    """The first of parent/recipe-1, parent/recipe-2, ... that does not exist."""
    number = 1
    while (parent / f"{recipe}-{number}").exists():
        number += 1
    return parent / f"{recipe}-{number}"


def _holds(path: Path) -> bool:
    """Whether there is anything in a directory but a lock."""
    return any(inside.name != _LOCK for inside in path.iterdir())


def _occupied(path: Path) -> str:
    if not path.is_dir():
        return f"{path}: expected a directory to write the run to, got a file; choose another --out"
    holds = "files that are no run of gibbsite"
    if (path / _CONFIG).is_file():
        holds = f"a run of {RunDirectory(path).config().get('recipe', 'another recipe')}"
    return f"{path}: holds {holds}, which is not overwritten: choose another --out, or --replace a run of the same recipe"
