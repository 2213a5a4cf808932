"""A user's own recordings: JSON lines that name a WAV file or an array of features, and what was said."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .audio import read_wave_file
from .corpus import Corpus, Utterance, held_out
from .errors import SpeechError
from .features import LogMel

_KEYS = 'expected {"audio": "file.wav" or "features": "file.npy", "text": "what was said"}'


def manifest(train: Path, test: Path | None) -> Corpus:
    """The corpus that two files of JSON lines describe; every twentieth training utterance is held out."""
    said = utterances(train)
    kept, validation = held_out(said)
    return Corpus(train.stem, kept, validation, utterances(test) if test else [], LogMel().hop)


def utterances(path: Path) -> list[Utterance]:
    """The utterances of a manifest: {"audio": ..., "text": ...} or {"features": ..., "text": ...} a line, "id" if wanted.

    Files are looked for beside the manifest. The recordings of a corpus share one rate; features are arrays (frames, size)
    in .npy files.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SpeechError(f"{path}: cannot be read as a manifest ({error})") from error
    found = list[Utterance]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = _row(line, f"{path}, line {number}")
            source = path.parent / str(row.get("audio") or row["features"])
            features, rate = _heard(source) if "audio" in row else (_array(source), 0)
            found.append(Utterance(str(row.get("id", source.stem)), features, row["text"], rate))
    if not found:
        raise SpeechError(f"{path}: {_KEYS} a line, got no line")
    return found


def recording(path: Path) -> Utterance:
    """A WAV file, or features in a .npy file, of which nobody said what it holds."""
    features, rate = (_array(path), 0) if path.suffix == ".npy" else _heard(path)
    return Utterance(str(path), features, "", rate)


def _heard(path: Path) -> tuple[Tensor, int]:
    """Log-mel features of a WAV file, and its rate."""
    sound, rate = read_wave_file(path)
    return LogMel(rate=rate)(sound, str(path)), rate


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SpeechError(f"{where}: {_KEYS}, got {line[:80]!r} ({error})") from error
    if not isinstance(row, dict) or ("audio" in row) == ("features" in row) or not isinstance(row.get("text"), str):
        raise SpeechError(f"{where}: {_KEYS}, got {line[:80]!r}")
    if not row["text"].strip():
        raise SpeechError(f"{where}: expected a text, got an empty one; leave the utterance out")
    return row


def _array(path: Path) -> Tensor:
    try:
        with path.open("rb") as file:
            values = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SpeechError(f"{path}: cannot be read as a .npy file of numbers ({error})") from error
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiu":
        raise SpeechError(f"{path}: expected numbers (frames, size), got {getattr(values, 'dtype', '')} "
                          f"{getattr(values, 'shape', type(values).__name__)}")  # fmt: skip
    return torch.from_numpy(values.astype(np.float32))
