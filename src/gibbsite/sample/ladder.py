"""A ladder of inverse temperatures for parallel tempering, found from a target swap rate."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .. import random
from ..model import Model
from ..random import Seed
from .compiled import compiled
from .tempering import Tempering


def tuned_ladder(
    tempering: Tempering, model: Model, x: Tensor, *, target: float = 0.6, rounds: int = 5, steps: int = 100, seed: Seed
) -> Tempering:
    """The same tempering with the fewest betas whose neighbours swap at the `target` rate, equally all along the ladder.

    The rejection rates add up to the communication barrier, a function of beta that does not depend on the ladder. It is
    measured, the ladder is placed at equal shares of it, and this is repeated `rounds` times.

    References: Syed et al. (2022), Non-reversible parallel tempering.
    """
    if not 0 < target < 1:
        raise ValueError(f"target: expected a rate between 0 and 1, got {target}")
    generator = random.generator(seed, x.device)
    for _ in range(rounds):
        runner, rates = compiled(tempering, model, x), []
        state = runner.init(model, x)
        for _ in range(steps):
            state, _ = runner.step(model, state, generator)
            rates.append(state.swap_rate)
        rejection = 1 - torch.stack(rates[len(rates) // 2 :]).nanmean((0, 1))
        barrier = np.concatenate([[0.0], rejection.clamp(min=1e-6).double().cumsum(0).cpu().numpy()])
        rungs = max(2, 1 + int(np.ceil(barrier[-1] / (1 - target))))
        betas = np.interp(np.linspace(0, barrier[-1], rungs), barrier, np.array(tempering.betas))
        tempering = replace(tempering, betas=(*betas[:-1].tolist(), 1.0))
    return tempering
