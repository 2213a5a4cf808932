"""Small discrete models, exactly: all states, log Z and probabilities by enumeration."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..check import instance
from ..model import as_model, device_of, evaluate
from ..space import Discrete, Space, Tokens

_LIMIT = 1 << 24


def states(space: Space) -> Int[Tensor, "states *event"]:
    """Every state of a discrete space, in lexicographic order: the first site changes slowest.

    Example:
        >>> import gibbsite as gb
        >>> gb.exact.states(gb.Binary(2)).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if isinstance(space, Tokens):
        all_ids = states(space.padded)
        ended = (all_ids == space.eos).cumsum(-1) > 0
        return all_ids[(~ended | (all_ids == space.eos)).all(-1)]
    if not isinstance(space, Discrete):
        raise TypeError(f"space: expected a discrete space, got {space}")
    count = space.states**space.sites
    if count > _LIMIT:
        raise ValueError(f"space: {space.states}^{space.sites} states are too many to enumerate; the limit is {_LIMIT:,}")
    code = torch.arange(count)[:, None]
    place = space.states ** torch.arange(space.sites - 1, -1, -1)
    return (code // place % space.states).to(space.dtype).view(-1, *space.shape)


def index(space: Discrete, x: Int[Tensor, "..."]) -> Int[Tensor, "*batch"]:
    """The place of each state in `states(space)`."""
    instance(space, Discrete, "space")
    if space.states**space.sites > 1 << 63:
        raise ValueError(f"space: expected at most 2^63 states, whose places fit an int64, got {space.states}^{space.sites}")
    place = space.states ** torch.arange(space.sites - 1, -1, -1, device=x.device)
    return (x.reshape(*space.batch(x), -1).long() * place).sum(-1)


def potentials(model: Callable[[Tensor], Tensor], *, space: Space | None = None) -> Float[Tensor, " states"]:
    """U of every state, in the order of `states`; -inf where a state is impossible."""
    model = as_model(model, space)
    every = states(model.space).to(device_of(model))
    return torch.cat([evaluate(model, part) for part in every.split(1 << 16)])


def log_z(model: Callable[[Tensor], Tensor], *, space: Space | None = None) -> Float[Tensor, ""]:
    """log Z = log sum_x exp U(x), in double precision.

    Example:
        >>> import torch, gibbsite as gb
        >>> gb.exact.log_z(gb.Binary(3).uniform()).abs().item() < 1e-6
        True
    """
    return potentials(model, space=space).double().logsumexp(0)


def probabilities(model: Callable[[Tensor], Tensor], *, space: Space | None = None) -> Float[Tensor, " states"]:
    """p(x) of every state, in the order of `states` and in double precision."""
    return potentials(model, space=space).double().softmax(0)
