"""Centred gradients of a restricted Boltzmann machine: the same maximum, approached by straighter ways."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..check import floats, instance
from ..models.rbm import RBM


@final
@dataclass(frozen=True, eq=False)
class Centred:
    """Turns the gradient (dW, db, dc) of an RBM into that of the same machine written around m and l, both held still.

    (x - m).b' + (h - l).c' + (h - l).W (x - m) is log p(x, h) up to a constant, with b = b' - W^T l and c = c' - W m. There
    the gradient of W is G = dW - l db^T - dc m^T, and a step of SGD on (W, b', c') is one on (W, b, c) with G, db - G^T l
    and dc - G m.
    m is `mean`, best that of the data, and l = sigmoid(c + W m). Pixels that are nearly always on or off then no longer tie
    weights to biases. It is a `clip` of `fit`, for SGD: optimisers that scale entries one by one lose what it is for.

    References: Cho, Raiko and Ilin (2011), Enhanced gradient and adaptive learning rate for training RBMs; Montavon and
    Mueller (2012); Melchior, Fischer and Wiskott (2016), How to center deep Boltzmann machines.

    Example:
        >>> import torch, gibbsite as gb
        >>> rbm = gb.models.RBM(4, 2, seed=0)
        >>> data = rbm.space.uniform().sample(20, seed=0)
        >>> chains = gb.learn.Persistent(gb.sample.BlockGibbs(), data)
        >>> optimiser = torch.optim.SGD(rbm.parameters(), lr=0.1)
        >>> centred = gb.learn.Centred(rbm, data.float().mean(0))
        >>> objective = gb.learn.Contrastive(rbm, chains)
        >>> gb.learn.fit(objective, data, optimiser=optimiser, clip=centred, steps=5, batch=10, seed=0).step
        5
    """

    model: RBM
    mean: Float[Tensor, " visible"]

    def __post_init__(self):
        instance(self.model, RBM, "model")
        object.__setattr__(self, "mean", floats(self.mean, "mean", self.model.visible_bias.shape).to(self.model.weight))

    @torch.no_grad()
    def __call__(self, optimiser: torch.optim.Optimizer) -> None:
        """Changes the gradients in place."""
        weight, visible, hidden = (p.grad for p in (self.model.weight, self.model.visible_bias, self.model.hidden_bias))
        if weight is None or visible is None or hidden is None:
            raise ValueError("model: expected gradients of the weights and of both biases; all three must be learned")
        level = (self.model.hidden_bias + self.model.weight @ self.mean).sigmoid()
        weight.addmm_(torch.stack((level, hidden), 1), torch.stack((visible, self.mean)), alpha=-1)
        visible.sub_(level @ weight)
        hidden.sub_(weight @ self.mean)
