"""Learning a tagger of sparse features: AdaGrad, one sentence at a time, in a compiled loop."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import torch

from ... import check, random
from ..._fast import sparse_crf
from ..._fast import word_features as loops
from ...files import append_line, read_lines, write_lines
from ...space import whole
from .corpus import Corpus
from .features import FeatureTagger
from .scores import headline
from .tagger import Learner
from .templates import USUAL, Templates


class _State(NamedTuple):
    """What learning changes: weights (features, 2, labels) and (K K + 2 K,), each with the sums of squared gradients."""

    weights: np.ndarray
    dense: np.ndarray
    squares: np.ndarray


@final
@dataclass(frozen=True)
class FeatureCRF(Learner):
    """A linear-chain CRF on sparse features of words, hashed: seconds to train, no network.

    Minimises sum over sentences of -log p(labels | words) + l1 |w|_1 + l2 |w|^2 / 2.
    """

    templates: tuple[str, ...] = USUAL
    """Which features a word has: each text one template, its parts LOOK[DISTANCE], such as "lower[-1] lower[0]"."""
    l1: float = 0.0
    """Weight of the sum of absolute weights; features that it leaves without weight are dropped."""
    l2: float = 0.1
    """Weight of half the sum of squared weights."""
    least: int = 1
    """Features that occur fewer times are left out."""
    rate: float = 0.1
    """AdaGrad's step size."""
    epochs: int = 5
    """Passes over the corpus."""

    def __post_init__(self):
        Templates(self.templates)
        check.number(self.l1, "l1", least=0)
        check.number(self.l2, "l2", least=0)
        check.number(self.rate, "rate", above=0)
        whole(self.least, "least")
        whole(self.epochs, "epochs")

    def fit(
        self,
        train: Corpus,
        dev: Corpus | None = None,
        *,
        seed: int,
        device: str = "cpu",
        out: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> FeatureTagger:
        """The tagger after the pass that was best on `dev`, else after the last. It learns on the CPU."""
        labels, source = train.learnable(), random.generator(seed)
        tagger, state, learn = self._prepared(train)
        if out is not None:  # a run that was interrupted begins again: it is a matter of seconds
            out.mkdir(parents=True, exist_ok=True)
            write_lines(out / "metrics.jsonl", [row for row in read_lines(out / "metrics.jsonl") if "epoch" not in row])
        best, kept = -1.0, None
        for epoch in range(self.epochs):
            loss = learn(random.permutation(sum(map(bool, map(len, train))), source).numpy())
            if not math.isfinite(loss):
                raise FloatingPointError(f"rate: expected steps that leave log p finite, got {self.rate}; take less")
            row = {"epoch": epoch + 1, "loss": loss}
            if dev is not None:
                _put(tagger, state, len(labels))
                row["dev"] = headline(dev.labels, tagger.predict(dev.sentences))
                if row["dev"] > best:
                    best, kept = row["dev"], (state.weights[:, 0].copy(), state.dense.copy())
            if out is not None:
                append_line(out / "metrics.jsonl", row)
            if progress is not None:
                progress(epoch + 1, self.epochs)
        if kept is not None:
            state = _State(kept[0][:, None], kept[1], state.squares)
        _put(tagger, state, len(labels))
        return _pruned(tagger).to(device)

    def _prepared(self, train: Corpus) -> tuple[FeatureTagger, _State, Callable[[np.ndarray], float]]:
        """A tagger with the corpus's features, what learning changes, and one pass over the sentences in an order."""
        labels, templates = train.alphabet(), Templates(self.templates)
        sentences = [sentence for sentence in train if sentence.words]
        hashes, ends = templates.hashes(sentences)
        keys, counts = np.unique(hashes, return_counts=True)
        keys, counts = keys[counts >= self.least], counts[counts >= self.least]
        rows = loops.rows(hashes, keys, loops.index(keys))
        gold = np.array(labels.encode(label for sentence in sentences for label in sentence.labels))
        size = len(labels)
        dense = np.zeros(size * size + 2 * size)
        state = _State(np.zeros((len(keys), 2, size), np.float32), dense, np.zeros_like(dense))
        share = (1 / counts).astype(np.float32)
        tagger = FeatureTagger(labels, templates, len(keys))
        tagger.keys.copy_(torch.from_numpy(keys.view(np.int64)))

        def learn(order: np.ndarray) -> float:
            return sparse_crf.learn(rows, gold, ends, order, share, *state, self.rate, self.l1, self.l2) / len(order)

        return tagger, state, learn


def _put(tagger: FeatureTagger, state: _State, size: int) -> None:
    """Writes what was learned into the tagger."""
    edge, start, end = np.split(state.dense, [size * size, size * size + size])
    tagger.weights.copy_(torch.from_numpy(state.weights[:, 0]))
    tagger.edge.copy_(torch.from_numpy(edge).view(size, size))
    tagger.start.copy_(torch.from_numpy(start))
    tagger.end.copy_(torch.from_numpy(end))


def _pruned(tagger: FeatureTagger) -> FeatureTagger:
    """The same law without the features whose weights are all 0."""
    used = tagger.weights.abs().amax(1) > 0
    if bool(used.all()):
        return tagger
    small = FeatureTagger(tagger.labels, tagger.templates, int(used.sum()))
    own = tagger.state_dict()
    small.load_state_dict({**own, "keys": own["keys"][used], "weights": own["weights"][used]})
    return small
