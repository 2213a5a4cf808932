"""A multilayer perceptron on real states whose score is taken by a compiled loop instead of by differentiation."""

from typing import Any, final
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from .._fast import mlp
from ..model import ClosedScore, Model
from ..models.net import MLP

_KINDS = {
    nn.functional.silu: mlp.SILU,
    torch.tanh: mlp.TANH,
    nn.functional.softplus: mlp.SOFTPLUS,
    nn.functional.relu: mlp.RELU,
    torch.relu: mlp.RELU,
}


@final
class CompiledMLP(Model, ClosedScore):
    """The same U as `source`, which it reads anew at each call, for learning changes its weights in place."""

    def __init__(self, source: MLP):
        super().__init__()
        self.space = source.space
        self.made: tuple[object, ...] = ()
        self._source = ref(source)  # weak: the table of twins must not keep it alive
        matrices = [_array(layer.weight) for layer in source.layers]
        biases = [_array(layer.bias) for layer in source.layers]
        self._work = mlp.Workspace(matrices, biases, _array(source.readout.weight)[0], _KINDS[source.activation])

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        if x.requires_grad and (source := self._source()) is not None:  # a kernel that differentiates a model made of this
            return source(x)
        return self.closed_score(x)[0]

    def closed_score(self, x: Tensor) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "..."]]:
        flat = x.reshape(self.space.batch(x).numel(), -1).contiguous()
        u, gradient = torch.empty(len(flat)), torch.empty_like(flat)
        mlp.potential_and_score(flat.numpy(), u.numpy(), gradient.numpy(), self._work)
        return u.view(self.space.batch(x)), gradient.view_as(x)


_made: WeakKeyDictionary[MLP, CompiledMLP] = WeakKeyDictionary()


def covers(model: MLP) -> bool:
    """Whether the loops know its activation, and it has a hidden layer."""
    return model.activation in _KINDS and len(model.layers) > 0


def compiled(model: MLP) -> CompiledMLP:
    """The compiled twin of a model, made once unless a weight has moved to other memory or the activation is another."""
    made = (model.activation, *(parameter.data_ptr() for parameter in model.parameters()))
    twin = _made.get(model)
    if twin is None or twin.made != made:
        twin = _made[model] = CompiledMLP(model)
        twin.made = made
    return twin


def _array(parameter: Any) -> np.ndarray:
    return parameter.detach().numpy()
