"""Images as a data set gives them: grey levels for training and testing, with labels where there are any."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from .. import random
from ..random import Seed
from ..space import whole


@final
@dataclass(frozen=True, eq=False)
class Images:
    """Grey images: whole numbers 0, ..., levels - 1 of shape (n, rows, columns), and labels (None if there are none).

    `grey(part)` and `binarised(part, seed=)` give either part as rows of pixels, as models on `Real` or `Binary` take them.

    Example:
        >>> import gibbsite as gb
        >>> digits = gb.datasets.digits()
        >>> digits.train.shape, digits.test.shape, digits.levels
        (torch.Size([1498, 8, 8]), torch.Size([299, 8, 8]), 17)
        >>> digits.binarised(digits.test, seed=0).shape
        torch.Size([299, 64])
    """

    name: str
    train: UInt8[Tensor, "n rows columns"] = field(repr=False)
    test: UInt8[Tensor, "m rows columns"] = field(repr=False)
    levels: int
    licence: str
    train_labels: Int[Tensor, " n"] | None = field(default=None, repr=False)
    test_labels: Int[Tensor, " m"] | None = field(default=None, repr=False)

    def __post_init__(self):
        whole(self.levels, "levels", 2)
        for name, x, labels in (("train", self.train, self.train_labels), ("test", self.test, self.test_labels)):
            if x.dtype != torch.uint8 or x.ndim != 3 or not len(x):
                raise ValueError(f"{name}: expected uint8 images (n, rows, columns), got {x.dtype} {tuple(x.shape)}")
            if labels is not None and labels.shape != x.shape[:1]:
                raise ValueError(f"{name}_labels: expected {len(x)}, one an image, got shape {tuple(labels.shape)}")
        if self.train.shape[1:] != self.test.shape[1:]:
            raise ValueError(f"test: expected images of {self.shape}, as in train, got {tuple(self.test.shape[1:])}")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.train.shape[1], self.train.shape[2]

    def grey(self, part: UInt8[Tensor, "k rows columns"]) -> Float[Tensor, "k pixels"]:
        """Levels divided by the highest: reals in [0, 1], one row an image."""
        return part.flatten(1).to(torch.get_default_dtype()) / (self.levels - 1)

    def binarised(self, part: UInt8[Tensor, "k rows columns"], *, seed: Seed) -> Int[Tensor, "k pixels"]:
        """Bits drawn once with the grey values as probabilities (Salakhutdinov and Murray, 2008), one row an image."""
        grey = self.grey(part)
        return (random.uniform(grey.shape, random.generator(seed), grey.dtype) < grey).to(torch.int8)
