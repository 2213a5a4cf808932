"""Inclusive-NRF: a generator proposes (x, h), a stochastic-gradient sampler revises them towards p(x) q(h | x)."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..check import instance
from ..distributions.latent import LatentNormal
from ..local import score
from ..model import ClosedScore, Model
from ..models.posterior import StochasticScore
from ..random import Source
from ..sample.kernel import Kernel, check_kernel
from ..space import whole
from .contrastive import Drawn, Negatives


@final
class Augmented(Model, ClosedScore, StochasticScore):
    """log p(x) q(h | x) on the joint states z = (h, x) of a generator, known through estimates of its score only.

    grad_h = grad_h log q(h, x), and grad_x = grad_x [log p(x) + log q(h, x) - log q(h*, x)], where h* is one step of
    `inner` from h on q(h | x). `closed_score` is the first step of a chain that starts at a draw of q, where h is itself
    a draw of q(h | x) and stands for h*: the x-gradient is then that of log p alone. The potential that goes with the
    estimates is U(x), for log q(h | x) is not known.

    References: EBM-SLP, eq. 2.37 to 2.41; Song and Ou (2018), Learning neural random fields with inclusive auxiliary
    generators.
    """

    def __init__(self, model: Model, generator: LatentNormal, inner: Kernel):
        super().__init__()
        if model.space != generator.observed:
            raise ValueError(f"generator: expected one that makes states of {model.space}, got {generator.observed}")
        self.model, self.generator, self.inner, self.space = model, generator, inner, generator.space

    @property
    def fraction(self) -> float:
        return 1.0

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        return self.model(self.generator.split(x)[1])

    def closed_score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, x = self.generator.split(x)
        u, along_x = score(self.model, x)
        _, along_h = score(self.generator.posterior(x), h)
        return u, self.generator.join(along_h, along_x)

    def stochastic_score(self, x: Tensor, generator: Source) -> tuple[Tensor, Tensor]:
        h, x = self.generator.split(x)
        u, along_x = score(self.model, x)
        latent = self.generator.posterior(x)
        other = self.inner.step(latent, self.inner.init(latent, h), generator)[0].x
        along_h, pull = self._joint(h, x)
        return u, self.generator.join(along_h, along_x + pull - self._joint(other, x)[1])

    def _joint(self, h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of log q(h, x)."""
        return self.generator.split(score(self.generator, self.generator.join(h, x))[1])


def learned_from(generator: LatentNormal, z: Tensor) -> Float[Tensor, ""]:
    """-mean log q(h, x) at revised pairs, which carry no gradient: what the generator minimises (algorithm 7)."""
    return -generator(z.detach()).mean()


@final
class Revised(Negatives):
    """x', h' ~ q, moved by `steps` steps of `kernel` (SGLD or SGHMC) towards p(x) q(h | x); the generator learns from them.

    The generator maximises log q(h, x) at the revised pairs, which minimises KL(p || q) (inclusive: q covers the modes of
    p), and the next proposals are better. `inner` makes the step to h* (see `Augmented`): Langevin in the papers. As h*
    comes near h, x follows p alone and h lags behind it: the pairs' x are right, their h are draws of q(h | x) only where
    the scale is small beside what h moves; more of `inner` (`Repeat(...)`, `HMC`) makes them so elsewhere.

    References: EBM-SLP, algorithms 7 and 8; Song and Ou (2018).

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import FixedScale, LatentNormal
        >>> generator = LatentNormal(FixedScale(gb.models.perceptron(2, 3), 0.1), 2, 3)
        >>> source = gb.learn.Revised(generator, gb.sample.SGLD(0.1), gb.sample.Langevin(0.1), steps=10)
        >>> objective = gb.learn.Contrastive(gb.models.MLP(gb.Real(3), (8,)), source)
        >>> sorted(objective(torch.zeros(4, 3), seed=torch.Generator().manual_seed(0)).metrics)
        ['gap', 'source_loss']
    """

    def __init__(self, generator: LatentNormal, kernel: Kernel, inner: Kernel, steps: int):
        super().__init__()
        self.generator = instance(generator, LatentNormal, "generator")
        self.kernel, self.inner, self.steps = check_kernel(kernel), check_kernel(inner, "inner"), whole(steps, "steps")

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        z = self.generator.sample(len(data), seed=seed)
        with torch.no_grad():
            z = self.revise(model, z, seed)
        return Drawn(self.generator.split(z)[1], loss=learned_from(self.generator, z))

    def revise(self, model: Model, z: Tensor, seed: Source) -> Tensor:
        """The pairs after the chain's steps (algorithm 8)."""
        target = Augmented(model, self.generator, self.inner)
        state = self.kernel.init(target, z)
        for _ in range(self.steps):
            state, _ = self.kernel.step(target, state, seed)
        return state.x
