"""Independent bits and independent categorical sites."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .. import random
from ..check import floats, number
from ..model import ClosedForm, Distribution, Factorised, Multilinear
from ..random import Seed
from ..space import Binary, Categorical, whole


@final
class Bernoulli(Distribution, Factorised, ClosedForm, Multilinear):
    """log q(x) = sum_i x_i l_i - log(1 + exp l_i), l the logits, of the event's shape.

    Example:
        >>> import torch, gibbsite as gb
        >>> q = gb.distributions.Bernoulli(torch.zeros(4))
        >>> q(q.sample(2, seed=0)).exp().tolist()
        [0.0625, 0.0625]
    """

    def __init__(self, logits: Float[Tensor, "*event"]):
        super().__init__()
        logits = floats(logits, "logits")
        self.logits = nn.Parameter(logits.clone())
        self.space = Binary(tuple(logits.shape))

    @classmethod
    def fit(cls, x: Tensor, *, pseudocount: float = 1.0) -> "Bernoulli":
        """The frequencies of data x, (n, *event) bits, with `pseudocount` zeros and ones added so that all are possible."""
        x = torch.as_tensor(x)
        x = Binary(tuple(x.shape[1:])).check(x)
        count = x.double().sum(0)
        counts = _smoothed(torch.stack((len(x) - count, count), -1), pseudocount)
        p = counts[..., 1] / counts.sum(-1)
        return cls(torch.logit(p).to(torch.get_default_dtype()))

    def forward(self, x: Tensor) -> Tensor:
        z = self.space.embed(x, self.logits.dtype)
        return (z * self.logits + nn.functional.logsigmoid(-self.logits)).flatten(z.ndim - self.logits.ndim).sum(-1)

    def sample(self, n: int, *, seed: Seed) -> Tensor:
        n, source = whole(n, "n", 0), random.generator(seed, self.logits.device)
        return random.bernoulli(self.logits.detach().expand(n, *self.logits.shape), source).to(torch.int8)

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Tensor:
        table = self.logits.flatten().expand(len(x), -1)
        flat = x.flatten(1).to(table.dtype)
        if sites is not None:
            table, flat = table.gather(1, sites), flat.gather(1, sites)
        return torch.stack((-flat * table, (1 - flat) * table), -1)


@final
class Independent(Distribution, Factorised, ClosedForm, Multilinear):
    """log q(x) = sum_i log softmax(l_i)[x_i], l the logits, of shape (*event, states)."""

    def __init__(self, logits: Float[Tensor, "*event states"]):
        super().__init__()
        logits = floats(logits, "logits")
        self.logits = nn.Parameter(logits.clone())
        self.space = Categorical(tuple(logits.shape[:-1]), logits.shape[-1])

    @classmethod
    def fit(cls, x: Tensor, *, states: int, pseudocount: float = 1.0) -> "Independent":
        """The frequencies of data x, (n, *event) integers below `states`, with `pseudocount` of each state added."""
        x = torch.as_tensor(x)
        space = Categorical(tuple(x.shape[1:]), states)
        codes = space.check(x).flatten(1).long() + states * torch.arange(space.sites, device=x.device)
        count = codes.flatten().bincount(minlength=space.sites * states).view(*space.shape, states)
        count = _smoothed(count.double(), pseudocount)
        return cls((count / count.sum(-1, keepdim=True)).log().to(torch.get_default_dtype()))

    def forward(self, x: Tensor) -> Tensor:
        z = self.space.embed(x, self.logits.dtype)
        return (z * self.logits.log_softmax(-1)).flatten(z.ndim - self.logits.ndim).sum(-1)

    def sample(self, n: int, *, seed: Seed) -> Tensor:
        n, source = whole(n, "n", 0), random.generator(seed, self.logits.device)
        return random.categorical(self.logits.detach().expand(n, *self.logits.shape), source)

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Tensor:
        table = self.logits.flatten(0, -2).expand(len(x), -1, -1)
        flat = x.flatten(1)
        if sites is not None:
            table = table.gather(1, sites[..., None].expand(-1, -1, table.shape[-1]))
            flat = flat.gather(1, sites)
        return table - table.gather(-1, flat[..., None].long())


def _smoothed(counts: Float[Tensor, "*event states"], pseudocount: float) -> Float[Tensor, "*event states"]:
    """counts + pseudocount, if none is 0."""
    smoothed = counts + number(pseudocount, "pseudocount", least=0)
    if not (smoothed > 0).all():
        *site, value = (smoothed <= 0).nonzero()[0].tolist()
        raise ValueError(
            f"pseudocount: with {pseudocount} a value that the data never show would be impossible, and its logit infinite: "
            f"site {site} is never {value}; give a pseudocount > 0"
        )
    return smoothed
