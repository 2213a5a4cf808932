"""All of a training run at one moment, as tensors and JSON: what a checkpoint holds and what a restart needs."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


class CheckpointError(Exception):
    """A checkpoint that cannot be used, and what to do."""


class Snapshot(NamedTuple):
    """Tensors by name, and what else there is as JSON values."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def local(tensor: Tensor) -> Tensor:
    """This process's part of a tensor, if it is sharded; sharing its memory, without a graph."""
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def of_module(module: nn.Module, name: str) -> dict[str, Tensor]:
    """Copies of all parameters and buffers."""
    return {f"{name}.{key}": local(value).clone() for key, value in module.state_dict().items()}


def into_tensors(own: Mapping[str, Tensor], name: str, tensors: Mapping[str, Tensor]) -> None:
    """Copies what a snapshot holds under a name into the tensors it was taken of."""
    for key, value in own.items():
        local(value).copy_(tensors[f"{name}.{key}"])


def check_tensors(own: Mapping[str, Tensor], name: str, tensors: Mapping[str, Tensor]) -> None:
    """An error that names the first difference, if the snapshot holds tensors of other names, shapes or types."""
    given = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
    for key in sorted(own.keys() ^ given.keys()):
        lack = "does not hold" if key in own else "also holds"
        raise CheckpointError(f"{name}: the checkpoint is of another model: it {lack} {key}")
    for key, value in own.items():
        want, got = local(value), given[key]
        if (want.shape, want.dtype) != (got.shape, got.dtype):
            raise CheckpointError(
                f"{name}: the checkpoint is of another model: expected {key} of shape {tuple(want.shape)} and type "
                f"{want.dtype}, got {tuple(got.shape)} and {got.dtype}"
            )


def of_optimiser(optimiser: torch.optim.Optimizer) -> Snapshot:
    """The optimiser's tensors and, as JSON, its numbers."""
    state = optimiser.state_dict()
    tensors, numbers = {}, {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{key}"] = local(value).clone()
            else:
                numbers[f"{index}.{key}"] = value
    groups = [{key: _json(value) for key, value in group.items()} for group in state["param_groups"]]
    return Snapshot(tensors, {"groups": groups, "numbers": numbers})


def into_optimiser(optimiser: torch.optim.Optimizer, snapshot: Snapshot) -> None:
    """Puts the optimiser's state back."""
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    entries: dict[int, dict[str, Any]] = {}
    for name, value in snapshot.tensors.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".", 2)
            entries.setdefault(int(index), {})[key] = _like(value.clone(), parameters[int(index)])
    for name, number in snapshot.state["optimiser"]["numbers"].items():
        index, key = name.split(".", 1)
        entries.setdefault(int(index), {})[key] = number
    groups = [{k: tuple(v) if isinstance(v, list) and k == "betas" else v for k, v in group.items()}
              for group in snapshot.state["optimiser"]["groups"]]  # fmt: skip
    optimiser.load_state_dict({"state": entries, "param_groups": groups})


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    """This process's part of a sharded parameter's statistic as what it is part of."""
    if not isinstance(parameter, DTensor) or not value.ndim:
        return value
    return DTensor.from_local(
        value, parameter.device_mesh, parameter.placements, shape=parameter.shape, stride=parameter.stride()
    )


def _json(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    json.dumps(value)
    return value
