"""The binary restricted Boltzmann machine, as the marginal model of its visible units."""

from typing import Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .. import random
from ..check import floats, number
from ..model import Blocked, ClosedForm, Model
from ..random import Seed, Source
from ..space import Binary, whole

_LIMIT = 25  # units of the smaller side that log_z sums over
_MEMORY = 1 << 22  # numbers held at once in the tables of log_z and site_logits


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x) to double precision: torch's default turns linear at 20, an error of 2e-9."""
    return nn.functional.softplus(x, threshold=40.0)


@final
class RBM(Model, ClosedForm, Blocked):
    """U(x) = b.x + sum_j log(1 + exp(c_j + W_j.x)): the hidden units of exp(b.x + c.h + h.W x) summed out.

    `weight` (hidden, visible) starts as N(0, 0.01^2) drawn from `seed`, the biases at 0. `BlockGibbs` draws all hidden units
    given x, then x given them.

    References: Smolensky (1986); Hinton (2002), Training products of experts by minimizing contrastive divergence;
    Grathwohl et al. (2021), appendix E (which swaps the two conditionals' parameters in print).

    Example:
        >>> import torch, gibbsite as gb
        >>> rbm = gb.models.RBM.from_weights(torch.zeros(3, 2), torch.tensor([1.0, -1.0]), torch.zeros(3))
        >>> bool(torch.isclose(rbm(torch.tensor([1, 0])), torch.tensor(1 + 3 * 0.6931472)))
        True
    """

    def __init__(self, visible: int = 784, hidden: int = 500, *, seed: Seed = 0):
        super().__init__()
        visible, hidden = whole(visible, "visible"), whole(hidden, "hidden")
        self.space = Binary(visible)
        weight = 0.01 * random.normal((hidden, visible), random.generator(seed), torch.get_default_dtype())
        self.weight = nn.Parameter(weight)
        self.visible_bias = nn.Parameter(torch.zeros(visible, dtype=weight.dtype, device=weight.device))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden, dtype=weight.dtype, device=weight.device))

    @classmethod
    def from_weights(
        cls,
        weight: Float[Tensor, "hidden visible"],
        visible_bias: Float[Tensor, " visible"],
        hidden_bias: Float[Tensor, " hidden"],
    ) -> Self:
        """The machine with these weights; they are copied."""
        weight = floats(weight, "weight", ("hidden", "visible"))
        visible_bias = floats(visible_bias, "visible_bias", weight.shape[1:])
        hidden_bias = floats(hidden_bias, "hidden_bias", weight.shape[:1])
        model = cls(weight.shape[1], weight.shape[0])
        model.weight = nn.Parameter(weight.detach().clone())
        model.visible_bias = nn.Parameter(visible_bias.detach().to(weight).clone())
        model.hidden_bias = nn.Parameter(hidden_bias.detach().to(weight).clone())
        return model

    @classmethod
    def random(cls, visible: int, hidden: int = 100, *, variance: float = 0.05, seed: Seed) -> Self:
        """Entries of W from N(0, variance), biases from N(0, 1): the random machines of GWG's appendix C.2.

        The paper's N(0, .05 I) names a covariance, so .05 is read as the variance; pass 0.0025 to read it as a deviation.
        """
        visible, hidden, source = whole(visible, "visible"), whole(hidden, "hidden"), random.generator(seed)
        weight = number(variance, "variance", least=0) ** 0.5 * random.normal(
            (hidden, visible), source, torch.get_default_dtype()
        )
        return cls.from_weights(
            weight,
            random.normal((visible,), source, weight.dtype),
            random.normal((hidden,), source, weight.dtype),
        )

    def hidden_logits(self, x: Tensor) -> Float[Tensor, "*batch hidden"]:
        """c + W x: the log-odds of each hidden unit given x."""
        return self.space.embed(x, self.weight.dtype) @ self.weight.T + self.hidden_bias

    def visible_logits(self, h: Tensor) -> Float[Tensor, "*batch visible"]:
        """b + W' h: the log-odds of each visible unit given h."""
        return h.to(self.weight.dtype) @ self.weight + self.visible_bias

    def log_joint(self, x: Tensor, h: Tensor) -> Float[Tensor, "*batch"]:
        """b.x + c.h + h.W x."""
        z = self.space.embed(x, self.weight.dtype)
        return z @ self.visible_bias + (h.to(z.dtype) * self.hidden_logits(z)).sum(-1)

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        z = self.space.embed(x, self.weight.dtype)
        return z @ self.visible_bias + softplus(self.hidden_logits(z)).sum(-1)

    def log_z(self) -> Float[Tensor, ""]:
        """log Z exactly, in double precision: the states of the smaller side are summed, chunk by chunk; differentiable.

        Example:
            >>> import torch, gibbsite as gb
            >>> rbm = gb.models.RBM.random(12, 5, seed=0)
            >>> bool(torch.isclose(rbm.log_z(), gb.exact.log_z(rbm), rtol=1e-5))
            True
        """
        weight, bias, other = self.weight.double(), self.hidden_bias.double(), self.visible_bias.double()
        if weight.shape[0] > weight.shape[1]:
            weight, bias, other = weight.T, other, bias
        units = len(bias)
        if units > _LIMIT:
            raise ValueError(
                f"log_z: expected at most {_LIMIT} units on the smaller side, got {units}: 2^{units} states are too many "
                "to sum; estimate it instead (annealed importance sampling)"
            )
        code = torch.arange(2**units, device=weight.device)
        size = max(1, _MEMORY // max(weight.shape))
        arguments = (weight, bias, other)
        parts = [
            checkpoint(_log_sum, part, *arguments, use_reentrant=False, preserve_rng_state=False)
            for part in code.split(size)
        ]
        return torch.stack(parts).logsumexp(0)

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Float[Tensor, "batch m 2"]:
        flat = x.long()
        if sites is None:
            sites = torch.arange(flat.shape[1], device=x.device).expand(len(x), -1)
        value = flat.gather(1, sites)
        sign = (1 - 2 * value).to(self.weight.dtype)
        inputs = self.hidden_logits(x)[:, None]
        before, rows = softplus(inputs), self.weight.T
        width = max(1, _MEMORY // max(1, inputs.numel()))
        flip = [
            (softplus(inputs + s[..., None] * rows[i]) - before).sum(-1) + s * self.visible_bias[i]
            for i, s in zip(sites.split(width, 1), sign.split(width, 1), strict=True)
        ]
        change = torch.cat(flip, 1)[..., None]
        return torch.zeros_like(change).expand(-1, -1, 2).scatter(-1, 1 - value[..., None], change)

    @property
    def blocks(self) -> int:
        return 1

    def draw_block(self, block: int, x: Tensor, source: Source, clamp: Tensor | None) -> Int[Tensor, "batch visible"]:
        h = random.bernoulli(self.hidden_logits(x), source)
        drawn = random.bernoulli(self.visible_logits(h), source).to(x.dtype)
        return drawn if clamp is None else torch.where(clamp.to(x.device), x, drawn)


def _log_sum(code: Int[Tensor, " n"], weight: Tensor, bias: Tensor, other: Tensor) -> Tensor:
    """log of the sum, over the states h that `code` numbers, of exp(bias.h) prod_i (1 + exp(other_i + (h W)_i))."""
    h = (code[:, None] >> torch.arange(len(bias), device=code.device) & 1).to(weight.dtype)
    return (h @ bias + softplus(h @ weight + other).sum(-1)).logsumexp(0)
