"""What learning minimises: one module that holds all that is learned and all that learning remembers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from ..check import instance
from ..random import Source
from ..space import Space


class Report(NamedTuple):
    """A loss with its graph, and numbers worth writing down (scalars without a graph)."""

    loss: Float[Tensor, ""]
    metrics: Mapping[str, Float[Tensor, ""]] = {}


class Objective(nn.Module, ABC):
    """A loss on a mini-batch as a module, so that its parameters are what is learned.

    State that must survive a restart (chains, running averages) is held in buffers, so that `state_dict` is all of it, and
    every draw comes from the generator that is given. A loss of second order (score matching) and what it differentiates
    stand in one objective, which is what distributed wrappers need. `space` is where its data live, if that is one space:
    `fit` then checks all data before the first step.
    """

    def __init__(self, space: Space | None = None):
        super().__init__()
        self.space = space

    @abstractmethod
    def forward(self, data: Any, *, seed: Source) -> Report:
        """The loss on a mini-batch of data."""


def reported(report: object) -> Report:
    """What an objective returned, if it is a report of a loss that can be differentiated."""
    hint = "; return gibbsite.learn.Report(loss)"
    checked = instance(report, Report, "objective(data)", hint)
    if checked.loss.ndim or not checked.loss.requires_grad:
        shape, graph = tuple(checked.loss.shape), "with" if checked.loss.requires_grad else "without"
        raise ValueError(
            f"loss: expected a scalar with a graph to what is learned, got shape {shape} {graph} one; score and site_logits "
            "keep it with graph=True"
        )
    return checked
