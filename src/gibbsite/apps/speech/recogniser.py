"""An encoder with a linear layer to scores of classes, one of them the blank."""

from collections.abc import Callable, Mapping
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ... import random
from ...random import Seed, Source
from .encoder import Encoder, draw_weights


@final
class Recogniser(nn.Module):
    """Scores of each class at each of fewer frames: the node potentials of a random field, before or after a softmax."""

    def __init__(self, encoder: Encoder, classes: int):
        super().__init__()
        self.encoder, self.readout = encoder, nn.Linear(encoder.width, classes)

    def forward(
        self, features: Float[Tensor, "batch frames size"], lengths: Int[Tensor, " batch"], source: Source | None = None
    ) -> tuple[Float[Tensor, "batch fewer classes"], Int[Tensor, " batch"]]:
        """The scores, and how many frames each row has of them."""
        return self.readout(self.encoder(features, lengths, source)), self.encoder.frames(lengths)


def drawn(make: Callable[..., Encoder], options: Mapping[str, float], classes: int, *, seed: Seed) -> Recogniser:
    """A recogniser with weights drawn from the seed; torch's own initialisation, which draws globally, never runs."""
    with torch.device("meta"):
        recogniser = Recogniser(make(**options), classes)
    recogniser = recogniser.to_empty(device="cpu")
    draw_weights(recogniser, random.generator(seed))
    return recogniser
