"""Mini-batches of utterances of like length, padded, with labels; masked anew each time one is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ... import random
from ...check import number
from ...learn import Data
from ...random import Source
from ...space import whole


class Batch(NamedTuple):
    """Utterances side by side: what lies beyond a length is 0."""

    features: Float[Tensor, "batch frames size"]
    lengths: Int[Tensor, " batch"]
    labels: Int[Tensor, "batch most"]
    label_lengths: Int[Tensor, " batch"]


@final
@dataclass(frozen=True)
class Masks:
    """Stretches of time and bands of features that are set to 0: `times` of each, of uniform widths up to a share.

    References: Park et al. (2019), SpecAugment.
    """

    times: int = 2
    time_share: float = 0.1
    bands: int = 0
    band_share: float = 0.2

    def __post_init__(self):
        whole(self.times, "times", 0)
        whole(self.bands, "bands", 0)
        number(self.time_share, "time_share", least=0, most=1)
        number(self.band_share, "band_share", least=0, most=1)

    def __call__(self, batch: Batch, source: Source) -> Batch:
        """The batch with its features masked."""
        features, lengths = batch.features, batch.lengths
        for _ in range(self.times):
            features = features * ~_stretch(lengths, features.shape[1], self.time_share, source)[:, :, None]
        sizes = torch.full_like(lengths, features.shape[2])
        for _ in range(self.bands):
            features = features * ~_stretch(sizes, features.shape[2], self.band_share, source)[:, None, :]
        return batch._replace(features=features)


def _stretch(lengths: Tensor, most: int, share: float, source: Source) -> Tensor:
    """One stretch of each row's places, its width uniform in [0, share length], its start uniform where it fits."""
    draws = random.uniform((2, len(lengths)), source).to(lengths.device)
    width = (draws[0] * (share * lengths + 1)).floor().clamp(max=lengths)
    start = (draws[1] * (lengths - width + 1)).floor()
    place = torch.arange(most, device=lengths.device)
    return (place >= start[:, None]) & (place < (start + width)[:, None])


@final
@dataclass(frozen=True, eq=False)
class Batches(Data):
    """Batches as examples for `fit`, of which one step takes one (`batch=1`): each holds utterances of like length."""

    contents: Sequence[Batch]
    masks: Masks = field(default_factory=lambda: Masks(times=0))

    def __len__(self) -> int:
        return len(self.contents)

    def rows(self, index: Tensor, source: Source) -> Any:
        return [tuple(self.masks(self.contents[number], source)) for number in index.tolist()]


def batched(
    features: Sequence[Tensor], labels: Sequence[Tensor], size: int, device: torch.device | str = "cpu"
) -> list[Batch]:
    """All utterances, the shortest first, `size` a batch."""
    order = sorted(range(len(features)), key=lambda number: len(features[number]))
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    return [collated([features[n] for n in part], [labels[n] for n in part], device) for part in parts]


def collated(features: Sequence[Tensor], labels: Sequence[Tensor], device: torch.device | str = "cpu") -> Batch:
    """One batch of utterances."""
    padded = (torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True) for parts in (features, labels))
    sizes = (torch.tensor([len(part) for part in parts]) for parts in (features, labels))
    (x, y), (frames, counts) = padded, sizes
    return Batch(*(part.to(device) for part in (x, frames, y, counts)))
