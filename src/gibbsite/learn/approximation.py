"""Stochastic approximation: parameters that make an expectation under the model vanish, with chains that only move on."""

from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from ..check import function, instance
from ..model import Model
from ..random import Source
from ..sample.kernel import Kernel, check_kernel
from ..space import whole
from .chains import started
from .contrastive import Drawn, Negatives
from .objective import Objective, Report

Field = Callable[[Model, Tensor], Sequence[Tensor]]


@final
class Moves(Negatives):
    """Persistent chains all of whose states on `moves` steps are negatives, not the last ones alone (algorithm 5).

    Their mean has the smaller variance, for the price of evaluating the model's gradient at more states.

    References: Wang et al. (2018), Learning trans-dimensional random fields; EBM-SLP, algorithm 5.
    """

    x: Tensor

    def __init__(self, kernel: Kernel, x: Shaped[Tensor, "chains *event"], moves: int):
        super().__init__()
        self.kernel, self.moves = check_kernel(kernel), whole(moves, "moves")
        self.register_buffer("x", started(x))

    @torch.no_grad()
    def draw(self, model: Model, data: Any, *, seed: Source) -> Drawn:
        state, seen, acceptance = self.kernel.init(model, self.x), [], []
        for _ in range(self.moves):
            state, info = self.kernel.step(model, state, seed)
            seen.append(state.x)
            acceptance.append(info.acceptance.mean())
        self.x = state.x
        return Drawn(torch.cat(seen), acceptance=torch.stack(acceptance).mean())


@final
class Approximation(Objective):
    """The root of f(lambda) = E_(z ~ p_lambda) F_lambda(z), lambda the parameters: lambda <- lambda + gamma_t mean F(z).

    `field(model, z)` gives F_lambda(z), one tensor (batch, *shape) for each of the model's parameters. Plain SGD with a
    schedule whose steps sum to infinity and their squares do not (`RobbinsMonro`) is algorithm 4, with `Moves` algorithm 5;
    `Contrastive` with `Persistent` is their case F = grad U(data) - grad U(x), algorithm 6, stochastic maximum likelihood.

    References: Robbins and Monro (1951); Younes (1989); Song et al. (2014), Weak convergence rates of stochastic
    approximation; EBM-SLP, algorithms 4 to 6.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.distributions.Bernoulli([0.0, 0.0])
        >>> want = torch.tensor([0.9, 0.2])
        >>> chains = gb.learn.Persistent(gb.sample.GibbsSweep(), model.space.uniform().sample(64, seed=0))
        >>> objective = gb.learn.Approximation(model, chains, lambda model, z: [want - z.float()])
        >>> optimiser = torch.optim.SGD(model.parameters(), lr=4.0)
        >>> schedule = lambda step: 20 / max(20, step)
        >>> _ = gb.learn.fit(objective, want[None], optimiser=optimiser, schedule=schedule, steps=300, batch=1, seed=0)
        >>> [round(p, 1) for p in model.logits.sigmoid().tolist()]
        [0.9, 0.2]
    """

    def __init__(self, model: Model, chains: Negatives, field: Field):
        super().__init__()
        self.model, self.chains = instance(model, Model, "model"), instance(chains, Negatives, "chains")
        self.field = function(field, "field", "lambda model, z: [moments - z.float()]")

    def forward(self, data: Any, *, seed: Source) -> Report:
        drawn = self.chains.draw(self.model, data, seed=seed)
        parameters = list(self.model.parameters())
        with torch.no_grad():
            fields = [part.mean(0) for part in self.field(self.model, drawn.x)]
        wanted, got = ([tuple(t.shape) for t in tensors] for tensors in (parameters, fields))
        if wanted != got:
            raise ValueError(f"field: expected one tensor (batch, *shape) a parameter, of shapes {wanted}, got {got}")
        loss = sum((-(p * part).sum() for p, part in zip(parameters, fields, strict=True)), torch.zeros(()))
        size = torch.stack([part.square().sum() for part in fields]).sum().sqrt()
        return Report(loss, {"field": size})
