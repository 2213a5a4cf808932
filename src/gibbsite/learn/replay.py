"""The replay buffer of a VAEBM: it keeps the latent part of the noise, and is used more and more as learning goes on."""

from typing import Any, final

import torch
from torch import Tensor

from .. import random
from ..check import instance, number
from ..model import Distribution, Model, device_of
from ..random import Seed, Source
from ..sample.kernel import Kernel, check_kernel
from ..space import Real, whole
from .chains import moved
from .contrastive import Drawn, Negatives


@final
class Replay(Negatives):
    """Chains start at a draw of the noise, whose first `kept` entries are those of a slot with probability p_t.

    p_t = most min(1, t / ramp) at update t. After `steps` of the kernel the first `kept` entries, of every chain, go back
    to their slots; the other entries are always drawn anew. The slots take turns, so that every one is used, and there is
    one chain for each example of the mini-batch. With `kept` the size of h, e = (e_h, e_x), it is VAEBM's buffer.

    References: Xiao et al. (2021), VAEBM, appendix E; Du and Mordatch (2019).

    Example:
        >>> import torch, gibbsite as gb
        >>> noise = gb.distributions.Normal.standard(4)
        >>> source = gb.learn.Replay(gb.sample.Langevin(0.1), noise, kept=2, slots=100, steps=5, seed=0)
        >>> source.draw(noise, torch.zeros(10, 4), seed=torch.Generator().manual_seed(0)).x.shape
        torch.Size([10, 4])
    """

    x: Tensor
    turn: Tensor
    updates: Tensor

    def __init__(
        self,
        kernel: Kernel,
        noise: Distribution,
        *,
        kept: int,
        slots: int,
        steps: int,
        most: float = 0.6,
        ramp: int = 5000,
        seed: Seed,
    ):
        super().__init__()
        self.kernel, self.steps = check_kernel(kernel), whole(steps, "steps")
        self.noise, self.ramp = instance(noise, Distribution, "noise"), whole(ramp, "ramp")
        self.kept, self.most = whole(kept, "kept"), number(most, "most", least=0, most=1)
        if not isinstance(noise.space, Real) or len(noise.space.shape) != 1 or self.kept > noise.space.shape[0]:
            raise ValueError(f"noise, kept: expected vectors of at least {kept} entries, got a noise on {noise.space}")
        device = device_of(noise)
        self.register_buffer("x", noise.sample(whole(slots, "slots"), seed=seed)[:, : self.kept].clone())
        self.register_buffer("turn", torch.tensor(0, device=device))
        self.register_buffer("updates", torch.tensor(0, device=device))

    @property
    def probability(self) -> float:
        """p_t, of a chain to start at a slot."""
        return self.most * min(1.0, float(self.updates) / self.ramp)

    def draw(self, model: Model, data: Any, *, seed: Source) -> Drawn:
        chains = len(data)
        if chains > len(self.x):
            raise ValueError(f"slots: expected at least the {chains} chains of a mini-batch, got {len(self.x)}")
        slots = (self.turn + torch.arange(chains, device=self.x.device)) % len(self.x)
        start = self.noise.sample(chains, seed=seed)
        old = random.uniform((chains, 1), seed).to(start.device) < self.probability
        start = torch.cat((torch.where(old, self.x[slots], start[:, : self.kept]), start[:, self.kept :]), -1)
        e, acceptance = moved(self.kernel, model, start, self.steps, seed)
        self.x, self.turn = self.x.index_copy(0, slots, e[:, : self.kept]), (self.turn + chains) % len(self.x)
        self.updates = self.updates + 1
        return Drawn(e, acceptance=acceptance)
