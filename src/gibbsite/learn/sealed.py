"""A snapshot as one safetensors file with a digest of its content: what was cut short or edited is refused."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from .snapshot import CheckpointError, Snapshot

_FORMAT = 2


def pack(snapshot: Snapshot) -> bytes:
    """The content of its file."""
    tensors = {key: value.cpu().contiguous() for key, value in snapshot.tensors.items()}
    state = json.dumps(snapshot.state)
    return save(tensors, {"format": str(_FORMAT), "state": state, "digest": _digest(tensors, state)})


def read(path: Path, hint: str) -> Snapshot:
    """The snapshot in a file; an error ends with the hint, what to do without it."""
    try:
        with safe_open(str(path), "pt") as file:
            about = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a whole checkpoint ({error}); {hint}") from error
    if about.get("format") != str(_FORMAT) or about.get("digest") != _digest(tensors, about.get("state", "")):
        raise CheckpointError(f"{path}: changed since it was written, or written by another version; {hint}")
    return Snapshot(tensors, json.loads(about["state"]))


def _digest(tensors: dict[str, torch.Tensor], state: str) -> str:
    total = hashlib.blake2b(state.encode(), digest_size=16)
    for name in sorted(tensors):
        total.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        total.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
