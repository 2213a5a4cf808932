"""The keys and values that a transformer has read, in buffers that grow without being copied at each step."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from .incremental import State

_LEAST = 16  # places that a buffer has at first


@final
class Kept(State):
    """Keys and values (n, 2, heads, places, size), a tensor a layer, which may have room behind the places read.

    Who goes on from a state first writes into that room. `written`, which states of the same buffers share, tells whoever
    goes on from it later that the room is taken: those get buffers of their own, and so no state ever changes.
    """

    def __init__(self, layers: tuple[Tensor, ...], places: int, written: list[int] | None = None):
        self.layers, self.places = layers, places
        self._written = [places] if written is None else written

    def rows(self, index: Tensor) -> "Kept":
        return Kept(tuple(self.read(number)[index] for number in range(len(self.layers))), self.places)

    def read(self, layer: int) -> Float[Tensor, "n 2 heads places size"]:
        """What a layer has read."""
        return self.layers[layer][..., : self.places, :]

    def room(self, more: int, most: int) -> "Kept | None":
        """The state after `more` places (of `most` there may be), which are to be written; None where they are to be joined.

        They are joined where nothing was read, which copies nothing, and where a gradient is wanted.
        """
        last = self.places + more
        if not self.places or torch.is_grad_enabled():
            return None
        if self._written[0] == self.places and last <= self.layers[0].shape[3]:
            self._written[0] = last
            return Kept(self.layers, last, self._written)
        size, grown = min(most, max(_LEAST, 2 * last)), []
        for number, layer in enumerate(self.layers):
            buffer = layer.new_empty(*layer.shape[:3], size, layer.shape[4])
            buffer[..., : self.places, :] = self.read(number)
            grown.append(buffer)
        return Kept(tuple(grown), last)
