"""Checkpoints on disk: one safetensors file each, written whole or not at all, the last few kept; only ever data."""

import contextlib
import re
from pathlib import Path
from typing import IO, final

from ..files import InUse, atomic, lock, remove_unfinished
from ..processes import Group
from . import sealed
from .snapshot import CheckpointError, Snapshot


@final
class Checkpoints:
    """The checkpoints of one run in a folder, step-<number>.safetensors, of which the last `keep` stay.

    A process that writes holds a lock on the folder, so that two never write to one. Each file carries a digest of its
    content: what was cut short or edited is refused. Where several processes learn together each has files of its own, and
    a checkpoint is one that all of them have.
    """

    def __init__(self, folder: Path, *, keep: int = 2, group: Group | None = None):
        self.folder, self.keep, self.group = folder, keep, group or Group()
        self._suffix = f".rank{self.group.rank}-of-{self.group.size}" if self.group.size > 1 else ""
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Takes the folder for this process, until `unlock` or its end."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock(self.folder / f".lock{self.group.rank or ''}")
        except InUse as error:
            raise CheckpointError(
                f"{self.folder}: in use by another process ({error}); wait for it or choose another"
            ) from error
        except OSError as error:
            raise CheckpointError(f"{self.folder}: this folder cannot be made ({error.strerror}); choose another") from error
        remove_unfinished(self.folder, f"step-*{self._suffix}.safetensors")

    def unlock(self) -> None:
        """Gives the folder back."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.close()
            self._lock = None

    def steps(self) -> list[int]:
        """The steps that there are checkpoints of, in order; an error if another number of processes wrote them."""
        with self.group.agreed(CheckpointError):
            self._check_size()
        return self.group.common(self._own_steps())

    def _check_size(self) -> None:
        for path in self.folder.glob("step-*.safetensors"):
            other = re.search(r"of-(\d+)\.safetensors$", path.name)
            if (size := int(other[1]) if other else 1) != self.group.size:
                raise CheckpointError(
                    f"{self.folder}: the checkpoints are of {size} processes, this run has {self.group.size}; run as "
                    "before, or choose another directory"
                )

    def _own_steps(self) -> list[int]:
        pattern = re.compile(rf"step-(\d+){re.escape(self._suffix)}\.safetensors")
        found = [pattern.fullmatch(path.name) for path in self.folder.glob("step-*.safetensors")]
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.folder / f"step-{step:09d}{self._suffix}.safetensors"

    def write(self, step: int, snapshot: Snapshot) -> None:
        """Writes a checkpoint, then removes all but the last `keep`; if one process cannot, none has it."""
        content, failure = sealed.pack(snapshot), None
        try:
            with atomic(self.path(step)) as file:
                file.write(content)
        except OSError as error:
            failure = error
        if self.group.any(failure is not None):
            if failure is None:
                self.path(step).unlink(missing_ok=True)
            raise failure or OSError("another process could not write its part")
        for old in self._own_steps()[: -self.keep]:
            self.path(old).unlink(missing_ok=True)

    def read(self, step: int) -> Snapshot:
        """The checkpoint of a step."""
        earlier = [number for number in self._own_steps() if number < step]
        hint = f"remove it to go on from step {earlier[-1]}" if earlier else "remove it to start anew"
        found = sealed.read(self.path(step), hint)
        if found.state.get("step", step) != step:
            raise CheckpointError(f"{self.path(step)}: holds step {found.state['step']}: it was renamed; {hint}")
        return found
