"""Weight normalisation with data-dependent initialisation: the scale of every layer's inputs is set once, on real data."""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from ..check import instance

_LAYERS = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


@torch.no_grad()
def weight_normalised(module: nn.Module, data: Shaped[Tensor, "batch *event"]) -> nn.Module:
    """The module, in place, with weights w = g v / |v| in each linear or convolutional layer, row by row, g and v learned.

    One pass over `data` sets g and the bias b of every layer so that its outputs t = w.z + b, channel by channel, have
    mean 0 and variance 1 there; each layer sees what the layers before it give once they are set. A layer without a bias
    (the readout of a potential) is normalised with the outputs that it had.

    References: Salimans and Kingma (2016), Weight normalization, section 3; Xiao et al. (2021), VAEBM, appendix E.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.MLP(gb.Real(2), (16,), seed=0)
        >>> data = 3 + gb.distributions.Normal.standard(2).sample(1000, seed=0)
        >>> _ = gb.learn.weight_normalised(model, data)
        >>> outputs = model.layers[0](data)
        >>> bool(outputs.mean(0).abs().max() < 1e-4) and bool((outputs.std(0) - 1).abs().max() < 1e-2)
        True
    """
    layers = [layer for layer in instance(module, nn.Module, "module").modules() if isinstance(layer, _LAYERS)]
    if not layers or any(parametrize.is_parametrized(layer) for layer in layers):
        raise ValueError(
            "module: expected linear or convolutional layers without a parametrisation, got none or some with one"
        )
    if len(data) < 2:
        raise ValueError(f"data: expected at least 2 examples to take a variance of, got {len(data)}")
    handles = []
    for layer in layers:
        weight_norm(layer)
        if layer.bias is not None:
            handles.append(layer.register_forward_hook(_set))
    try:
        module(data)
    finally:
        for handle in handles:
            handle.remove()
    return module


def _set(layer: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Sets g and b so that this output has mean 0 and variance 1 in each channel, and returns what it then is."""
    channel = -1 if isinstance(layer, nn.Linear) else 1
    values = output.movedim(channel, 0).flatten(1)
    mean, scale = values.mean(1), values.std(1)
    if not bool((scale > 0).all()):
        raise ValueError(
            f"data: channel {int(scale.argmin())} of {layer} is the same for all examples; give more varied data"
        )
    length = layer.get_parameter("parametrizations.weight.original0")
    length.div_(scale.view(-1, *[1] * (length.ndim - 1)))
    layer.get_parameter("bias").sub_(mean).div_(scale)
    shape = [1] * output.ndim
    shape[channel] = -1
    return (output - mean.view(shape)) / scale.view(shape)
