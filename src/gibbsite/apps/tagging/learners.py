"""The settings of neural taggers, one kind for each head."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, final

import torch

from ... import random
from ...check import instance, number
from ...learn import Average, fit
from ...learn.schedule import Schedule
from ...random import Source
from ...space import whole
from .batches import Bucketed
from .choice import Choice
from .corpus import Corpus
from .heads import CRFTransducer, Head, LinearChainCRF, RNNTransducer, Separate, Softmax, Sum
from .neural import NeuralTagger
from .objective import Tagging
from .optimisers import SGD, Adam, Optimiser
from .reading import Pretrained, Reading, Words
from .tagger import Learner


@final
@dataclass(frozen=True)
class Falling(Schedule):
    """1 - (before + t) / steps: linear to 0, from where an earlier stage left it."""

    before: int
    steps: int

    def __call__(self, step: int) -> float:
        return 1 - (self.before + step) / self.steps


@dataclass(frozen=True)
class NeuralLearner(Learner, ABC):
    """An encoder and a head, trained together on batches of sentences of like length."""

    reading: Words | Pretrained = field(default_factory=Words)
    """What reads the words."""
    optimiser: Adam | SGD = field(default_factory=Adam)
    """What follows the gradient; its rate falls to 0 linearly, over all stages."""
    epochs: int = 12
    """Passes over the corpus."""
    tokens: int = 512
    """Words of a batch."""
    clip: float = 5.0
    """The largest norm of a gradient."""
    window: float = 1.0
    """Passes over the corpus that the moving average of weights looks back, which is what is kept; 0: the last weights."""

    def __post_init__(self):
        instance(self.reading, Reading, "reading")
        instance(self.optimiser, Optimiser, "optimiser")
        whole(self.epochs, "epochs")
        whole(self.tokens, "tokens")
        number(self.clip, "clip", above=0)
        number(self.window, "window", least=0)

    @abstractmethod
    def head(self, size: int, labels: int, source: Source) -> Head:
        """The head, untrained."""

    @abstractmethod
    def before(self) -> "NeuralLearner | None":
        """What is trained first, for its weights to begin with."""

    def fit(
        self,
        train: Corpus,
        dev: Corpus | None = None,
        *,
        seed: int,
        device: str = "cpu",
        out: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> NeuralTagger:
        """A tagger trained on a corpus, with the averaged weights of the epoch that is best on `dev`.

        Ctrl-C ends the step, saves and raises KeyboardInterrupt: with `out`, the same call goes on.
        """
        given, first = _Given(train, dev, seed, device, progress), self.before()
        if first is None:
            return self._stage(self._made(given), given, out, 0, self.epochs)
        passes = first.epochs + self.epochs
        tagger = first._stage(first._made(given), given, out and out / "first", 0, passes)
        return self._stage(self._follows(tagger), given, out, first.epochs, passes)

    def _stage(self, tagger: NeuralTagger, given: "_Given", out: Path | None, before: int, passes: int) -> NeuralTagger:
        """Passes `before` and on of so many, in which the rate falls to 0."""
        tagger = tagger.to(given.device)
        data = self._data(tagger, given)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        objective, steps, done = Tagging(tagger), len(data), 0
        average = Average(tagger, 1 - 1 / max(1.0, self.window * steps))
        choice = Choice(tagger, average, given.train, given.dev, steps, out)

        def tell(more: int) -> None:
            nonlocal done
            done += more
            if given.progress is not None:
                given.progress(before + done // steps, passes)

        fitted = fit(
            objective, data, optimiser=self.optimiser.make(objective.parameters()), steps=self.epochs * steps, batch=1,
            seed=random.substream(given.seed, 1) % 2**63, schedule=Falling(before * steps, passes * steps), average=average,
            clip=self.clip, out=out, save_every=steps, log_every=steps, listener=choice, progress=tell,
        )  # fmt: skip
        if fitted.interrupted:
            raise KeyboardInterrupt
        tagger.load_state_dict(choice.weights)
        return tagger.requires_grad_(False)

    def _made(self, given: "_Given") -> NeuralTagger:
        source, labels = random.generator(random.substream(given.seed, 0)), given.train.alphabet()
        encoder = self.reading.make([sentence.words for sentence in given.train], source)
        return NeuralTagger(labels, encoder, self.head(encoder.size, len(labels), source))

    def _follows(self, first: NeuralTagger) -> NeuralTagger:
        """A tagger with this head and the weights of another."""
        head = self.head(first.encoder.size, len(first.labels), torch.Generator().manual_seed(0))
        tagger = NeuralTagger(first.labels, first.encoder, head).to(next(first.parameters()).device)
        tagger.load_state_dict(first.state_dict())
        return tagger.requires_grad_(True)

    def _data(self, tagger: NeuralTagger, given: "_Given") -> Bucketed:
        some = [sentence for sentence in given.train if sentence.words]
        words, labels = [s.words for s in some], [tagger.labels.encode(s.labels) for s in some]
        seed = random.substream(given.seed, 2)
        return Bucketed(tagger.encoder, words, labels, tokens=self.tokens, seed=seed, device=given.device)


class _Given(NamedTuple):
    """What `fit` is told."""

    train: Corpus
    dev: Corpus | None
    seed: int
    device: str
    progress: Callable[[int, int], None] | None


@final
@dataclass(frozen=True)
class NeuralSoftmax(NeuralLearner):
    """Labels that are independent given the sentence."""

    def head(self, size: int, labels: int, source: Source) -> Head:
        return Softmax(size, labels, source=source)

    def before(self) -> NeuralLearner | None:
        return None


@final
@dataclass(frozen=True)
class NeuralCRF(NeuralLearner):
    """A linear-chain CRF."""

    def head(self, size: int, labels: int, source: Source) -> Head:
        return LinearChainCRF(size, labels, source=source)

    def before(self) -> NeuralLearner | None:
        return None


@final
@dataclass(frozen=True)
class NeuralRNNTransducer(NeuralLearner):
    """An RNN transducer: locally normalised, with all labels before each."""

    label_hidden: int = 64
    """Units of the LSTM over labels."""
    label_dropout: float = 0.33
    """How much is dropped of what it says."""
    width: int = 8
    """Hypotheses of the search."""

    def head(self, size: int, labels: int, source: Source) -> Head:
        sizes = {"hidden": self.label_hidden, "dropout": self.label_dropout, "width": self.width}
        return RNNTransducer(size, labels, **sizes, source=source)

    def before(self) -> NeuralLearner | None:
        return None


@final
@dataclass(frozen=True)
class NeuralCRFTransducer(NeuralLearner):
    """A CRF transducer: globally normalised, with all labels before each; it begins as a trained RNN transducer."""

    design: Sum | Separate = field(default_factory=Sum)
    """How the two networks make potentials: EBM-SLP, eq. 4.30 or 4.31."""
    label_hidden: int = 64
    """Units of the LSTM over labels."""
    label_dropout: float = 0.33
    """How much is dropped of what it says."""
    width: int = 32
    """Hypotheses of the beam, in learning and in search."""
    first_epochs: int = 6
    """Passes over the corpus of the RNN transducer that it begins with; 0 for none."""

    def head(self, size: int, labels: int, source: Source) -> Head:
        sizes = {"hidden": self.label_hidden, "dropout": self.label_dropout, "width": self.width}
        return CRFTransducer(size, labels, design=self.design, **sizes, source=source)

    def before(self) -> NeuralLearner | None:
        if not self.first_epochs:
            return None
        shared = {name: getattr(self, name) for name in NeuralRNNTransducer.__dataclass_fields__}
        return NeuralRNNTransducer(**{**shared, "epochs": self.first_epochs})
