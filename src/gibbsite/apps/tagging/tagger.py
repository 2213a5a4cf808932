"""What every tagger can do, whatever is inside, and what makes one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from torch import Tensor, nn

from ...files import atomic
from ...learn import sealed
from ...learn.snapshot import CheckpointError, Snapshot, check_tensors, into_tensors, of_module
from .corpus import Corpus, Sentence
from .labels import Labels


class Hypothesis(NamedTuple):
    """Labels of a whole sentence, and log p(labels | words)."""

    labels: tuple[str, ...]
    log_probability: float


class Tagger(nn.Module, ABC):
    """p(labels | words): the best labels, the n best, and the probability of each label at each word.

    Of a sentence without words the labels are () with probability 1. `words` longer or stranger than any in training are
    no error.
    """

    def __init__(self, labels: Labels):
        super().__init__()
        self.labels = labels

    @abstractmethod
    def predict(self, sentences: Sequence[Sentence]) -> list[tuple[str, ...]]:
        """The most probable labels of each sentence."""

    @abstractmethod
    def predict_marginals(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """p(label of word t | all words) for each sentence: (words, labels), on the CPU."""

    @abstractmethod
    def n_best(self, sentences: Sequence[Sentence], n: int) -> list[list[Hypothesis]]:
        """The n most probable labellings of each sentence, the best first; all of them where there are fewer."""

    @abstractmethod
    def log_likelihood(self, sentences: Sequence[Sentence]) -> list[float]:
        """log p(labels | words) of each sentence's own labels."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What `restored` makes an empty tagger of, as JSON values: the alphabet, sizes, vocabularies."""

    @classmethod
    @abstractmethod
    def restored(cls, settings: Mapping[str, Any]) -> Self:
        """A tagger with these settings, its weights as yet of no value."""

    def save(self, path: Path) -> None:
        """Writes weights and settings to one safetensors file, with a digest of both."""
        state = {"tagger": type(self).__name__, "settings": self.settings()}
        content = sealed.pack(Snapshot(of_module(self, "tagger"), state))
        with atomic(path) as file:
            file.write(content)


@dataclass(frozen=True)
class Learner(ABC):
    """The settings of one kind of tagger, each field typed, documented and with a default: flags are made of them."""

    @abstractmethod
    def fit(
        self,
        train: Corpus,
        dev: Corpus | None = None,
        *,
        seed: int,
        device: str = "cpu",
        out: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Tagger:
        """A tagger trained on a corpus; `dev` chooses when to stop, or which weights to keep, and is never trained on.

        With `out` (a run directory) an interrupted training goes on where it was, and each pass appends to metrics.jsonl
        {"epoch": ..., "loss": nats a sentence, "dev": its headline score}. `progress(done, of)` is told of the passes.
        """


def load(path: Path, kinds: Sequence[type[Tagger]]) -> Tagger:
    """The tagger that `save` wrote, of one of these kinds."""
    tensors, state = sealed.read(path, "train it again")
    known = {kind.__name__: kind for kind in kinds}
    if state.get("tagger") not in known:
        raise CheckpointError(f"{path}: expected a tagger of {', '.join(known)}, got {state.get('tagger', 'another model')}")
    tagger = known[state["tagger"]].restored(state["settings"])
    check_tensors(tagger.state_dict(), "tagger", tensors)
    into_tensors(tagger.state_dict(), "tagger", tensors)
    return tagger
