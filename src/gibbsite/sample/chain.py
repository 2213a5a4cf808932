"""What a run leaves: the draws of all chains with their potentials, acceptance and cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from ..diagnose._arviz import inference_data, load_arviz
from .kernel import Cost

if TYPE_CHECKING:
    import arviz
    import pandas

Statistic = Callable[[Tensor], Tensor]
_SHOWN = 20  # sites summarised when no statistic is given


@dataclass(frozen=True)
class Chain:
    """The result of `gibbsite.run`: `samples` (draws, chains, *event), `u` (draws, chains), and what it took.

    `cost` is what each chain spent after warm-up, in evaluations of U and of its gradient. `state` is where the chains
    stand: pass it to another run to go on, or `chain.state.x` where kernel or model are others. `interrupted` says that the
    run was stopped early.
    """

    samples: Shaped[Tensor, "draws chains *event"] = field(repr=False)
    u: Float[Tensor, "draws chains"] = field(repr=False)
    acceptance: Float[Tensor, " chains"] = field(repr=False)
    cost: Cost
    steps: int
    seconds: float
    state: Any = field(repr=False)
    interrupted: bool = False

    @property
    def accept_rate(self) -> float:
        """The mean acceptance probability over steps and chains."""
        return float(self.acceptance.mean())

    def to_arviz(self, statistic: Statistic | None = None) -> "arviz.InferenceData":
        """ArviZ's data structure with `x` (or `statistic(x)`) in the posterior group and U as `lp`.

        `statistic` maps states (*batch, *event) to (*batch) or (*batch, k).
        """
        values = self.samples if statistic is None else self._of(statistic)
        return inference_data(posterior={"x": _by_chain(values)}, sample_stats={"lp": _by_chain(self.u)})

    def summary(self, statistic: Statistic | None = None) -> "pandas.DataFrame":
        """Mean, sd, MCSE, ESS and R-hat by ArviZ: of U and of `statistic(x)`, or of the first sites when none is given."""
        values = {"U": _by_chain(self.u)}
        if statistic is None:
            flat = self.samples.reshape(*self.u.shape, -1)
            for site in range(min(_SHOWN, flat.shape[2])):
                values[f"x[{site}]"] = _by_chain(flat[..., site])
        else:
            values["statistic"] = _by_chain(self._of(statistic))
        with np.errstate(divide="ignore", invalid="ignore"):
            table = load_arviz().summary(inference_data(posterior=values), kind="all", round_to="none")
        return cast("pandas.DataFrame", table)

    def _of(self, statistic: Statistic) -> Tensor:
        """statistic(samples), if it is one number or one row of numbers a state."""
        values, (draws, chains) = statistic(self.samples), self.u.shape
        if not isinstance(values, Tensor) or values.ndim not in (2, 3) or values.shape[:2] != self.u.shape:
            got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(
                f"statistic: expected a tensor of shape ({draws}, {chains}) or ({draws}, {chains}, k) from samples of shape "
                f"{tuple(self.samples.shape)}, got {got}; reduce over the event's dimensions only, for example x.sum(-1)"
            )
        return values


def _by_chain(values: Tensor) -> Any:
    values = values.detach().cpu()
    return (values if values.is_floating_point() else values.to(torch.float64)).transpose(0, 1).numpy()
