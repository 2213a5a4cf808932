"""The metrics of a run, line by line: in memory, in metrics.jsonl, and told to a listener."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from ..files import append_line, as_lines, read_lines, remove_unfinished, write_lines
from .snapshot import CheckpointError

Listener = Callable[[Mapping[str, Any]], object]


@final
class Journal:
    """Lines {"step": ..., ...}, each written at once; what a full disk refuses is kept and tried again.

    The file may hold lines of others, without a "step" or with a "kind"; these stay.
    """

    def __init__(self, path: Path | None, listener: Listener | None = None):
        self.path, self.listener = path, listener
        self.lines: list[dict[str, Any]] = []
        self._waiting: list[dict[str, Any]] = []

    def write(self, line: dict[str, Any]) -> None:
        """Adds a line."""
        self.lines.append(line)
        if self.listener is not None:
            self.listener(line)
        if self.path is not None:
            self._waiting.append(line)
            self.flush()

    def flush(self) -> None:
        """Writes what waits."""
        try:
            while self.path is not None and self._waiting:
                append_line(self.path, self._waiting[0])
                self._waiting.pop(0)
        except OSError as error:
            warnings.warn(f"{self.path}: not written ({error}); kept in memory and tried again", stacklevel=2)

    def state(self) -> dict[str, Any]:
        """How many lines there are in the file, and those that wait."""
        return {"written": len(self.lines) - len(self._waiting), "waiting": self._waiting.copy()}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Back to what a checkpoint kept (None: to nothing), for what came after it will be written again."""
        written, waiting = (state["written"], state["waiting"]) if state else (0, [])
        self.lines = list(waiting)
        if self.path is not None:
            remove_unfinished(self.path.parent, self.path.name)
            found = self._read()
            own = [line for line in found if _own(line)]
            if len(own) < written:
                raise CheckpointError(
                    f"{self.path}: expected at least the {written} lines of the last checkpoint, got {len(own)}; put it "
                    "back, or choose another directory"
                )
            self._waiting, self.lines = list(waiting), [*own[:written], *waiting]
            late = {id(line) for line in own[written:]}
            self._rewrite([line for line in found if id(line) not in late])
        self.flush()

    def check_new(self) -> None:
        """An error if there are lines of a run: of one that is not going on, or they would be lost."""
        if self.path is not None and (own := [line for line in self._read() if _own(line)]):
            raise CheckpointError(
                f"{self.path}: holds {len(own)} lines of a run whose checkpoints are not beside it; move it away, or choose "
                "another directory"
            )

    def _read(self) -> list[dict[str, Any]]:
        assert self.path is not None
        try:
            return read_lines(self.path)
        except ValueError as error:
            raise CheckpointError(f"{self.path}: expected one JSON object a line ({error}); mend or remove it") from error
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be read ({error.strerror}); choose another directory") from error

    def _rewrite(self, lines: list[dict[str, Any]]) -> None:
        """The file with these lines alone; one that has no others, nor a last line that a crash cut, stays as it is."""
        assert self.path is not None
        if not self.path.exists() or self.path.read_bytes() == as_lines(lines):
            return
        try:
            write_lines(self.path, lines)
        except OSError as error:
            raise CheckpointError(f"{self.path}: not written ({error}); nothing was changed, make room first") from error


def _own(line: Mapping[str, Any]) -> bool:
    return "step" in line and "kind" not in line
