"""CMU AN4: 948 and 130 utterances of spelled words, dates and numbers, as cepstra, with a dictionary of phones."""

import re
import struct
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...datasets.source import Source
from .archive import members, unpack
from .corpus import Corpus, Utterance, held_out
from .errors import SpeechError
from .units import Pronounced

CEPSTRA = 13
_HOP = 0.01
_WANTED = re.compile(
    r"(?:^|/)((?:feat/.*\.mfc)|etc/an4\.dic|etc/an4_(?:train|test)\.(?:fileids|transcription)|LICENSE|README)$"
)
_LINE = re.compile(r"(?:<s>\s*)?(.*?)\s*(?:</s>\s*)?\(([^()\s]+)\)")


_FILES = Source(
    folder="speech",
    url="https://github.com/cphazen/Machine-Learning-Project-ASR/archive/refs/heads/master.zip",
    sha256="55fd222dfac0fe8902f308ff8a66653b07f295b02086fb3c353cd98d90530adb",
    forms={"an4_mfcc.zip": members(_WANTED), "master.zip": members(_WANTED)},
)


def an4() -> tuple[Corpus, Pronounced]:
    """The corpus, of which every twentieth training utterance is held out, and its pronouncing dictionary.

    References: Acero (1993), Acoustical and environmental robustness in automatic speech recognition.
    """
    files = unpack(_FILES.read())
    train, validation = held_out(_part(files, "train"))
    corpus = Corpus("AN4", train, validation, _part(files, "test"), _HOP)
    return corpus, Pronounced.parse(files["etc/an4.dic"].decode(), "etc/an4.dic")


def _part(files: Mapping[str, bytes], part: str) -> list[Utterance]:
    texts = transcripts(files[f"etc/an4_{part}.transcription"].decode(), f"etc/an4_{part}.transcription")
    places = files[f"etc/an4_{part}.fileids"].decode().split()
    return [
        Utterance(name, sphinx_cepstra(files[f"feat/{place}.mfc"], f"feat/{place}.mfc"), texts[name])
        for place in places
        if (name := place.rsplit("/", 1)[-1])
    ]


def transcripts(text: str, name: str) -> dict[str, str]:
    """The words of each utterance in lines `WORD WORD (utterance)`, as Sphinx writes them."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not (parts := _LINE.fullmatch(line.strip())):
            raise SpeechError(f"{name}, line {number}: expected WORDS (UTTERANCE), got {line!r}")
        found[parts[2]] = parts[1]
    return found


def sphinx_cepstra(content: bytes, name: str, size: int = CEPSTRA) -> Float[Tensor, "frames size"]:
    """The features in a file of Sphinx: how many numbers, as a big-endian int32, then these as big-endian float32."""
    count = struct.unpack(">i", content[:4])[0] if len(content) >= 4 else -1
    if count * 4 != len(content) - 4 or count <= 0 or count % size:
        raise SpeechError(
            f"{name}: expected a big-endian count of numbers, a multiple of {size}, and these in 4 bytes each, got the "
            f"count {count} and {max(0, len(content) - 4)} bytes; the file is broken or of another byte order"
        )
    return torch.from_numpy(np.frombuffer(content, ">f4", offset=4).astype(np.float32).reshape(-1, size))
