"""The divergence guard: a run that has gone wrong is stopped, and says where, by what, and why that may be."""

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any, final

from ..check import number
from ..space import whole

_CAUSES = {
    "loss": "a step size that is too large, data out of the model's range, or a potential that overflows",
    "gradient": "a step size that is too large, or a potential that overflows where the negatives are; try clip=1.0",
    "potential": "weights or chains that have run away: a step size (of the optimiser or the sampler) that is too large",
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

    A loss, gradient or potential that is not finite stops the run. So does a gap between data and negatives,
    |E U(negatives) - E U(data)|, that stays above `factor` times its median over the last `window` steps and above `floor`,
    for `patience` steps; or one that stays above `most`, if that is given: an energy that sharpens slowly enough takes its
    median along. With `retries` the run goes on from its last good checkpoint instead, its learning rate times
    `shrink` and with another seed, at most so often; that is written in the metrics.

    Example:
        >>> import gibbsite as gb
        >>> gb.learn.Guard(retries=2, shrink=0.3).patience
        20
    """

    factor: float = 20.0
    floor: float = 10.0
    window: int = 200
    patience: int = 20
    retries: int = 0
    shrink: float = 0.5
    most: float | None = None

    def __post_init__(self):
        for name, least in (("window", 1), ("patience", 1), ("retries", 0)):
            whole(getattr(self, name), name, least)
        number(self.factor, "factor", above=1)
        number(self.floor, "floor", least=0)
        number(self.shrink, "shrink", above=0, most=1)
        if self.most is not None:
            number(self.most, "most", above=0)


@final
@dataclass
class Watch:
    """The gaps seen so far, and for how many steps they have been too large."""

    guard: Guard
    gaps: deque[float] = field(default_factory=deque)
    above: int = 0

    def wrong(self, numbers: dict[str, float]) -> tuple[str, float] | None:
        """What is wrong with this step's loss, gradient or gap, if anything is."""
        for quantity in ("loss", "gradient", "gap"):
            if quantity in numbers and not math.isfinite(numbers[quantity]):
                return quantity, numbers[quantity]
        return self._exploding(abs(numbers["gap"])) if "gap" in numbers else None

    def _exploding(self, gap: float) -> tuple[str, float] | None:
        suspect = len(self.gaps) == self.guard.window and gap > self.guard.floor
        beyond = self.guard.most is not None and gap > self.guard.most
        if beyond or (suspect and gap > self.guard.factor * median(self.gaps)):
            self.above += 1
            return ("gap", gap) if self.above >= self.guard.patience else None
        self.above = 0
        self.gaps.append(gap)
        if len(self.gaps) > self.guard.window:
            self.gaps.popleft()
        return None

    @property
    def calm(self) -> bool:
        """Whether the last step gave no cause for doubt."""
        return self.above == 0

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"gaps": list(self.gaps), "above": self.above}

    def restore(self, state: dict[str, Any]) -> None:
        """Back to what a checkpoint kept."""
        self.gaps, self.above = deque(state["gaps"]), int(state["above"])
