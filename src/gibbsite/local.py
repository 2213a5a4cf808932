"""The two local views of U that every sampler and loss asks for: `score` (continuous) and `site_logits` (discrete)."""

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from .model import (
    ClosedForm,
    ClosedScore,
    Composite,
    Model,
    Multilinear,
    as_model,
    check_potential,
    dtype_of,
    evaluate,
    potential,
    tell,
)
from .space import Discrete, Space

How = Literal["exact", "taylor", "enumerate"]
_MEMORY = 1 << 24  # sites held at once while enumerating neighbours


def score(
    model: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "..."],
    *,
    space: Space | None = None,
    start: bool = True,
    graph: bool = False,
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "..."]]:
    """U(x) and its gradient with respect to the float view of x; with `graph`, both can be differentiated again.

    x may be states or their float view. Both x and U are checked, except for what a kernel proposes (`start=False`).

    Example:
        >>> import torch, gibbsite as gb
        >>> u, gradient = gb.score(lambda x: -0.5 * x.square().sum(-1), torch.tensor([[3.0, 4.0]]), space=gb.Real(2))
        >>> u.tolist(), gradient.tolist()
        ([-12.5], [[-3.0, -4.0]])
    """
    model = as_model(model, space)
    if start and not (isinstance(model.space, Discrete) and x.is_floating_point()):
        x = model.space.check(x)
    if isinstance(model, ClosedScore):
        with torch.set_grad_enabled(graph):
            u, gradient = model.closed_score(x.detach())
        tell(u.numel(), u.numel())
        return check_potential(u, x, model.space.batch(x), start=start), gradient
    with torch.enable_grad():
        z = model.space.embed(x.detach(), None if x.is_floating_point() else dtype_of(model)).requires_grad_()
        u = potential(model, z)
        reached = u.requires_grad
        gradient = torch.autograd.grad(u.sum(), z, allow_unused=True, create_graph=graph)[0] if reached else None
    tell(u.numel(), u.numel())
    u = check_potential(u if graph else u.detach(), x, model.space.batch(x), start=start)
    return u, torch.zeros_like(z) if gradient is None else gradient


def site_logits(
    model: Callable[[Tensor], Tensor],
    x: Int[Tensor, "batch *event"],
    how: How = "exact",
    *,
    sites: Int[Tensor, "batch m"] | None = None,
    space: Space | None = None,
    start: bool = True,
    graph: bool = False,
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch m states"]]:
    """U(x), and for each site i and state k the change U(x with x_i = k) - U(x): 0 in the current state's column.

    `exact`: the model's closed form where it has one, else every neighbour is evaluated (`enumerate` forces that).
    `taylor`: first order in the float view, one gradient: d_ik = dU/dz_ik - dU/dz_i,x_i (Grathwohl et al. 2021, eq. 3);
    on a multilinear model that is exact, and its closed form is taken instead of differentiating.
    The change is returned, not U itself, so that float32 keeps its digits; U[:, None, None] + change is the table of U.
    `sites` (row-major indices, one row a state) asks for some sites only. With `graph` the result can be differentiated
    with respect to the model's parameters, as a loss needs.

    Example:
        >>> import torch, gibbsite as gb
        >>> u, change = gb.site_logits(lambda x: 2.0 * x[..., 0].float(), torch.tensor([[0, 1]]), space=gb.Binary(2))
        >>> change.tolist()
        [[[0.0, 2.0], [0.0, 0.0]]]
    """
    model = as_model(model, space)
    if not isinstance(model.space, Discrete):
        raise TypeError(f"site_logits: expected a model on Binary or Categorical sites, got one on {model.space}")
    if start:
        x = model.space.check(x)
    if x.ndim != 1 + len(model.space.shape) or (sites is not None and len(sites) != len(x)):
        raise ValueError(
            f"x, sites: expected (batch, {', '.join(map(str, model.space.shape))}) and one row of sites a state, "
            f"got {tuple(x.shape)} and {None if sites is None else tuple(sites.shape)}"
        )
    if how == "taylor" and not _is_multilinear(model):
        return _taylor(model, model.space, x, sites, start, graph)
    if how not in ("exact", "taylor", "enumerate"):
        raise ValueError(f"how: expected 'exact', 'taylor' or 'enumerate', got {how!r}")
    u = evaluate(model, x, start=start, graph=graph)
    if how == "taylor":  # multilinear: the closed form is the gradient, at its cost
        tell(0, len(x))
        with torch.set_grad_enabled(graph):
            return u, _sum_closed_forms(model, x, sites)
    if how == "exact" and has_closed_form(model):
        with torch.set_grad_enabled(graph):
            return u, closed_changes(model, x, sites)
    return u, _enumerated(model, model.space, x, u, sites, graph)


def site_changes(model: Model, space: Discrete, x: Tensor, u: Tensor, sites: Tensor) -> Float[Tensor, "batch m states"]:
    """The exact changes of `site_logits` at `sites`, for a caller that knows U(x) already."""
    if has_closed_form(model):
        with torch.no_grad():
            return closed_changes(model, x, sites)
    return _enumerated(model, space, x, u, sites)


def changes_cost(model: Model, space: Discrete, sites: int) -> float:
    """Evaluations of U that the exact changes at that many sites take; a closed form of all sites counts as one."""
    return sites / space.sites if has_closed_form(model) else sites * (space.states - 1)


def closed_changes(model: Model, x: Tensor, sites: Tensor | None) -> Float[Tensor, "batch m states"]:
    """The changes of U at `sites` (None: all) of a model with `has_closed_form`."""
    assert isinstance(model.space, Discrete)
    tell(len(x) * (1.0 if sites is None else sites.shape[1] / model.space.sites))
    return _sum_closed_forms(model, x, sites)


def has_closed_form(model: Model) -> bool:
    """Whether all one-site changes are known without enumeration: in closed form, or as a sum of such."""
    if isinstance(model, Composite):
        return all(has_closed_form(term) for _, term in model.terms())
    return isinstance(model, ClosedForm)


def _is_multilinear(model: Model) -> bool:
    if isinstance(model, Composite):
        return all(_is_multilinear(term) for _, term in model.terms())
    return isinstance(model, Multilinear)


def _sum_closed_forms(model: Model, x: Tensor, sites: Tensor | None) -> Tensor:
    if isinstance(model, Composite):
        terms = (weight * _sum_closed_forms(term, x, sites) for weight, term in model.terms())
        return sum(terms, torch.zeros((), device=x.device))
    assert isinstance(model, ClosedForm)
    return model.site_logits(x, sites)


def _taylor(
    model: Model, space: Discrete, x: Tensor, sites: Tensor | None, start: bool, graph: bool
) -> tuple[Tensor, Tensor]:
    u, gradient = score(model, x, start=start, graph=graph)
    current = x.reshape(len(x), -1, 1)
    if gradient.ndim == x.ndim:  # binary: the view is the bit itself
        gradient = gradient.reshape(len(x), -1, 1)
        table = (torch.arange(2, device=x.device) - current.to(gradient.dtype)) * gradient
    else:
        gradient = gradient.reshape(len(x), space.sites, space.states)
        table = gradient - gradient.gather(-1, current.long())
    return u, table if sites is None else table.gather(1, sites[..., None].expand(-1, -1, space.states))


def _enumerated(model: Model, space: Discrete, x: Tensor, u: Tensor, sites: Tensor | None, graph: bool = False) -> Tensor:
    if sites is None:
        sites = torch.arange(space.sites, device=x.device).expand(len(x), -1)
    parts = []
    for part, others in _neighbours(space, x, sites):
        values = evaluate(model, others.reshape(-1, *space.shape), graph=graph).reshape(others.shape[:3])
        columns = others.gather(-1, sites[:, part, None, None].expand(*others.shape[:3], 1))[..., 0]
        table = u.new_zeros(*columns.shape[:2], space.states)
        parts.append(table.scatter(-1, columns.long(), values - u[:, None, None]))
    return torch.cat(parts, 1)


def _neighbours(space: Discrete, x: Tensor, sites: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Slices of sites with all neighbours there, shape (batch, sites of the slice, states - 1, all sites)."""
    flat = x.reshape(len(x), -1)
    width = max(1, _MEMORY // max(1, flat.numel() * (space.states - 1)))
    shift = torch.arange(1, space.states, device=x.device)
    for first in range(0, sites.shape[1], width):
        part = slice(first, min(first + width, sites.shape[1]))
        index = sites[:, part, None, None].expand(-1, -1, space.states - 1, 1)
        values = (flat.gather(1, sites[:, part]).long()[..., None] + shift) % space.states
        copies = flat[:, None, None].expand(-1, part.stop - first, space.states - 1, -1)
        yield part, copies.scatter(-1, index, values[..., None].to(x.dtype))
