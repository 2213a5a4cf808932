"""The layers that taggers are made of: drawn from a generator of one's own, and dropped by one too."""

import math
from typing import cast, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from ... import random
from ...random import Source


def linear(inputs: int, outputs: int, source: Source) -> nn.Linear:
    """A linear layer, its weights uniform in +-sqrt(6 / (inputs + outputs)) (Glorot, Bengio 2010), its biases 0."""
    layer = cast(nn.Linear, skip_init(nn.Linear, inputs, outputs))
    layer.weight.data = _symmetric((outputs, inputs), math.sqrt(6 / (inputs + outputs)), source)
    layer.bias.data = torch.zeros(outputs)
    return layer


def embedding(count: int, size: int, source: Source) -> nn.Embedding:
    """A vector for each of `count` ids, uniform in +-sqrt(3 / size): of variance 1 / size a component."""
    layer = cast(nn.Embedding, skip_init(nn.Embedding, count, size))
    layer.weight.data = _symmetric((count, size), math.sqrt(3 / size), source)
    return layer


def convolution(inputs: int, outputs: int, width: int, source: Source) -> nn.Conv1d:
    """A convolution over places, its weights uniform in +-sqrt(6 / (inputs width + outputs)), its biases 0."""
    layer = cast(nn.Conv1d, skip_init(nn.Conv1d, inputs, outputs, width))
    layer.weight.data = _symmetric((outputs, inputs, width), math.sqrt(6 / (inputs * width + outputs)), source)
    cast(nn.Parameter, layer.bias).data = torch.zeros(outputs)
    return layer


def lstm(inputs: int, hidden: int, source: Source) -> nn.LSTM:
    """A one-way LSTM of one layer, batch first: weights uniform in +-1 / sqrt(hidden), and a forget gate open at first."""
    layer = nn.LSTM(inputs, hidden, batch_first=True, device="meta").to_empty(device="cpu")
    for parameter in layer.parameters():
        parameter.data = _symmetric(tuple(parameter.shape), 1 / math.sqrt(hidden), source)
    layer.bias_ih_l0.data[hidden : 2 * hidden] = 1.0  # pyright: ignore
    return layer


def _symmetric(shape: tuple[int, ...], most: float, source: Source) -> Tensor:
    return (2 * random.uniform(shape, source, torch.get_default_dtype()) - 1) * most


def kept(shape: tuple[int, ...], rate: float, source: Source | None, like: Tensor) -> Tensor | None:
    """0 with probability `rate`, else 1 / (1 - rate), independently; None where nothing is dropped.

    References: Srivastava et al. (2014), Dropout.
    """
    if source is None or not rate:
        return None
    return (random.uniform(shape, source, like.dtype).to(like.device) >= rate).to(like.dtype) / (1 - rate)


def dropped(x: Float[Tensor, "batch places size"], rate: float, source: Source | None) -> Float[Tensor, "batch places size"]:
    """x with components dropped: the same of a sentence at all its places (Gal, Ghahramani 2016)."""
    mask = kept((len(x), 1, x.shape[-1]), rate, source, x)
    return x if mask is None else x * mask


def replaced(
    ids: Int[Tensor, "*shape"], by: int, probability: Float[Tensor, "*shape"], source: Source | None
) -> Int[Tensor, "*shape"]:
    """ids, each replaced with its own probability; as they are without a source."""
    if source is None:
        return ids
    return torch.where(random.uniform(ids.shape, source, torch.float32).to(ids.device) < probability, by, ids)


@final
class BiLSTM(nn.Module):
    """h_t = [forward LSTM of x_1..x_t; backward LSTM of x_T..x_t], each sentence turned within its own length.

    Turning by indices in place of packing keeps all on the device, and padding out of both directions.

    References: Graves and Schmidhuber (2005).
    """

    def __init__(self, inputs: int, hidden: int, *, source: Source):
        super().__init__()
        self.ahead, self.back = lstm(inputs, hidden, source), lstm(inputs, hidden, source)

    def forward(
        self, x: Float[Tensor, "batch places inputs"], mask: Bool[Tensor, "batch places"]
    ) -> Float[Tensor, "batch places two_hidden"]:
        turn = turned(mask)[..., None]
        back = self.back(x.gather(1, turn.expand_as(x)))[0]
        return torch.cat((self.ahead(x)[0], back.gather(1, turn.expand_as(back))), -1)


def turned(mask: Bool[Tensor, "batch places"]) -> Int[Tensor, "batch places"]:
    """The place that each place changes with when sentences, which begin at place 0, are turned round."""
    place = torch.arange(mask.shape[1], device=mask.device)
    last = mask.sum(1, keepdim=True) - 1
    return torch.where(mask, last - place, place)
