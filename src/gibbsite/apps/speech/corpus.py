"""Utterances of a corpus: features of each, its words, and the units that stand for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from .errors import SpeechError


@final
@dataclass(frozen=True, eq=False)
class Utterance:
    """One recording: its features (frames, size), what was said as text, and the samples a second that it had if known."""

    name: str
    features: Float[Tensor, "frames size"]
    text: str
    rate: int = 0


@final
@dataclass(frozen=True, eq=False)
class Corpus:
    """Utterances for training, for looking at while training, and for testing; `hop` is the seconds between frames."""

    name: str
    train: Sequence[Utterance]
    validation: Sequence[Utterance]
    test: Sequence[Utterance]
    hop: float

    def __post_init__(self):
        if not self.train:
            raise SpeechError(f"{self.name}: expected at least 1 utterance to train on, got none")
        for utterance in self.utterances:
            check_like(utterance, self.size, self.rate, f"as in {self.train[0].name}")

    @property
    def size(self) -> int:
        """Features in a frame."""
        return self.train[0].features.shape[1]

    @property
    def rate(self) -> int:
        """Samples a second of the recordings (0: not known)."""
        return max(utterance.rate for utterance in self.train)

    @property
    def utterances(self) -> list[Utterance]:
        """All of them."""
        return [*self.train, *self.validation, *self.test]

    def first(self, most: int) -> "Corpus":
        """At most that many utterances of each part, evenly spaced (0: all)."""
        if not most:
            return self
        parts = [part[:: max(1, len(part) // most)][:most] for part in (self.train, self.validation, self.test)]
        return Corpus(self.name, *parts, hop=self.hop)


def check_like(utterance: Utterance, size: int, rate: int, others: str) -> None:
    """An error unless the utterance has frames of finite features, as many and from as many samples as the others."""
    frames, own = utterance.features.shape
    if not frames or own != size:
        raise SpeechError(f"{utterance.name}: expected at least 1 frame of {size} features, {others}, got {frames} of {own}")
    if rate and utterance.rate and utterance.rate != rate:
        raise SpeechError(
            f"{utterance.name}: expected {rate} samples a second, {others}, got {utterance.rate}; resample the recording"
        )
    if not utterance.features.isfinite().all():
        raise SpeechError(f"{utterance.name}: expected finite features, got some that are not; record it anew")


def held_out(utterances: Sequence[Utterance], every: int = 20) -> tuple[list[Utterance], list[Utterance]]:
    """Utterances for training, and every twentieth for looking at while training."""
    kept = [utterance for number, utterance in enumerate(utterances) if number % every != every - 1]
    return kept, [utterance for number, utterance in enumerate(utterances) if number % every == every - 1]
