"""The choice of weights by their score on sentences that are kept apart."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from ...files import append_line, read_lines
from ...learn import Average
from .corpus import Corpus
from .neural import NeuralTagger
from .scores import headline
from .tagger import load


def score(tagger: NeuralTagger, corpus: Corpus) -> float:
    """F1 of spans where the labels are spans, else the share of words with the right label."""
    return headline(corpus.labels, tagger.predict(corpus.sentences))


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
