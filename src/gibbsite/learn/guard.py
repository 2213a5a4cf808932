"""The divergence guard: a run that has gone wrong is stopped, and says where, by what, and why that may be."""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any, final

from ..space import whole

_CAUSES = {
    "loss": "a step size that is too large, data out of the model's range, or a potential that overflows",
    "gradient": "a step size that is too large, or a potential that overflows where the negatives are; try clip=1.0",
    "gap": (
        "the energy sharpens faster than the sampler follows: more or longer chains, a smaller step of the sampler or its "
        "adaptation, a smaller learning rate, or a penalty on the energy's size"
    ),
}


class Diverged(RuntimeError):
    """A run that diverged: `step`, `quantity` and `value` say where; the weights are those of the last good checkpoint."""

    def __init__(self, step: int, quantity: str, value: float, good: int):
        self.step, self.quantity, self.value, self.good = step, quantity, value, good
        super().__init__(
            f"step {step}: the {quantity} is {value:.4g}. Likely causes: {_CAUSES[quantity]}. "
            f"The weights are those of step {good}, the last good checkpoint."
        )


@final
@dataclass(frozen=True)
class Guard:
    """When a run counts as diverged, and what is done then.

    A loss or gradient that is not finite stops the run. So does a gap between data and negatives, |E U(negatives) -
    E U(data)|, that stays above `factor` times its median over the last `window` steps and above `floor`, for `patience`
    steps. With `retries` the run goes on from its last good checkpoint instead, its learning rate times `shrink` and with
    another seed, at most so often; that is written in the metrics.
    """

    factor: float = 20.0
    floor: float = 10.0
    window: int = 200
    patience: int = 20
    retries: int = 0
    shrink: float = 0.5

    def __post_init__(self):
        for name in ("window", "patience"):
            whole(getattr(self, name), name)
        whole(self.retries, "retries", 0)
        if not (self.factor > 1 and self.floor >= 0 and 0 < self.shrink <= 1):
            raise ValueError(
                f"factor, floor, shrink: expected > 1, >= 0 and in (0, 1], got {self.factor}, {self.floor}, {self.shrink}"
            )


@final
@dataclass
class Watch:
    """The gaps seen so far, and for how many steps they have been too large."""

    guard: Guard
    gaps: list[float] = field(default_factory=list)
    above: int = 0

    def wrong(self, numbers: dict[str, float]) -> tuple[str, float] | None:
        """What is wrong with this step's loss, gradient or gap, if anything is."""
        for quantity in ("loss", "gradient"):
            if quantity in numbers and not math.isfinite(numbers[quantity]):
                return quantity, numbers[quantity]
        gap = numbers.get("gap")
        return None if gap is None else self._exploding(abs(gap))

    def _exploding(self, gap: float) -> tuple[str, float] | None:
        full = len(self.gaps) >= self.guard.window
        large = full and gap > max(self.guard.floor, self.guard.factor * median(self.gaps))
        self.above = self.above + 1 if large else 0
        if not large:
            self.gaps = [*self.gaps[-self.guard.window + 1 :], gap]
        return ("gap", gap) if self.above >= self.guard.patience else None

    @property
    def calm(self) -> bool:
        """Whether the last step gave no cause for doubt."""
        return self.above == 0

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"gaps": self.gaps, "above": self.above}

    def restore(self, state: dict[str, Any]) -> None:
        """Back to what a checkpoint kept."""
        self.gaps, self.above = list(state["gaps"]), int(state["above"])
