"""Gradients that are means over all processes, and their norm, whether each process holds whole parameters or parts."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ..processes import Group, sharded
from .objective import Objective


def wrapped(objective: Objective, group: Group) -> nn.Module:
    """The objective with gradients averaged over the processes (DDP); each keeps its own chains and running averages.

    A loss may leave parameters out (a proposal's, which is not learned), always the same ones: `static_graph`. One with
    sharded parameters (FSDP2) averages those itself, and `averaged` the others.
    """
    if group.size == 1 or sharded(objective):
        return objective
    with warnings.catch_warnings():
        # torch's warning says to go on so where buffers differ from process to process, as chains do
        warnings.simplefilter("ignore", FutureWarning)
        return nn.parallel.DistributedDataParallel(objective, broadcast_buffers=False, static_graph=True)


def averaged(objective: Objective, group: Group) -> None:
    """Averages over the processes what nothing else does: gradients of whole parameters beside sharded ones."""
    if group.size > 1 and sharded(objective):
        for parameter in objective.parameters():
            if parameter.grad is not None and not isinstance(parameter, DTensor):
                parameter.grad.copy_(group.mean(parameter.grad))


def norm(parameters: Sequence[Tensor]) -> Tensor:
    """The norm of all gradients together, the parts that other processes hold included."""
    held = [parameter.grad for parameter in parameters if parameter.grad is not None]
    kinds = [[g for g in held if isinstance(g, DTensor)], [g for g in held if not isinstance(g, DTensor)]]
    norms = [torch.nn.utils.get_total_norm(kind) for kind in kinds if kind] or [torch.zeros(())]
    norms = [part.full_tensor() if isinstance(part, DTensor) else part for part in norms]
    return norms[0] if len(norms) == 1 else torch.stack(norms).norm()


@torch.no_grad()
def bound(parameters: Sequence[Tensor], most: float, size: Tensor) -> None:
    """Shrinks gradients of norm `size` to norm `most`, if they are larger."""
    whole = [parameter for parameter in parameters if not isinstance(parameter, DTensor)]
    nn.utils.clip_grads_with_norm_(whole, most, size)
    for parameter in parameters:
        if isinstance(parameter, DTensor) and parameter.grad is not None:
            local = parameter.grad.to_local() if isinstance(parameter.grad, DTensor) else parameter.grad
            local.mul_((most / (size + 1e-6)).clamp(max=1.0))
