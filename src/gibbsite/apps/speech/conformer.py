"""A small Conformer: self-attention with rotary positions, and convolution, over stacked frames."""

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ...random import Source
from .encoder import Encoder, dropped, stacked, within
from .errors import SpeechError


@final
class Conformer(Encoder):
    """Blocks of half a feed-forward layer, self-attention, convolution, half a feed-forward layer, each added to its input.

    Positions enter by rotation of queries and keys, so that attention knows distances only; convolutions are normed a frame
    at a time, so that padding and the rest of a batch change nothing.

    References: Gulati et al. (2020), Conformer; Su et al. (2021), RoFormer, for rotary positions.
    """

    def __init__(
        self, size: int, width: int = 96, layers: int = 4, heads: int = 4, kernel: int = 15, subsample: int = 3,
        dropout: float = 0.1,
    ):  # fmt: skip
        super().__init__(width, subsample)
        if width % (2 * heads) or kernel % 2 == 0:
            raise SpeechError(f"width, kernel: expected a multiple of {2 * heads} and an odd number, got {width}, {kernel}")
        self.dropout = dropout
        self.inward = nn.Linear(size * subsample, width)
        self.blocks = nn.ModuleList([_Block(width, heads, kernel, dropout) for _ in range(layers)])

    def forward(
        self, features: Float[Tensor, "batch frames size"], lengths: Int[Tensor, " batch"], source: Source | None = None
    ) -> Float[Tensor, "batch fewer width"]:
        hidden = dropped(self.inward(stacked(features, self.subsample)), self.dropout, source)
        there = within(self.frames(lengths), hidden.shape[1])
        for block in self.blocks:
            hidden = block(hidden, there, source)
        return hidden


@final
class _Block(nn.Module):
    def __init__(self, width: int, heads: int, kernel: int, dropout: float):
        super().__init__()
        self.first, self.second = _Forward(width, dropout), _Forward(width, dropout)
        self.attention, self.convolution = _Attention(width, heads, dropout), _Convolution(width, kernel, dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, there: Bool[Tensor, "batch frames"], source: Source | None) -> Tensor:
        x = x + self.first(x, source) / 2
        x = x + self.attention(x, there, source)
        x = x + self.convolution(x, there, source)
        return self.norm(x + self.second(x, source) / 2)


@final
class _Forward(nn.Module):
    def __init__(self, width: int, dropout: float):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), dropout
        self.inward, self.outward = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, source: Source | None) -> Tensor:
        hidden = dropped(functional.silu(self.inward(self.norm(x))), self.dropout, source)
        return dropped(self.outward(hidden), self.dropout, source)


@final
class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.norm, self.heads, self.dropout = nn.LayerNorm(width), heads, dropout
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, there: Bool[Tensor, "batch frames"], source: Source | None) -> Tensor:
        queries, keys, values = self.inward(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mask = there[:, None, None, :] | ~there.any(1)[:, None, None, None]
        mixed = functional.scaled_dot_product_attention(rotated(queries), rotated(keys), values, attn_mask=mask)
        return dropped(self.outward(mixed.transpose(1, 2).flatten(2)), self.dropout, source)


@final
class _Convolution(nn.Module):
    def __init__(self, width: int, kernel: int, dropout: float):
        super().__init__()
        self.norm, self.inner, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), dropout
        self.inward, self.outward = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.over_time = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)

    def forward(self, x: Tensor, there: Bool[Tensor, "batch frames"], source: Source | None) -> Tensor:
        hidden = functional.glu(self.inward(self.norm(x)), -1) * there[:, :, None]
        hidden = self.over_time(hidden.mT).mT
        return dropped(self.outward(functional.silu(self.inner(hidden))), self.dropout, source)


def rotated(x: Float[Tensor, "batch heads frames even"]) -> Float[Tensor, "batch heads frames even"]:
    """Pairs (k, k + half) of frame t turned by the angle t 10000^(-k / half): products then depend on distances alone."""
    half = x.shape[-1] // 2
    speed = 10000 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    angle = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)[:, None] * speed
    a, b = x.split(half, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)
