"""Networks as log-potentials: a perceptron on any space, and the residual convolutional network of the papers on images.

A potential has no output bias: a constant added to U changes log Z and not p. Weights are drawn from a generator made from
`seed`, never from torch's global one.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast, final

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import skip_init

from .. import random
from ..check import function
from ..model import Model, dtype_of
from ..random import Seed, Source
from ..space import Binary, Categorical, Real, Space, whole

Activation = Callable[[Tensor], Tensor]


@final
class MLP(Model):
    """U(x) = w.a(W_n a(... a(W_1 z + b_1) ...) + b_n), z the flattened float view of x, without an output bias.

    Weights and biases start uniform in +-1 / sqrt(inputs of the layer).

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.MLP(gb.Categorical(10, 4), hidden=(32,), seed=0)
        >>> model(model.space.uniform().sample(5, seed=1)).shape
        torch.Size([5])
    """

    def __init__(
        self,
        space: Space,
        hidden: Sequence[int] = (128, 128),
        *,
        activation: Activation = nn.functional.silu,
        seed: Seed = 0,
    ):
        super().__init__()
        if not isinstance(space, Real | Binary | Categorical):
            raise TypeError(f"space: expected Real, Binary or Categorical, got {space}")
        function(activation, "activation", "torch.tanh")
        hidden, source = [whole(width, "hidden") for width in hidden], random.generator(seed)
        view = (*space.shape, space.states) if isinstance(space, Categorical) else space.shape
        widths = (math.prod(view), *hidden)
        self.space, self.activation, self._view = space, activation, len(view)
        self.layers = nn.ModuleList([_linear(a, b, source) for a, b in pairwise(widths)])
        self.readout = _linear(widths[-1], 1, source, bias=False)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        z = self.space.embed(x, dtype_of(self))
        z = z.reshape(*z.shape[: z.ndim - self._view], -1)
        for layer in self.layers:
            z = self.activation(layer(z))
        return self.readout(z)[..., 0]


def perceptron(
    inputs: int, outputs: int, hidden: Sequence[int] = (), *, activation: type[nn.Module] = nn.SiLU, seed: Seed = 0
) -> nn.Sequential:
    """A network of linear layers from vectors to vectors, such as a decoder or an encoder; drawn as the layers of `MLP`.

    Example:
        >>> import torch
        >>> from gibbsite.models import perceptron
        >>> perceptron(2, 3, (16, 16), seed=0)(torch.zeros(5, 2)).shape
        torch.Size([5, 3])
    """
    widths, source = [whole(width, "widths") for width in (inputs, *hidden, outputs)], random.generator(seed)
    if not (isinstance(activation, type) and issubclass(activation, nn.Module)):
        raise TypeError(f"activation: expected a class of modules such as torch.nn.SiLU, got {activation!r}")
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [_linear(a, b, source), activation()]
    return nn.Sequential(*layers[:-1])


@final
class ResidualNet(Model):
    """A residual convolutional network on images: blocks of two 3 x 3 convolutions, mean-pooled, then a linear readout.

    Images are Binary((H, W)), Categorical((H, W), states), whose one-hot pixels get a learned linear embedding of
    `embedding` numbers, or Real((C, H, W)). The first `strided` blocks halve each side. Swish throughout, no normalisation
    layers, no output bias. The defaults are the sizes of Grathwohl et al. (2021).

    References: He et al. (2016); Grathwohl et al. (2021), appendix I.1; Ramachandran et al. (2017), for the activation.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.ResidualNet(gb.Binary((8, 8)), features=8, blocks=2, seed=0)
        >>> model(model.space.uniform().sample(5, seed=1)).shape
        torch.Size([5])
    """

    def __init__(
        self,
        space: Space,
        *,
        features: int = 64,
        blocks: int = 8,
        strided: int = 2,
        embedding: int = 4,
        activation: Activation = nn.functional.silu,
        seed: Seed = 0,
    ):
        super().__init__()
        features, blocks, embedding = whole(features, "features"), whole(blocks, "blocks"), whole(embedding, "embedding")
        function(activation, "activation", "torch.tanh")
        if whole(strided, "strided", 0) > blocks:
            raise ValueError(f"strided: expected 0 to {blocks} (the number of blocks), got {strided}")
        source = random.generator(seed)
        self.space = space
        self.image, channels = _image(space, embedding, source)
        self.stem = _convolution(channels, features, 3, source)
        self.blocks = nn.ModuleList(
            [_Residual(features, 2 if index < strided else 1, activation, source) for index in range(blocks)]
        )
        self.readout = _linear(features, 1, source, bias=False)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        batch = self.space.batch(x)
        z = self.space.embed(x, dtype_of(self))
        z = self.stem(self.image(z.reshape(-1, *z.shape[len(batch) :])))
        for block in self.blocks:
            z = block(z)
        return self.readout(z.mean((-2, -1)))[..., 0].reshape(batch)


@final
class _Residual(nn.Module):
    """a(skip(z) + C_2 a(C_1 z)); the skip is a 1 x 1 convolution where the stride changes the size."""

    def __init__(self, features: int, stride: int, activation: Activation, source: Source):
        super().__init__()
        self.first = _convolution(features, features, 3, source, stride)
        self.second = _convolution(features, features, 3, source)
        self.skip = nn.Identity() if stride == 1 else _convolution(features, features, 1, source, stride)
        self.activation = activation

    def forward(self, z: Tensor) -> Tensor:
        return self.activation(self.skip(z) + self.second(self.activation(self.first(z))))


@final
class _OneChannel(nn.Module):
    """(n, H, W) as images of one channel."""

    def forward(self, z: Float[Tensor, "n height width"]) -> Float[Tensor, "n 1 height width"]:
        return z[:, None]


@final
class _EmbeddedPixels(nn.Module):
    """One-hot pixels through a linear map without a bias."""

    def __init__(self, states: int, embedding: int, source: Source):
        super().__init__()
        self.linear = _linear(states, embedding, source, bias=False)

    def forward(self, z: Float[Tensor, "n height width states"]) -> Float[Tensor, "n channels height width"]:
        return self.linear(z).movedim(-1, 1)


def _image(space: Space, embedding: int, source: Source) -> tuple[nn.Module, int]:
    """What turns the float view of a space into images, and how many channels they have."""
    if isinstance(space, Binary) and len(space.shape) == 2:
        return _OneChannel(), 1
    if isinstance(space, Categorical) and len(space.shape) == 2:
        return _EmbeddedPixels(space.states, embedding, source), embedding
    if isinstance(space, Real) and len(space.shape) == 3:
        return nn.Identity(), space.shape[0]
    raise ValueError(f"space: expected Binary((H, W)), Categorical((H, W), states) or Real((C, H, W)), got {space}")


def _linear(inputs: int, outputs: int, source: Source, *, bias: bool = True) -> nn.Linear:
    return cast(nn.Linear, _drawn(skip_init(nn.Linear, inputs, outputs, bias=bias), inputs, source))


def _convolution(inputs: int, outputs: int, size: int, source: Source, stride: int = 1) -> nn.Conv2d:
    layer = skip_init(nn.Conv2d, inputs, outputs, size, stride=stride, padding=size // 2)
    return cast(nn.Conv2d, _drawn(layer, inputs * size**2, source))


def _drawn(layer: nn.Module, inputs: int, source: Source) -> nn.Module:
    """The layer with all its parameters uniform in +-1 / sqrt(inputs)."""
    for parameter in layer.parameters():
        draw = random.uniform(parameter.shape, source, parameter.dtype)
        parameter.data = (2 * draw - 1) / math.sqrt(inputs)
    return layer
