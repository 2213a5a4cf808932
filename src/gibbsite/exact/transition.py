"""The exact transition matrix of any discrete kernel, read off the code that samples.

A kernel makes every discrete decision through `gibbsite.random`. Here a `Script` takes the generator's place: the step
runs until its first decision that is not scripted, then every chain is split into one copy an outcome of positive
probability, the outcomes are added to the script, and the step runs again. What is left at the end is every path through
the step with its exact probability. Nothing is estimated, and no second implementation of the kernel is trusted.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from ..model import Model, as_model, device_of
from ..random import Script
from ..space import Discrete, Space, whole
from .enumerate import index, potentials, states


class _Run(NamedTuple):
    origin: Tensor  # (copies,) the chain each copy started as
    log_weight: Tensor  # (copies,) log probability of its script so far
    outcomes: tuple[Tensor | int, ...]  # one entry a decision: (copies, ...) or, shared by all, an int


class _Undecided(Exception):
    def __init__(self, runs: list[_Run]):
        self.runs = runs


@final
class _Replay(Script):
    """Plays one run's outcomes; at the first decision beyond them raises `_Undecided` with the run split."""

    def __init__(self, run: _Run):
        self.run, self.position = run, 0

    def _next(self) -> Tensor | int | None:
        self.position += 1
        return self.run.outcomes[self.position - 1] if self.position <= len(self.run.outcomes) else None

    def categorical(self, logits: Tensor) -> Tensor:
        outcome = self._next()
        if outcome is None:
            raise _Undecided([_split(self.run, logits)])
        assert isinstance(outcome, Tensor)
        return outcome.view(logits.shape[:-1])

    def choose(self, weights: Sequence[float]) -> int:
        outcome = self._next()
        if outcome is None:
            log_p = torch.tensor(weights, dtype=torch.float64).log().log_softmax(0)
            raise _Undecided(
                [
                    self.run._replace(log_weight=self.run.log_weight + log_p[k], outcomes=(*self.run.outcomes, k))
                    for k in range(len(weights))
                    if weights[k] > 0
                ]
            )
        assert isinstance(outcome, int)
        return outcome


def _split(run: _Run, logits: Tensor) -> _Run:
    """Each copy once for every joint outcome of its draws, draw after draw; outcomes of probability 0 are left out."""
    copies = len(run.origin)
    log_p = logits.double().log_softmax(-1)
    if log_p.isnan().any():
        raise ValueError("transition matrix: a decision of the kernel has NaN probabilities")
    log_p = log_p.expand(copies, *logits.shape[1:]).reshape(copies, -1, logits.shape[-1])
    parent, drawn = torch.arange(copies), torch.empty(copies, 0, dtype=torch.long)
    weight = run.log_weight
    for draw in range(log_p.shape[1]):
        row, outcome = (log_p[parent, draw] > -torch.inf).nonzero(as_tuple=True)
        weight = weight[row] + log_p[parent[row], draw, outcome]
        parent, drawn = parent[row], torch.cat((drawn[row], outcome[:, None]), 1)
    kept = tuple(o if isinstance(o, int) else o[parent] for o in run.outcomes)
    return _Run(run.origin[parent], weight, (*kept, drawn))


@torch.no_grad()
def outcomes(step: Callable[[Tensor, Script], Any], chains: int) -> list[tuple[Any, Tensor, Tensor]]:
    """Every outcome of a random step: (result, chain each row came from, log probability) for each scripted run.

    `step(rows, script)` runs the step for the chains `rows` (indices, repeated as needed) with `script` as generator.
    """
    chains = whole(chains, "chains")
    open_runs = [_Run(torch.arange(chains), torch.zeros(chains, dtype=torch.float64), ())]
    done = []
    while open_runs:
        run = open_runs.pop()
        try:
            result = step(run.origin, _Replay(run))
        except _Undecided as undecided:
            open_runs += undecided.runs
        else:
            done.append((result, run.origin, run.log_weight))
    return done


def transition_matrix(
    kernel: Any, model: Callable[[Tensor], Tensor], *, space: Space | None = None
) -> Float[Tensor, "states states"]:
    """K[i, j] = probability that one step from state i of `states(model.space)` ends in state j, in double precision.

    Where U is -inf no chain can start; such a state is given as one that stays.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising.lattice((2, 2), coupling=0.5, periodic=False).double()
        >>> K, p = gb.exact.transition_matrix(gb.sample.Gibbs(), model), gb.exact.probabilities(model)
        >>> bool((p @ K - p).abs().sum() < 1e-10)
        True
    """
    model = as_model(model, space)
    if not isinstance(model.space, Discrete):
        raise TypeError(f"model: expected Binary or Categorical states, got {model.space}")
    if device_of(model).type != "cpu":
        raise ValueError("model: transition matrices are read on the CPU; pass model.cpu()")
    every = states(model.space)
    possible = (potentials(model) > -torch.inf).nonzero()[:, 0]
    matrix = torch.zeros(len(every) ** 2, dtype=torch.float64)
    start = every[possible]
    for end, origin, log_weight in outcomes(lambda rows, script: _advance(kernel, model, start[rows], script), len(start)):
        matrix.index_add_(0, possible[origin] * len(every) + index(model.space, end), log_weight.exp())
    matrix = matrix.view(len(every), len(every))
    impossible = torch.ones(len(every), dtype=torch.float64).index_fill(0, possible, 0)
    return matrix + torch.diag(impossible)


def _advance(kernel: Any, model: Model, x: Tensor, script: Script) -> Tensor:
    state, _ = kernel.step(model, kernel.init(model, x), script)
    return state.x
