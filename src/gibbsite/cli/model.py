"""The model that a run trained, for the commands that use it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from ..algebra import Tilt
from ..estimate import fit_base
from ..model import Distribution, Model, device_of
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

    def data(self) -> Tensor:
        """States that the model was trained on."""
        return self.trained.data(self.config).to(device_of(self.model))

    def base(self) -> Distribution:
        """Where chains and annealing start: what the model is tilted from, else independent sites fitted to its data."""
        if isinstance(self.model, Tilt):
            return self.model.base
        return fit_base(self.model.space, self.data()).to(device_of(self.model))


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
