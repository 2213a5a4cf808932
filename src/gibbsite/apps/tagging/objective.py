"""What neural taggers minimise: the loss of their head, a word."""

from typing import final

import torch
from torch import Tensor

from ...learn import Objective, Report
from ...random import Source
from .neural import NeuralTagger


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
