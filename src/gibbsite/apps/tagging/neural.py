"""Neural taggers: an encoder that reads words, and a head that is a law of labels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from ...model import device_of
from .batches import by_length, placed_labels
from .corpus import Sentence
from .encoder import Batch, Encoder
from .heads import CRFTransducer, Head, LinearChainCRF, RNNTransducer, Softmax
from .hugging_face import HuggingFace
from .labels import Labels
from .tagger import Hypothesis, Tagger
from .word_encoder import WordEncoder

ENCODERS: dict[str, type[Encoder]] = {kind.__name__: kind for kind in (WordEncoder, HuggingFace)}
HEADS: dict[str, type[Head]] = {kind.__name__: kind for kind in (Softmax, LinearChainCRF, RNNTransducer, CRFTransducer)}
TOKENS = 2048  # places of a batch that is tagged
T = TypeVar("T")


@final
class NeuralTagger(Tagger):
    """p(labels | words) = head(encoder(words)).

    Of a transducer's head the best labels are those that a beam search finds, and probabilities of single labels are shares
    of the beam; a CRF transducer's log p is an upper bound. Of the other heads all is exact.
    """

    def __init__(self, labels: Labels, encoder: Encoder, head: Head):
        super().__init__(labels)
        self.encoder, self.head = encoder, head

    def predict(self, sentences: Sequence[Sentence]) -> list[tuple[str, ...]]:
        return [self.labels.decode(row) for row in self._each(sentences, self._best, [])]

    def predict_marginals(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        return self._each(sentences, self._marginals, torch.zeros(0, len(self.labels)))

    def n_best(self, sentences: Sequence[Sentence], n: int) -> list[list[Hypothesis]]:
        return self._each(sentences, lambda batch, numbers: self._n_best(batch, n), [Hypothesis((), 0.0)])

    def log_likelihood(self, sentences: Sequence[Sentence]) -> list[float]:
        gold = [self.labels.encode(sentence.labels) for sentence in sentences]
        for number, sentence in enumerate(sentences):
            if len(sentence.labels) != len(sentence.words):
                raise ValueError(f"sentences: expected a label for each word, got none in sentence {number}")

        def log_p(batch: Batch, numbers: list[int]) -> list[float]:
            labels = placed_labels([gold[number] for number in numbers], batch["mask"].cpu()).to(batch["mask"].device)
            return self.head.log_p(self.encoder(batch), batch["mask"], labels).tolist()

        return self._each(sentences, log_p, 0.0)

    def settings(self) -> dict[str, Any]:
        parts = {name: {"kind": type(part).__name__, **part.settings()} for name, part in
                 (("encoder", self.encoder), ("head", self.head))}  # fmt: skip
        return {"labels": list(self.labels.names), **parts}

    @classmethod
    def restored(cls, settings: Mapping[str, Any]) -> Self:
        labels = Labels(tuple(settings["labels"]))
        parts = {name: dict(settings[name]) for name in ("encoder", "head")}
        encoder = ENCODERS[parts["encoder"].pop("kind")].restored(parts["encoder"])
        head = HEADS[parts["head"].pop("kind")].restored(parts["head"], encoder.size, len(labels))
        return cls(labels, encoder, head).requires_grad_(False)  # as one that has learned: torch then sums in the same order

    @torch.no_grad()
    def _each(
        self, sentences: Sequence[Sentence], answers: Callable[[Batch, list[int]], Sequence[T]], without_words: T
    ) -> list[T]:
        """An answer for each sentence, asked for by batches of sentences of like length."""
        device, words = device_of(self), [sentence.words for sentence in sentences]
        found = [without_words] * len(words)
        some = [number for number, sentence in enumerate(words) if sentence]
        for group in by_length([len(words[number]) for number in some], TOKENS, 0):
            numbers = [some[place] for place in group]
            batch = self.encoder.read([words[number] for number in numbers])
            batch = {name: tensor.to(device) for name, tensor in batch.items()}
            for number, answer in zip(numbers, answers(batch, numbers), strict=True):
                found[number] = answer
        return found

    def _best(self, batch: Batch, _: list[int]) -> list[list[int]]:
        labels = self.head.best(self.encoder(batch), batch["mask"]).labels[:, 0].cpu()
        return [row[mask].tolist() for row, mask in zip(labels, batch["mask"].cpu())]

    def _marginals(self, batch: Batch, _: list[int]) -> list[Float[Tensor, "words K"]]:
        marginals = self.head.marginals(self.encoder(batch), batch["mask"]).cpu()
        return [row[mask] for row, mask in zip(marginals, batch["mask"].cpu())]

    def _n_best(self, batch: Batch, n: int) -> list[list[Hypothesis]]:
        best = self.head.best(self.encoder(batch), batch["mask"], n)
        labels, log_p, masks = best.labels.cpu(), best.log_p.tolist(), batch["mask"].cpu()
        return [
            [Hypothesis(self.labels.decode(y[mask].tolist()), p) for y, p in zip(rows, ps) if p > -torch.inf]
            for rows, ps, mask in zip(labels, log_p, masks)
        ]
