"""Sentences of like length together, about as many words a batch as are asked for; to learning a batch is an example."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from ... import random
from ...learn import Data
from ...random import Seed, Source
from .encoder import Encoder


def by_length(lengths: Sequence[int], tokens: int, seed: Seed) -> list[list[int]]:
    """Numbers of sentences, from short to long, in groups of at most `tokens` places once padded (or one sentence).

    Which of the sentences of a length stand together is drawn.

    Example:
        >>> by_length([5, 1, 2], 4, seed=0)
        [[1, 2], [0]]
    """
    shuffled = random.permutation(len(lengths), random.generator(seed)).tolist()
    groups: list[list[int]] = []
    for number in sorted(shuffled, key=lambda k: lengths[k]):
        if not groups or (len(groups[-1]) + 1) * lengths[number] > tokens:
            groups.append([])
        groups[-1].append(number)
    return groups


def placed_labels(labels: Sequence[Sequence[int]], mask: Tensor) -> Int[Tensor, "batch places"]:
    """Labels of words at the places of a mask, 0 elsewhere."""
    flat = torch.tensor([label for sentence in labels for label in sentence], dtype=torch.long)
    return torch.zeros(mask.shape, dtype=torch.long).masked_scatter(mask, flat)


@final
class Bucketed(Data):
    """Batches of sentences with their labels, made once and kept on a device; each epoch reads them in a new order."""

    def __init__(
        self,
        encoder: Encoder,
        sentences: Sequence[Sequence[str]],
        labels: Sequence[Sequence[int]],
        *,
        tokens: int,
        seed: Seed,
        device: torch.device | str = "cpu",
    ):
        self.batches: list[dict[str, Tensor]] = []
        for group in by_length([len(sentence) for sentence in sentences], tokens, seed):
            batch = encoder.read([sentences[number] for number in group])
            batch["labels"] = placed_labels([labels[number] for number in group], batch["mask"])
            self.batches.append({name: tensor.to(device) for name, tensor in batch.items()})

    def __len__(self) -> int:
        return len(self.batches)

    def rows(self, index: Int[Tensor, " batch"], source: Source) -> list[dict[str, Tensor]]:
        return [self.batches[number] for number in index.tolist()]
