"""Checkpoints on disk: one safetensors file each, written whole or not at all, the last few kept; only ever data."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import IO, final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from ..files import atomic
from .snapshot import Snapshot

_FORMAT = 1


class CheckpointError(Exception):
    """A checkpoint that cannot be used, and what to do."""


@final
class Checkpoints:
    """The checkpoints of one run in a folder, step-<number>.safetensors, of which the last `keep` stay.

    A process that writes holds a lock on the folder, so that two never write to one. Each file carries a digest of its
    content: what was cut short or edited is refused.
    """

    def __init__(self, folder: Path, *, keep: int = 2, rank: int = 0):
        self.folder, self.keep, self.rank = folder, keep, rank
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Takes the folder for this process, until `unlock` or its end."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        file = (self.folder / f".lock{self.rank or ''}").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            file.close()
            raise CheckpointError(
                f"{self.folder}: in use by another process ({owner}); wait for it or choose another"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._lock = file

    def unlock(self) -> None:
        """Gives the folder back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def steps(self) -> list[int]:
        """The steps that there are checkpoints of, in order."""
        pattern = re.compile(rf"step-(\d+){re.escape(self._suffix)}")
        found = [pattern.fullmatch(path.name) for path in self.folder.glob("step-*.safetensors")]
        return sorted(int(match[1]) for match in found if match)

    @property
    def _suffix(self) -> str:
        return f".rank{self.rank}.safetensors" if self.rank else ".safetensors"

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.folder / f"step-{step:09d}{self._suffix}"

    def write(self, step: int, snapshot: Snapshot) -> None:
        """Writes a checkpoint, then removes all but the last `keep`."""
        tensors = {key: value.cpu().contiguous() for key, value in snapshot.tensors.items()}
        state = json.dumps(snapshot.state)
        digest = _digest(tensors, state)
        with atomic(self.path(step)) as file:
            file.write(save(tensors, {"format": str(_FORMAT), "state": state, "digest": digest}))
        for old in self.steps()[: -self.keep]:
            self.path(old).unlink(missing_ok=True)

    def read(self, step: int | None = None) -> Snapshot | None:
        """The checkpoint of a step (None: the last); None if there is none."""
        steps = self.steps()
        if step is None:
            if not steps:
                return None
            step = steps[-1]
        path = self.path(step)
        earlier = [number for number in steps if number < step]
        hint = f"; remove it to go on from step {earlier[-1]}" if earlier else "; remove it to start anew"
        try:
            with safe_open(str(path), "pt") as file:
                about = file.metadata() or {}
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path}: not a whole checkpoint ({error}){hint}") from error
        if about.get("format") != str(_FORMAT) or about.get("digest") != _digest(tensors, about.get("state", "")):
            raise CheckpointError(f"{path}: changed since it was written, or written by another version{hint}")
        return Snapshot(tensors, json.loads(about["state"]))


def _digest(tensors: dict[str, torch.Tensor], state: str) -> str:
    total = hashlib.blake2b(state.encode(), digest_size=16)
    for name in sorted(tensors):
        total.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        total.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
