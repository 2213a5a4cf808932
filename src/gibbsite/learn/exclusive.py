"""Exclusive-NRF: the negatives are the generator's own draws, and the generator descends KL(q || p), entropy included."""

from typing import final

from jaxtyping import Float
from torch import Tensor

from .. import random
from ..check import instance
from ..distributions.latent import LatentNormal
from ..local import score
from ..model import Model, dtype_of
from ..random import Source
from ..sample.kernel import Kernel, check_kernel
from ..space import whole
from .chains import moved
from .contrastive import Drawn, Negatives


def reaching(value: Float[Tensor, " n"], gradient: Float[Tensor, "n *event"], x: Float[Tensor, "n *event"]) -> Tensor:
    """value, whose gradient with respect to x is `gradient`, and which reaches nothing else: f(x) with f held fixed."""
    return value.detach() + ((x - x.detach()) * gradient.detach()).reshape(len(x), -1).sum(-1)


def proposed(generator: LatentNormal, count: int, seed: Source) -> tuple[Tensor, Tensor]:
    """h, and x = m(h) + s(h) e with its graph to the generator."""
    e = random.normal((count, *generator.space.shape), seed, dtype_of(generator))
    return generator.split(e)[0], generator.push(e)


@final
class Exclusive(Negatives):
    """x = m(h) + s(h) e without revision; the generator minimises KL(q || p) = E_q [log q(x) - U(x)] + log Z.

    Its gradient flows through x: E [dx/dphi (grad_x log q(x) - grad_x U(x))]. The entropy's part is intractable; here it
    is unbiased as far as h* is independent of h: grad_x log q(x) = E_(h* ~ q(h | x)) grad_x log q(x | h*), with h* from h,
    itself a draw of q(h | x), by `steps` of `kernel` on q(h | x). Without it the generator falls into modes; even with it
    KL(q || p) prefers to leave modes out. The loss's value is -E_q U alone.

    References: Kim and Bengio (2016), Deep directed generative models with energy-based probability estimation; EBM-SLP,
    eq. 2.33 and 2.38; Titsias and Ruiz (2019), Unbiased implicit variational inference, for the entropy's gradient.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import FixedScale, LatentNormal
        >>> generator = LatentNormal(FixedScale(gb.models.perceptron(2, 3), 0.1), 2, 3)
        >>> source = gb.learn.Exclusive(generator, gb.sample.HMC(0.05, 3), steps=5)
        >>> objective = gb.learn.Contrastive(gb.models.MLP(gb.Real(3), (8,)), source)
        >>> sorted(objective(torch.zeros(4, 3), seed=torch.Generator().manual_seed(0)).metrics)
        ['acceptance', 'gap', 'source_loss']
    """

    def __init__(self, generator: LatentNormal, kernel: Kernel, steps: int):
        super().__init__()
        self.generator = instance(generator, LatentNormal, "generator")
        self.kernel, self.steps = check_kernel(kernel), whole(steps, "steps")

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        h, x = proposed(self.generator, len(data), seed)
        at = x.detach()
        u, along = score(model, at)
        other, acceptance = moved(self.kernel, self.generator.posterior(at), h, self.steps, seed)
        _, pull = score(self.generator, self.generator.join(other, at))
        entropy = self.generator.split(pull)[1]
        return Drawn(at, loss=reaching(-u, entropy - along, x).mean(), acceptance=acceptance)


@final
class Refined(Negatives):
    """A source whose generator also descends E_q [-V(x)], V the potential that tilts it (VAEBM, appendix C).

    For the model q(x) exp V(x) / Z it is the gradient of KL(q || q exp V / Z) with the model held fixed: log q cancels, and
    there is no entropy to estimate. The negatives are those of `source`.

    References: Xiao et al. (2021), VAEBM, eq. 21 and 25; Che et al. (2020), Your GAN is secretly an energy-based model.
    """

    def __init__(self, source: Negatives, generator: LatentNormal):
        super().__init__()
        self.source = instance(source, Negatives, "source")
        self.generator = instance(generator, LatentNormal, "generator")

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        drawn = self.source.draw(model, data, seed=seed)
        _, x = proposed(self.generator, len(data), seed)
        u, along = score(model, x.detach())
        loss = reaching(-u, -along, x).mean()
        return drawn._replace(loss=loss if drawn.loss is None else loss + drawn.loss)
