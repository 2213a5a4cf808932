"""The tagger of sparse features: a linear chain whose potentials are sums of weights of what words look like."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn

from ..._fast import sparse_crf
from ..._fast import word_features as loops
from ...exact import LinearChain
from .batches import by_length
from .corpus import Sentence
from .labels import Labels
from .tagger import Hypothesis, Tagger
from .templates import Templates

T = TypeVar("T")
_PLACES = 4096  # of a batch, with the padding


@final
class FeatureTagger(Tagger):
    """log p(y | x) = start[y_1] + sum_t sum_f weights[f, y_t] + sum_t edge[y_t, y_(t+1)] + end[y_n] - log Z(x).

    f runs over the features of word t that have a weight; which those are is said by their hashes, `keys`.

    References: Lafferty, McCallum, Pereira (2001), Conditional random fields.
    """

    keys: Tensor

    def __init__(self, labels: Labels, templates: Templates, features: int):
        super().__init__(labels)
        self.templates, size = templates, len(labels)
        self.register_buffer("keys", torch.zeros(features, dtype=torch.int64))
        self.weights = nn.Parameter(torch.zeros(features, size), requires_grad=False)
        self.edge = nn.Parameter(torch.zeros(size, size), requires_grad=False)
        self.start = nn.Parameter(torch.zeros(size), requires_grad=False)
        self.end = nn.Parameter(torch.zeros(size), requires_grad=False)
        self._index: tuple[tuple[int, int], np.ndarray, np.ndarray] | None = None

    def predict(self, sentences: Sequence[Sentence]) -> list[tuple[str, ...]]:
        return self._each(sentences, (), lambda chain, rows: [
            self.labels.decode(y[:n].tolist()) for y, n in zip(chain.mode().cpu(), map(len, rows))
        ])  # fmt: skip

    def predict_marginals(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        empty = torch.zeros(0, len(self.labels))
        return self._each(sentences, empty, lambda chain, rows: [
            p[:n] for p, n in zip(chain.marginals().cpu(), map(len, rows))
        ])  # fmt: skip

    def n_best(self, sentences: Sequence[Sentence], n: int) -> list[list[Hypothesis]]:
        def best(chain: LinearChain, rows: list[Sentence]) -> list[list[Hypothesis]]:
            labels, log_p = (x.movedim(1, 0).cpu() for x in chain.n_best(n))
            return [
                [Hypothesis(self.labels.decode(y[: len(s)].tolist()), p) for y, p in zip(ys, ps.tolist()) if p > -torch.inf]
                for ys, ps, s in zip(labels, log_p, rows)
            ]

        return self._each(sentences, [Hypothesis((), 0.0)], best)

    def log_likelihood(self, sentences: Sequence[Sentence]) -> list[float]:
        def log_p(chain: LinearChain, rows: list[Sentence]) -> list[float]:
            y = torch.zeros(chain.mask.shape, dtype=torch.int64)
            for row, sentence in zip(y, rows):
                row[: len(sentence)] = torch.tensor(self.labels.encode(sentence.labels))
            return chain(y.to(chain.node.device)).tolist()

        for number, sentence in enumerate(sentences):
            if len(sentence.labels) != len(sentence):
                raise ValueError(f"sentences: expected a label for each word, got none in sentence {number}")
        return self._each(sentences, 0.0, log_p)

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        """p(labels) of each sentence, one a row; none may be without words."""
        return self._chain(self._scores(sentences), [len(sentence) for sentence in sentences])

    def _scores(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Sums of weights (words, labels) of all words one after the other."""
        hashes, _ = self.templates.hashes(sentences)
        keys, slots = self._table()
        scores = np.empty((len(hashes), len(self.labels)), np.float32)
        sparse_crf.scores(loops.rows(hashes, keys, slots), self.weights.cpu().numpy(), scores)
        return scores

    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys and their index, which is made anew when they have changed."""
        mark = (self.keys.data_ptr(), 0 if self.keys.is_inference() else self.keys._version)
        if self._index is None or self._index[0] != mark:
            keys = self.keys.cpu().numpy().view(np.uint64)
            self._index = (mark, keys, loops.index(keys))
        return self._index[1:]

    def _chain(self, scores: np.ndarray, lengths: Sequence[int]) -> LinearChain:
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        node = torch.zeros(*mask.shape, len(self.labels))
        node[mask] = torch.from_numpy(scores)
        device = self.edge.device
        return LinearChain(node.to(device), self.edge, start=self.start, end=self.end, mask=mask.to(device))

    @torch.no_grad()
    def _each(
        self, sentences: Sequence[Sentence], empty: T, answer: Callable[[LinearChain, list[Sentence]], list[T]]
    ) -> list[T]:
        """The answers of all sentences, made by batches of like lengths; `empty` of those without words."""
        found: list[T] = [empty] * len(sentences)
        scores = self._scores(sentences)
        ends = np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64)
        some = [number for number, sentence in enumerate(sentences) if sentence.words]
        for places in by_length([len(sentences[number]) for number in some], _PLACES, seed=0):
            group = [some[place] for place in places]
            rows = [sentences[number] for number in group]
            own = np.concatenate([scores[ends[number] - len(sentences[number]) : ends[number]] for number in group])
            for number, one in zip(group, answer(self._chain(own, [len(s) for s in rows]), rows)):
                found[number] = one
        return found

    def settings(self) -> dict[str, Any]:
        sizes = {"labels": list(self.labels.names), "features": len(self.keys)}
        return {**sizes, "templates": list(self.templates.texts)}

    @classmethod
    def restored(cls, settings: Mapping[str, Any]) -> Self:
        templates = Templates(tuple(settings["templates"]))
        return cls(Labels(tuple(settings["labels"])), templates, settings["features"])
