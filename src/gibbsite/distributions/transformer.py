"""A causal transformer as the conditional of an autoregressive distribution, with the keys and values it has read kept."""

import math
from typing import cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from .. import random
from ..check import instance, number
from ..random import Seed, Source
from ..space import whole
from .conditionals import dropped
from .incremental import Incremental, State
from .kept import Kept


@final
class Transformer(Incremental):
    """Blocks x + Attention(LayerNorm x), x + MLP(LayerNorm x), over embeddings of tokens and of `length` places.

    A readout of its own is there unless `tied`: then logits are products with the embeddings. Weights start at N(0, 0.02^2),
    those that add to x at that over sqrt(2 layers). While learning, components of the embeddings, and of what each part
    adds, are dropped with probability `dropout`. The state holds the keys and values of what was read.

    References: Vaswani et al. (2017), Attention is all you need; Radford et al. (2019), Language models are unsupervised
        multitask learners; Xiong et al. (2020), On layer normalization in the transformer architecture; Press and Wolf
        (2017), Using the output embedding to improve language models.

    Example:
        >>> import gibbsite as gb
        >>> network = gb.distributions.Transformer(4, length=6, width=8, seed=0)
        >>> q = gb.distributions.Autoregressive(network, gb.Tokens(length=6, vocabulary=4, eos=0))
        >>> q.sample(2, seed=0).shape
        torch.Size([2, 6])
    """

    def __init__(
        self, vocabulary: int, length: int, width: int = 64, layers: int = 2, heads: int = 4, dropout: float = 0.0,
        tied: bool = True, *, seed: Seed,
    ):  # fmt: skip
        super().__init__()
        self.vocabulary, self.length = whole(vocabulary, "vocabulary", 2), whole(length, "length")
        self.dropout, layers, heads = (
            number(dropout, "dropout", least=0, below=1),
            whole(layers, "layers"),
            whole(heads, "heads"),
        )
        if whole(width, "width") % heads:
            raise ValueError(f"width: expected a multiple of heads={heads}, got {width}")
        source = random.generator(seed)
        self.tokens, self.places = _embedding(vocabulary + 1, width, source), _embedding(length, width, source)
        self.blocks = nn.ModuleList(
            [_Block(width, heads, dropout, 0.02 / math.sqrt(2 * layers), source) for _ in range(layers)]
        )
        self.norm = nn.LayerNorm(width)
        self.readout = None if tied else _linear(width, vocabulary, 0.02, source)

    def start(self, n: int) -> State:
        shape, like = (n, 2, cast(_Block, self.blocks[0]).heads, 0), self.places.weight
        return Kept(tuple(like.new_empty(*shape, like.shape[1] // shape[2]) for _ in self.blocks), 0)

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        past = instance(state, Kept, "state")
        first, last = past.places, past.places + tokens.shape[1]
        if last > self.length:
            raise ValueError(f"previous: expected at most length={self.length} tokens, the start among them, got {last}")
        x = dropped(self.tokens(tokens) + self.places.weight[first:last], self.dropout, source)
        mask = _later(first, last, x.device) if first and tokens.shape[1] > 1 else None
        room, kept = past.room(tokens.shape[1], self.length), []
        for layer, block in enumerate(self.blocks):
            x, read = block(x, past.read(layer), None if room is None else room.layers[layer], mask, source)
            kept.append(read)
        x = self.norm(x)
        logits = functional.linear(x, self.tokens.weight[: self.vocabulary]) if self.readout is None else self.readout(x)
        return logits, Kept(tuple(kept), last) if room is None else room


@final
class _Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, least: float, source: Source):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.mix = _linear(width, 3 * width, 0.02, source), _linear(width, width, least, source)
        self.widen, self.narrow = _linear(width, 4 * width, 0.02, source), _linear(4 * width, width, least, source)

    def forward(
        self,
        x: Float[Tensor, "n t width"],
        past: Float[Tensor, "n 2 heads s size"],
        room: Float[Tensor, "n 2 heads more size"] | None,
        mask: Tensor | None,
        source: Source | None,
    ) -> tuple[Float[Tensor, "n t width"], Float[Tensor, "n 2 heads s_and_t size"]]:
        asked = self.ask(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(0, 2, 3, 1, 4)
        read = _joined(past, asked[:, 1:], room)
        alone = mask is None and x.shape[1] > 1
        mixed = functional.scaled_dot_product_attention(asked[:, 0], read[:, 0], read[:, 1], mask, is_causal=alone)
        x = x + dropped(self.mix(mixed.transpose(1, 2).flatten(2)), self.dropout, source)
        return x + dropped(self.narrow(functional.gelu(self.widen(self.second(x)))), self.dropout, source), read


def _joined(past: Tensor, new: Tensor, room: Tensor | None) -> Float[Tensor, "n 2 heads s_and_t size"]:
    """The keys and values read before, then the new ones: written into the room behind those, or copied together."""
    if room is None:
        return torch.cat((past, new), 3) if past.shape[3] else new
    read = room[..., : past.shape[3] + new.shape[3], :]
    read[..., past.shape[3] :, :] = new
    return read


def _later(first: int, last: int, device: torch.device) -> Tensor:
    """Which of the places 0, ..., last - 1 each of first, ..., last - 1 may read: itself and those before it."""
    place = torch.arange(last, device=device)
    return place <= place[first:, None]


def _embedding(count: int, width: int, source: Source) -> nn.Embedding:
    layer = cast(nn.Embedding, skip_init(nn.Embedding, count, width))
    layer.weight.data = 0.02 * random.normal((count, width), source, layer.weight.dtype)
    return layer


def _linear(inputs: int, outputs: int, scale: float, source: Source) -> nn.Linear:
    layer = cast(nn.Linear, skip_init(nn.Linear, inputs, outputs))
    layer.weight.data = scale * random.normal((outputs, inputs), source, layer.weight.dtype)
    layer.bias.data = torch.zeros_like(layer.bias)
    return layer
