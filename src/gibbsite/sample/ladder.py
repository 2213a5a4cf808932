"""A ladder of inverse temperatures for parallel tempering, found from a target swap rate."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .. import random
from ..check import instance, number
from ..model import as_model
from ..random import Seed
from ..space import Space, whole
from .adapt import Adapted
from .compiled import compiled
from .kernel import check_chains
from .tempering import Tempering


def tuned_ladder(
    tempering: Tempering,
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    *,
    target: float = 0.6,
    rounds: int = 5,
    steps: int = 100,
    seed: Seed,
    space: Space | None = None,
) -> Adapted[Tempering]:
    """The same tempering with the fewest betas whose neighbours swap at the `target` rate, equally all along the ladder.

    The rejection rates add up to the communication barrier, a function of beta that does not depend on the ladder. It is
    measured, the ladder is placed at equal shares of it, and this is repeated `rounds` times from where the chains stand.

    References: Syed et al. (2022), Non-reversible parallel tempering.

    Example:
        >>> import gibbsite as gb
        >>> model = gb.models.Ising.lattice(4, coupling=0.6)
        >>> tempering = gb.sample.Tempering(gb.sample.GibbsSweep(), model.space.uniform())
        >>> tuned = gb.sample.tuned_ladder(tempering, model, model.space.uniform().sample(8, seed=0), seed=1)
        >>> chain = gb.run(tuned.kernel, model, tuned.x, steps=20, seed=2)
    """
    instance(tempering, Tempering, "tempering")
    target, rounds = number(target, "target", above=0, below=1), whole(rounds, "rounds")
    steps = whole(steps, "steps", 2)  # even and odd pairs of neighbours take turns
    model = as_model(model, space)
    x = check_chains(model, x)
    generator = random.generator(seed, x.device)
    for _ in range(rounds):
        runner, rates = compiled(tempering, model, x), []
        state = runner.init(model, x)
        for _ in range(steps):
            state, _ = runner.step(model, state, generator)
            rates.append(state.swap_rate)
        x = state.x
        rejection = 1 - torch.stack(rates[len(rates) // 2 :]).nanmean((0, 1))
        barrier = np.concatenate([[0.0], rejection.clamp(min=1e-6).double().cumsum(0).cpu().numpy()])
        rungs = max(2, 1 + int(np.ceil(barrier[-1] / (1 - target))))
        betas = np.interp(np.linspace(0, barrier[-1], rungs), barrier, np.array(tempering.betas))
        tempering = replace(tempering, betas=(*betas[:-1].tolist(), 1.0))
    return Adapted(tempering, x)
