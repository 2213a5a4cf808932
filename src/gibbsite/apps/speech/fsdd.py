"""The Free Spoken Digit Dataset: 3,000 recordings of the digits by six speakers, 8,000 samples a second."""

import re

from ...datasets.source import Source
from .archive import members, unpack
from .audio import read_wave
from .corpus import Corpus, Utterance, held_out
from .features import LogMel
from .units import Pronounced

RATE = 8000
_TESTED = 5  # the first five recordings of each speaker and digit are for testing
_WANTED = re.compile(r"(?:^|/)recordings/(\d_\w+_\d+\.wav)$")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_PHONES = """ZERO Z IY R OW
ONE W AH N
TWO T UW
THREE TH R IY
FOUR F AO R
FIVE F AY V
SIX S IH K S
SEVEN S EH V AH N
EIGHT EY T
NINE N AY N"""


_FILES = Source(
    folder="speech",
    url="https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.zip",
    sha256="49813bc7e3eadf5268bc427d342465a47a73cf6d6f2e1305ca78957d96d0905c",
    forms={"fsdd.zip": members(_WANTED), "v1.0.10.zip": members(_WANTED)},
)


def fsdd() -> tuple[Corpus, Pronounced]:
    """The corpus as log-mel features, split as its authors say, and the phones of the ten digits.

    References: Jackson et al. (2018), Free spoken digit dataset.
    """
    front, parts = LogMel(rate=RATE), {True: list[Utterance](), False: list[Utterance]()}
    for name, content in sorted(unpack(_FILES.read()).items()):
        digit, _, number = name.removesuffix(".wav").split("_")
        sound, _ = read_wave(content, name, RATE)
        said = Utterance(name.removesuffix(".wav"), front(sound, name), _WORDS[int(digit)], RATE)
        parts[int(number) < _TESTED].append(said)
    train, validation = held_out(parts[False])
    return Corpus("FSDD", train, validation, parts[True], front.hop), Pronounced.parse(_PHONES, "the digits")
