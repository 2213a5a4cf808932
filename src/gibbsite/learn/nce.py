"""Noise-contrastive estimation: learning U and its normaliser by telling data from noise."""

from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from ..check import instance, number
from ..model import Distribution, Model, check_model, evaluate
from ..random import Source
from .log_z import Constant, LogZ
from .objective import Objective, Report


def log_noise(noise: Distribution, x: Shaped[Tensor, "batch *event"], name: str) -> Float[Tensor, "batch"]:
    """log q(x) without a graph; an error where it is no number, as where noise never makes what the data show."""
    with torch.no_grad():
        log_q = noise(x)
    if not bool(log_q.isfinite().all()):
        bad = (~log_q.isfinite()).nonzero()[0].tolist()
        raise ValueError(
            f"noise: expected a positive probability of every state of {name}, got log q = {log_q[tuple(bad)].item()} at "
            f"state {bad}: x = {x[tuple(bad)].flatten()[:8].tolist()}; take noise that can make all that the data show"
        )
    return log_q


def logits(
    model: Model,
    data: Shaped[Tensor, "batch *event"],
    negatives: Shaped[Tensor, "negatives *event"],
    *,
    noise: Distribution,
    log_z: nn.Module,
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "negatives"]]:
    """log p(x is data) - log p(x is noise) of both: U(x) - log_z(x) - log q(x) - log nu, nu = negatives / data."""
    if not (len(data) and len(negatives)):
        raise ValueError(f"data, negatives: expected at least one of each, got {len(data)} and {len(negatives)}")
    shift = torch.tensor(len(negatives) / len(data), dtype=torch.float64).log().item()
    if noise.space != check_model(model).space:
        raise ValueError(f"noise: expected a distribution on the model's {model.space}, got one on {noise.space}")
    u = evaluate(model, data, start=True, graph=True), evaluate(model, negatives, graph=True)
    positive = u[0] - log_z(data) - log_noise(noise, data, "the data") - shift
    negative = u[1] - log_z(negatives) - log_noise(noise, negatives, "the negatives") - shift
    if bool((positive == -torch.inf).any()):
        raise ValueError(
            f"log_z: the data have a length that is impossible to {type(log_z).__name__}; give it a probability"
        )
    return positive, negative


def loss_of(positive: Float[Tensor, "batch"], negative: Float[Tensor, "negatives"]) -> Report:
    """-mean_data log s(G) - nu mean_noise log s(-G), and how often the sign of G is right."""
    ratio = len(negative) / len(positive)
    loss = nn.functional.softplus(-positive).mean() + ratio * nn.functional.softplus(negative).mean()
    hits = [(positive.detach() > 0).to(loss.dtype).mean(), (negative.detach() < 0).to(loss.dtype).mean()]
    return Report(loss, {"data_told": hits[0], "noise_told": hits[1]})


def nce(
    model: Model,
    data: Shaped[Tensor, "batch *event"],
    negatives: Shaped[Tensor, "negatives *event"],
    *,
    noise: Distribution,
    log_z: nn.Module,
) -> Float[Tensor, ""]:
    """-E_data log s(G) - nu E_noise log s(-G), G = U - log_z - log q - log nu, s the sigmoid, nu = negatives / data.

    `negatives` are draws of `noise`. With the data mixed with further draws of the noise this is dynamic NCE's loss.

    References: Gutmann and Hyvarinen (2010), Noise-contrastive estimation; EBM-SLP, eq. 2.46.
    """
    return loss_of(*logits(model, data, negatives, noise=noise, log_z=log_z)).loss


@final
class NCE(Objective):
    """Noise-contrastive estimation against `ratio` draws of a fixed noise for each example, U and log_z learned together.

    References: Gutmann and Hyvarinen (2010), Noise-contrastive estimation; EBM-SLP, algorithm 9.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising.lattice(3, coupling=0.1)
        >>> data = model.space.uniform().sample(64, seed=0)
        >>> objective = gb.learn.NCE(model, gb.distributions.Bernoulli.fit(data), ratio=4)
        >>> objective(data, seed=1).loss.item() > 0
        True
    """

    def __init__(self, model: Model, noise: Distribution, ratio: float = 1.0, log_z: LogZ | None = None):
        super().__init__(check_model(model).space)
        self.model, self.noise, self.log_z = model, fixed(noise), log_z or Constant()
        self.ratio = number(ratio, "ratio", above=0)

    def forward(self, data: Shaped[Tensor, "batch *event"], *, seed: Source) -> Report:
        negatives = drawn(self.noise, count(self.ratio, data), seed)
        return loss_of(*logits(self.model, data, negatives, noise=self.noise, log_z=self.log_z))


def count(ratio: float, data: Tensor) -> int:
    """How many draws a ratio to the data is, at least one."""
    return max(1, round(ratio * len(data)))


def drawn(noise: Distribution, n: int, seed: Source) -> Tensor:
    """n draws, without a graph."""
    with torch.no_grad():
        return noise.sample(n, seed=seed)


def fixed(noise: Distribution) -> Distribution:
    """The noise, with its parameters no longer learned."""
    return instance(noise, Distribution, "noise").requires_grad_(False)
