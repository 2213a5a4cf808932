"""Recordings in WAV files, by the standard library: mono or averaged channels of 8, 16 or 32 bits."""

import io
import wave
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .errors import SpeechError

_TYPES = {1: np.dtype("u1"), 2: np.dtype("<i2"), 4: np.dtype("<i4")}


def read_wave(content: bytes, name: str, rate: int | None = None) -> tuple[Float[Tensor, " samples"], int]:
    """The samples in [-1, 1) and their number a second; another number than `rate` is an error."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            channels, width, found, count = file.getparams()[:4]
            raw = file.readframes(count)
    except (wave.Error, EOFError) as error:
        raise SpeechError(f"{name}: cannot be read as a WAV file of PCM samples ({error}); convert it anew") from error
    if width not in _TYPES:
        raise SpeechError(f"{name}: expected samples of 8, 16 or 32 bits, got {8 * width}; convert it")
    if rate is not None and found != rate:
        raise SpeechError(f"{name}: expected {rate} samples a second, as in the other recordings, got {found}; resample it")
    if len(raw) != count * channels * width or not count:
        raise SpeechError(
            f"{name}: expected {max(1, count)} samples as its header says, got {len(raw) // (channels * width)}"
        )
    values = np.frombuffer(raw, _TYPES[width]).astype(np.float32).reshape(count, channels).mean(1)
    values = values / 128 - 1 if width == 1 else values / float(1 << (8 * width - 1))
    return torch.from_numpy(values.astype(np.float32)), found


def read_wave_file(path: Path) -> tuple[Float[Tensor, " samples"], int]:
    """The samples of a WAV file, and their number a second."""
    try:
        return read_wave(path.read_bytes(), str(path))
    except OSError as error:
        raise SpeechError(f"{path}: cannot be read ({error.strerror}); put it there or leave the utterance out") from error
