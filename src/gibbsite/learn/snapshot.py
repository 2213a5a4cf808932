"""All of a training run at one moment, as tensors and JSON: what a checkpoint holds and what a restart needs."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Snapshot(NamedTuple):
    """Tensors by name, and what else there is as JSON values."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


class Mismatch(ValueError):
    """A snapshot of something else than what it is to be restored into."""


def of_module(module: nn.Module, name: str) -> dict[str, Tensor]:
    """Copies of all parameters and buffers."""
    return {f"{name}.{key}": value.detach().clone() for key, value in module.state_dict().items()}


def into_module(module: nn.Module, name: str, tensors: Mapping[str, Tensor]) -> None:
    """Puts parameters and buffers back, if they are those of this module."""
    own = module.state_dict()
    given = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
    if problems := _differences(own, given):
        raise Mismatch(f"{name}: the checkpoint is of another model: {problems}")
    with torch.no_grad():
        for key, value in own.items():
            value.copy_(given[key])


def _differences(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str:
    for key in sorted(own.keys() ^ given.keys()):
        return f"{key} is {'missing' if key in own else 'not in the model'}"
    for key, value in own.items():
        if (value.shape, value.dtype) != (given[key].shape, given[key].dtype):
            return (
                f"{key} has shape {tuple(given[key].shape)} and type {given[key].dtype}, "
                f"expected {tuple(value.shape)} and {value.dtype}"
            )
    return ""


def of_optimiser(optimiser: torch.optim.Optimizer) -> Snapshot:
    """The optimiser's tensors and, as JSON, its numbers."""
    state = optimiser.state_dict()
    tensors, numbers = {}, {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{key}"] = value.detach().clone()
            else:
                numbers[f"{index}.{key}"] = value
    groups = [{key: _json(value) for key, value in group.items()} for group in state["param_groups"]]
    return Snapshot(tensors, {"groups": groups, "numbers": numbers})


def into_optimiser(optimiser: torch.optim.Optimizer, snapshot: Snapshot) -> None:
    """Puts the optimiser's state back."""
    entries: dict[int, dict[str, Any]] = {}
    for name, value in snapshot.tensors.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".", 2)
            entries.setdefault(int(index), {})[key] = value.clone()
    for name, number in snapshot.state["optimiser"]["numbers"].items():
        index, key = name.split(".", 1)
        entries.setdefault(int(index), {})[key] = number
    groups = [{k: tuple(v) if isinstance(v, list) and k == "betas" else v for k, v in group.items()}
              for group in snapshot.state["optimiser"]["groups"]]  # fmt: skip
    try:
        optimiser.load_state_dict({"state": entries, "param_groups": groups})
    except (ValueError, KeyError) as error:
        raise Mismatch(f"optimiser: the checkpoint is of another optimiser: {error}") from error


def _json(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    json.dumps(value)
    return value
