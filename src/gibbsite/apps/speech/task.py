"""What a plan is carried out on: the corpus as features and labels, and the recogniser and loss that fit it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch
from torch import Tensor

from ...random import substream
from .alphabet import Alphabet
from .an4 import an4
from .batches import Batch, batched
from .bilstm import BiLSTM
from .conformer import Conformer
from .corpus import Corpus, Utterance
from .criterion import CTC, Criterion
from .ctc_crf import CTCRandomField
from .errors import SpeechError
from .features import normalised, with_slopes
from .fsdd import fsdd
from .lf_mmi import HMMRandomField
from .manifest import manifest
from .plan import Plan
from .recogniser import Recogniser, drawn
from .units import Characters, Pronounced, Units, Written

_WEIGHTS = 1  # stream of the seed
_TRIPLE = 3  # features, their slopes and the slopes of these
_CORPORA = {"an4": an4, "fsdd": fsdd}


@final
@dataclass(frozen=True, eq=False)
class Task:
    """A corpus, how its texts are cut into units, and the labels that stand for them; `size` numbers a frame."""

    corpus: Corpus
    units: Units
    alphabet: Alphabet

    @property
    def size(self) -> int:
        """Numbers in a frame that the encoder sees: features, their slopes and the slopes of these."""
        return _TRIPLE * self.corpus.size

    def labels(self, utterance: Utterance) -> Tensor:
        """The labels of an utterance."""
        return self.alphabet.encode(self.units.split(utterance.text, utterance.name), utterance.name)

    def transcripts(self) -> list[Tensor]:
        """The labels of all training utterances, of which n-grams are counted."""
        return [self.labels(utterance) for utterance in self.corpus.train]

    def batches(self, utterances: Sequence[Utterance], size: int, device: str) -> list[Batch]:
        """Utterances in batches of like length."""
        return batched([seen(said) for said in utterances], [self.labels(said) for said in utterances], size, device)


def seen(utterance: Utterance) -> Tensor:
    """The features as an encoder sees them: made comparable, with their slopes."""
    return with_slopes(normalised(utterance.features))


@torch.no_grad()
def scores_of(utterance: Utterance, recogniser: Recogniser) -> Tensor:
    """The scores of one utterance's frames (frames, classes)."""
    features = seen(utterance).to(recogniser.readout.weight.device)
    return recogniser(features[None], torch.tensor([len(features)], device=features.device))[0][0]


def heard(utterance: Utterance, recogniser: Recogniser, criterion: Criterion) -> list[int]:
    """The labels on the most probable path of one utterance."""
    scores = scores_of(utterance, recogniser)
    return criterion.best(scores[None], torch.tensor([len(scores)]))[0]


def task(plan: Plan) -> Task:
    """The corpus that a plan names, read and checked."""
    if plan.data == "manifest":
        corpus, own = manifest(Path(plan.train), Path(plan.test) if plan.test else None), None
    else:
        corpus, own = _CORPORA[plan.data]()
    corpus, units = corpus.first(plan.limit), units_of(plan, own)
    said = [units.split(utterance.text, utterance.name) for utterance in corpus.train]
    return Task(corpus, units, Alphabet.of([sorted(units.known()), *said]))


def units_of(plan: Plan, own: Units | None) -> Units:
    """How texts are cut; `own` is the dictionary of the corpus."""
    if plan.units == "phones":
        return Pronounced.read(Path(plan.dictionary)) if plan.dictionary or own is None else own
    return Characters() if plan.units == "characters" else Written()


def criterion_of(plan: Plan, classes: int, transcripts: Sequence[Tensor]) -> Criterion:
    """The loss that a plan names; n-grams of labels are those of the training transcripts."""
    if plan.loss == "ctc":
        return CTC(classes)
    if plan.loss == "ctc-crf":
        return CTCRandomField(classes, transcripts, plan.order, plan.ctc_weight)
    return HMMRandomField(classes, transcripts, plan.order)


def recogniser_of(plan: Plan, size: int, classes: int) -> Recogniser:
    """The recogniser of a plan, before it has learned."""
    options = {"size": size, "layers": plan.layers, "subsample": plan.subsample, "dropout": plan.dropout}
    make, width = (BiLSTM, {"cells": plan.width // 2}) if plan.encoder == "bilstm" else (Conformer, {"width": plan.width})
    return drawn(make, options | width, classes, seed=substream(plan.seed, _WEIGHTS)).to(torch.device(plan.device))


def check_lengths(task: Task, recogniser: Recogniser, criterion: Criterion) -> None:
    """An error that names the first training utterance that is too short for its labels."""
    for said in task.corpus.train:
        frames, labels = len(said.features), task.labels(said)
        fewer, needed = int(recogniser.encoder.frames(torch.tensor(frames))), criterion.needed(labels)
        if fewer < needed:
            raise SpeechError(
                f"{said.name}: {frames} frames are {fewer} after subsampling by {recogniser.encoder.subsample}, but its "
                f"{len(labels)} labels need {needed}; choose a smaller --subsample, or leave the utterance out"
            )
