"""Learning a recogniser: the mean loss of a label in a batch of utterances."""

from typing import Any, final

import torch

from ...learn import Objective, Report
from ...random import Source
from .criterion import Criterion
from .recogniser import Recogniser


@final
class Transcription(Objective):
    """sum -log p(y | x) / sum |y| over the utterances of a batch."""

    def __init__(self, recogniser: Recogniser, criterion: Criterion):
        super().__init__()
        self.recogniser, self.criterion = recogniser, criterion

    def forward(self, data: Any, *, seed: Source) -> Report:
        losses, counts = [], []
        for features, lengths, labels, label_counts in data:
            scores, frames = self.recogniser(features, lengths, seed)
            losses.append(self.criterion(scores, frames, labels, label_counts).sum())
            counts.append(label_counts.sum())
        return Report(torch.stack(losses).sum() / torch.stack(counts).sum())
