"""CoopNet: the model revises what the generator drew, the generator infers h anew and regresses on what came of it."""

from typing import final

from torch import Tensor

from ..check import instance
from ..distributions.latent import LatentNormal
from ..model import Model
from ..random import Source
from ..sample.kernel import Kernel, check_kernel
from ..space import whole
from .chains import moved
from .contrastive import Drawn, Negatives
from .revised import learned_from


@final
class Cooperative(Negatives):
    """h, x ~ q; x is moved by `steps` of `kernel` on p, then h by `inner_steps` of `inner` on q(h | x) at the new x.

    The generator maximises log q(h, x) at what came of it: with a fixed scale, least squares of x on m(h). The two chains
    move one after the other, so that the pairs are not draws of p(x) q(h | x) (compare `Revised`).

    References: Xie et al. (2018), Cooperative training of descriptor and generator networks; EBM-SLP, section 2.3.4.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.distributions import FixedScale, LatentNormal
        >>> generator = LatentNormal(FixedScale(gb.models.perceptron(2, 3), 0.1), 2, 3)
        >>> source = gb.learn.Cooperative(generator, gb.sample.Langevin(0.1), gb.sample.Langevin(0.05), steps=10)
        >>> objective = gb.learn.Contrastive(gb.models.MLP(gb.Real(3), (8,)), source)
        >>> sorted(objective(torch.zeros(4, 3), seed=torch.Generator().manual_seed(0)).metrics)
        ['acceptance', 'gap', 'source_loss']
    """

    def __init__(self, generator: LatentNormal, kernel: Kernel, inner: Kernel, steps: int, inner_steps: int | None = None):
        super().__init__()
        self.generator = instance(generator, LatentNormal, "generator")
        self.kernel, self.inner, self.steps = check_kernel(kernel), check_kernel(inner, "inner"), whole(steps, "steps")
        self.inner_steps = self.steps if inner_steps is None else whole(inner_steps, "inner_steps")

    def draw(self, model: Model, data: Tensor, *, seed: Source) -> Drawn:
        h, x = self.generator.split(self.generator.sample(len(data), seed=seed))
        x, acceptance = moved(self.kernel, model, x, self.steps, seed)
        h, _ = moved(self.inner, self.generator.posterior(x), h, self.inner_steps, seed)
        return Drawn(x, loss=learned_from(self.generator, self.generator.join(h, x)), acceptance=acceptance)
