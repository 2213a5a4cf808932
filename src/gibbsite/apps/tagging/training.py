"""How neural taggers learn: the objective, and the choice of weights by their score on sentences kept apart."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from ...files import append_line, read_lines
from ...learn import Average, Objective, Report
from ...random import Source
from .corpus import Corpus
from .neural import NeuralTagger
from .scores import accuracy
from .spans import are_spans, spans
from .tagger import load


@final
class Tagging(Objective):
    """The head's loss of a batch, a word: sum_sentences loss / words. `nats` is the sum.

    Batches have about as many words each, so that every word of the corpus weighs about the same.
    """

    def __init__(self, tagger: NeuralTagger):
        super().__init__()
        self.tagger = tagger

    def forward(self, data: list[dict[str, Tensor]], *, seed: Source) -> Report:
        total, words, metrics = torch.zeros((), device=data[0]["mask"].device), 0, {}
        for batch in data:
            features = self.tagger.encoder(batch, source=seed)
            found = self.tagger.head.loss(features, batch["mask"], batch["labels"], source=seed)
            total, words, metrics = total + found.values.sum(), words + batch["mask"].sum(), found.metrics
        return Report(total / words, {"nats": total.detach(), **metrics})


class Optimiser(ABC):
    """What follows the gradient, as a configuration."""

    @abstractmethod
    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of these parameters."""


@final
@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma and Ba, 2015)."""

    rate: float = 2e-3
    """Its learning rate at the start."""

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, self.rate, betas=(0.9, 0.99))


@final
@dataclass(frozen=True)
class SGD(Optimiser):
    """Stochastic gradient descent with momentum."""

    rate: float = 0.1
    """Its learning rate at the start."""
    momentum: float = 0.9
    """How much of the last step goes on."""

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, self.rate, self.momentum)


def score(tagger: NeuralTagger, corpus: Corpus) -> float:
    """F1 of spans where the labels are spans, else the share of words with the right label."""
    predicted = tagger.predict(corpus.sentences)
    if not are_spans(tagger.labels.names):
        return accuracy(corpus.labels, predicted)
    pairs = [(set(spans(g)), set(spans(p))) for g, p in zip(corpus.labels, predicted)]
    right, there = sum(len(g & p) for g, p in pairs), sum(len(g) + len(p) for g, p in pairs)
    return 2 * right / there if there else 1.0


@final
class Choice:
    """Told of every line of metrics, keeps the averaged weights of the epoch with the best score on `dev` (None: the last).

    With a folder, epochs and weights are there too (`metrics.jsonl`, `best.safetensors`), and a run that goes on finds them.
    """

    def __init__(
        self, tagger: NeuralTagger, average: Average, train: Corpus, dev: Corpus | None, steps: int, folder: Path | None
    ):
        self.average, self.dev, self.steps, self.folder = average, dev, steps, folder
        self.sentences = len(train)
        self.seen = type(tagger).restored(tagger.settings()).to(next(tagger.parameters()).device)
        self.seen.load_state_dict(tagger.state_dict())
        self.weights, self.best = tagger.state_dict(), -math.inf
        self.epochs = [] if folder is None else [line for line in read_lines(folder / "metrics.jsonl") if "epoch" in line]
        if self.epochs and folder is not None:
            self.best = max(line["dev"] if line["dev"] is not None else line["epoch"] for line in self.epochs)
            self.weights = load(folder / "best.safetensors", [NeuralTagger]).state_dict()

    def __call__(self, line: Mapping[str, Any]) -> None:
        epoch, rest = divmod(line["step"], self.steps)
        if "event" in line or rest or epoch <= len(self.epochs):
            return
        self.average.copy_to(self.seen)
        dev = None if self.dev is None else score(self.seen, self.dev)
        rank = float(epoch) if dev is None else dev
        if rank > self.best:
            self.best, self.weights = rank, {name: value.clone() for name, value in self.seen.state_dict().items()}
            if self.folder is not None:
                self.seen.save(self.folder / "best.safetensors")
        found = {"epoch": epoch, "loss": line["nats"] * self.steps / self.sentences, "dev": dev}
        self.epochs.append(found)
        if self.folder is not None:
            append_line(self.folder / "metrics.jsonl", found)
