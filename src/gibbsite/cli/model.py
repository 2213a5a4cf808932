"""The model that a run trained, for the commands that use it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from ..model import Model
from ..recipes import RECIPES, Trained
from ..report import RunDirectory
from .runs import recipe_of
from .words import UsageError, opened


@final
@dataclass(frozen=True)
class Loaded:
    """A run, its configuration, and the model with its trained weights."""

    directory: RunDirectory
    config: Any
    trained: Trained[Any]
    model: Model


def loaded(path: Path, device: str) -> Loaded:
    """The model that a run kept, on a device."""
    directory = opened(path)
    recipe, config = recipe_of(directory)
    if (trained := recipe.trained) is None:
        others = ", ".join(name for name, other in RECIPES.items() if other.trained)
        raise UsageError(f"{path}: a run of {directory.config()['recipe']}, which keeps no model; recipes that do: {others}")
    model = trained.load(config, directory)
    if not isinstance(model, Model):
        raise UsageError(f"{path}: its {type(model).__name__} gives models of contexts, and is not one itself")
    try:
        return Loaded(directory, config, trained, model.to(torch.device(device)))
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"--device {device}: {str(error).splitlines()[0]}") from error
