"""What a recipe says of the model that it trains, so that later commands can load it, draw from it and bracket its log Z."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from torch import Tensor, nn

from ..report import RunDirectory
from ..sample.kernel import Kernel

Config = TypeVar("Config")


@final
@dataclass(frozen=True)
class Trained(Generic[Config]):
    """How a recipe's model is made, and what belongs to it; each a function of the recipe's configuration.

    `build` gives the model as it is before training: `run` trains it and ends with `directory.save_model(model)`, and
    `load` puts those weights back. `data` are states that it was trained on, `kernel` what draws from it (None: it is a
    Distribution, or cannot be drawn from), `image` the rows and columns of a state that is a picture.
    """

    build: Callable[[Config], nn.Module]
    data: Callable[[Config], Tensor]
    kernel: Callable[[Config], Kernel] | None = None
    image: Callable[[Config], tuple[int, int]] | None = None

    def load(self, config: Config, directory: RunDirectory) -> nn.Module:
        """The trained model that a run kept."""
        return directory.load_model(self.build(config)).eval().requires_grad_(False)
