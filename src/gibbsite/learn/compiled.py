"""U of mini-batches with a graph to the parameters, by a compiled loop where there is one: the same numbers, sooner.

Losses don't know of it: they ask `potentials`, as `gibbsite.run` asks `gibbsite.sample.compiled`.
"""

from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from .._fast.product import product
from .._fast.rbm_marginal import marginalise
from ..models.rbm import RBM


def potentials(model: Callable[[Tensor], Tensor], *batches: Tensor) -> tuple[Tensor, ...]:
    """U of each batch. An RBM in float32 on the CPU takes them all by one product, and their gradient by another.

    Example:
        >>> import torch, gibbsite as gb
        >>> rbm = gb.models.RBM.random(6, 3, seed=0)
        >>> x = rbm.space.uniform().sample(5, seed=0)
        >>> (u,) = potentials(rbm, x)
        >>> torch.allclose(u, rbm(x))
        True
    """
    if not isinstance(model, RBM) or not _covers(model, batches):
        return tuple(model(x) for x in batches)
    z = torch.cat([model.space.embed(x, torch.float32) for x in batches])
    u, _ = _Marginal.apply(z, model.weight, model.visible_bias, model.hidden_bias)  # pyright: ignore
    return u.split([len(x) for x in batches])


def _covers(model: RBM, batches: tuple[Tensor, ...]) -> bool:
    """Whether these are plain batches of states, float32 weights in plain memory, and all on the CPU."""
    tensors = (*model.parameters(), *batches)
    plain = all(type(p) is torch.nn.Parameter and p.dtype == torch.float32 for p in model.parameters())
    return (
        plain and all(t.device.type == "cpu" for t in tensors) and all(x.ndim == 2 and not x.requires_grad for x in batches)
    )


@final
class _Marginal(torch.autograd.Function):
    """U = z.b + sum_j log(1 + exp(c + W z)_j) and sigmoid(c + W z), which the gradient is made of."""

    @staticmethod
    def forward(
        z: Float[Tensor, "n visible"],
        weight: Float[Tensor, "hidden visible"],
        visible_bias: Float[Tensor, " visible"],
        hidden_bias: Float[Tensor, " hidden"],
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, "n hidden"]]:
        probability = product(z.numpy(), weight.detach().numpy().T)
        u = (z @ visible_bias).double()
        marginalise(probability, hidden_bias.detach().numpy(), u.numpy())
        return u.to(z.dtype), torch.from_numpy(probability)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
        z, weight, _, hidden_bias = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(z, weight, hidden_bias, output[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        z, weight, hidden_bias, probability = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated: torch takes it
            scaled = slope[:, None] * torch.sigmoid(z @ weight.T + hidden_bias)
            return None, scaled.T @ z, slope @ z, scaled.sum(0)
        scaled = slope[:, None] * probability
        return None, torch.from_numpy(product(scaled.numpy().T, z.numpy())), slope @ z, scaled.sum(0)
