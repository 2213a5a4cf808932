"""Conditional sampling: a boolean mask of the event's shape, true where a site is held at its starting value."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..model import Model, check_model
from ..space import Discrete, Space


def discrete(model: Model) -> Discrete:
    """The model's space, if it is a product of discrete sites."""
    space = check_model(model).space
    if not isinstance(space, Discrete):
        raise TypeError(f"kernel: expected a model on Binary or Categorical sites, got one on {space}")
    return space


def check_parity(model: Model, moves: int, name: str) -> None:
    """An error where an even number of single-bit moves would keep the parity of sum(x) for ever."""
    if discrete(model).states == 2 and moves % 2 == 0:
        raise ValueError(
            f"{name}: expected an odd number on two-state sites, got {moves}: an even number of flips keeps the parity of "
            "sum(x), so half of the states would never be reached"
        )


def as_mask(clamp: Tensor | None) -> Tensor | None:
    """The clamp as a tensor; a list or array of booleans is taken too."""
    return None if clamp is None else torch.as_tensor(clamp)


def check_mask(clamp: Tensor, space: Space) -> Bool[Tensor, "*event"]:
    """The clamp, if it is a mask of the event's shape that leaves something free."""
    clamp = torch.as_tensor(clamp)
    if clamp.dtype != torch.bool or tuple(clamp.shape) != space.shape:
        raise ValueError(f"clamp: expected a bool mask of shape {space.shape}, got {clamp.dtype} {tuple(clamp.shape)}")
    if clamp.all():
        raise ValueError("clamp: expected at least one free site, got a mask that holds them all")
    return clamp


def free_mask(model: Model, clamp: Tensor | None, device: torch.device) -> Bool[Tensor, " sites"]:
    """True at each site, in row-major order, that may move."""
    space = discrete(model)
    if clamp is None:
        return torch.ones(space.sites, dtype=torch.bool, device=device)
    return ~check_mask(clamp, space).flatten().to(device)


def free_sites(model: Model, clamp: Tensor | None, device: torch.device) -> Int[Tensor, " free"]:
    """Row-major indices of the sites that may move."""
    return free_mask(model, clamp, device).nonzero()[:, 0]


def check_blocks(blocks: Sequence[Sequence[int]], free: Int[Tensor, " free"], sites: int) -> list[Int[Tensor, " members"]]:
    """The blocks as indices of distinct sites, if every free site is in one: a site in none would never move."""
    try:
        checked = [torch.as_tensor(block, device=free.device) for block in blocks]
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"blocks: expected lists of sites such as [[0, 1], [2, 3]], got {blocks!r}") from None
    for place, block in enumerate(checked):
        if block.ndim != 1 or not len(block) or block.is_floating_point() or block.dtype == torch.bool:
            raise ValueError(f"blocks[{place}]: expected a list of sites such as [0, 1], got {blocks[place]!r}")
        if bool(((block < 0) | (block >= sites)).any()) or len(block.unique()) != len(block):
            raise ValueError(f"blocks[{place}]: expected distinct sites in [0, {sites}), got {block.tolist()}")
    moved = torch.cat(checked) if checked else free[:0]
    still = free[~torch.isin(free, moved)]
    if len(still):
        raise ValueError(
            f"blocks: expected every free site in a block, got none with site {int(still[0])}, which would never move; "
            "add it to a block, or hold it by clamp="
        )
    return [block.long() for block in checked]
