"""Noise-contrastive estimation of conditional models p(x | context): noise, and a normaliser, for each context."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..check import instance
from ..model import Distribution, Model
from ..random import Source
from ..space import whole
from .nce import drawn
from .objective import Objective, Report


def log_ratios(
    conditional: nn.Module, noise: nn.Module, data: tuple[Tensor, Tensor], negatives: int, *, seed: Source
) -> Float[Tensor, "1+k batch"]:
    """U(x) - log q(x) of the data, in row 0, and of draws of the noise; those of one context stand in one column."""
    context, x = data
    model = instance(conditional(context), Model, "conditional(context)")
    q = instance(noise(context), Distribution, "noise(context)")
    x = model.space.check(x, "data")
    draws = drawn(q, negatives, seed)
    if draws.shape != (negatives, *x.shape):
        raise ValueError(
            f"noise: expected sample({negatives}) of shape {(negatives, *x.shape)}, in each row one draw of each context's "
            f"noise, got {tuple(draws.shape)}"
        )
    every = torch.cat((x[None], draws.to(x.dtype)))
    with torch.no_grad():
        log_q = q(every)
    u = model(every)
    if not u.shape == log_q.shape == every.shape[:2]:
        wanted = tuple(every.shape[:2])
        raise ValueError(
            f"U, log q: expected a number a state, shape {wanted}, got {tuple(u.shape)} and {tuple(log_q.shape)}"
        )
    if not bool(u[0].isfinite().all() and log_q.isfinite().all()):
        bad = (~(u[0].isfinite() & log_q.isfinite().all(0))).nonzero()[0].tolist()
        raise ValueError(
            f"U, log q: expected finite numbers at the data, got U = {u[0][bad[0]].item()} and log q = "
            f"{log_q[0][bad[0]].item()} at example {bad[0]}; take noise that can make all that the data show"
        )
    return u - log_q


def conditional_nce(ratios: Float[Tensor, "1+k batch"]) -> Float[Tensor, ""]:
    """-mean log s(G_0) - sum_(j = 1..k) mean log s(-G_j), G = U - log q - log k: as if each p(. | context) were normalised.

    Consistent where U can take in each context's log Z; `ranking_nce` needs no such thing.

    References: Ma and Collins (2018), Noise contrastive estimation and negative sampling for conditional models; EBM-SLP,
    section 4.1.3; Deng et al. (2020), Residual energy-based models, eq. 3.
    """
    ratios = checked(ratios)
    told = ratios - torch.tensor(float(len(ratios) - 1), dtype=ratios.dtype).log()
    return nn.functional.softplus(-told[0]).mean() + nn.functional.softplus(told[1:]).sum(0).mean()


def ranking_nce(ratios: Float[Tensor, "1+k batch"]) -> Float[Tensor, ""]:
    """-mean log softmax(U - log q)_0: which of 1 + k is the data's. A context's log Z cancels.

    References: Ma and Collins (2018), eq. 4; Jozefowicz et al. (2016).
    """
    return -checked(ratios).log_softmax(0)[0].mean()


def checked(ratios: Tensor) -> Float[Tensor, "1+k batch"]:
    """The ratios, if there are data and noise among them."""
    if ratios.ndim != 2 or len(ratios) < 2 or not ratios.shape[1]:
        raise ValueError(f"ratios: expected (1 + k, batch) with k >= 1, got {tuple(ratios.shape)}; `log_ratios` makes them")
    return ratios


@final
class ConditionalNCE(Objective):
    """Binary NCE per context: is x the data's or one of k draws of the noise's, given the context?

    `conditional(context)` is the Model, and `noise(context)` the Distribution, of a batch of contexts at once: U takes x of
    shape (k, batch, *event) to (k, batch), and sample(k) returns (k, batch, *event). Data are pairs (context, x).

    References: Ma and Collins (2018); EBM-SLP, section 4.1.3; Deng et al. (2020).
    """

    def __init__(self, conditional: nn.Module, noise: nn.Module, negatives: int = 1):
        super().__init__()
        self.conditional, self.noise = both(conditional, noise)
        self.negatives = whole(negatives, "negatives")

    def forward(self, data: tuple[Tensor, Tensor], *, seed: Source) -> Report:
        return Report(conditional_nce(log_ratios(self.conditional, self.noise, data, self.negatives, seed=seed)))


@final
class RankingNCE(Objective):
    """Ranking NCE per context: which of x and k draws of the noise is the data's? It needs no normaliser.

    The model, the noise and the data are as in `ConditionalNCE`.

    References: Ma and Collins (2018), eq. 4; Jozefowicz et al. (2016), Exploring the limits of language modeling.
    """

    def __init__(self, conditional: nn.Module, noise: nn.Module, negatives: int = 1):
        super().__init__()
        self.conditional, self.noise = both(conditional, noise)
        self.negatives = whole(negatives, "negatives")

    def forward(self, data: tuple[Tensor, Tensor], *, seed: Source) -> Report:
        ratios = log_ratios(self.conditional, self.noise, data, self.negatives, seed=seed)
        first = (ratios.detach().argmax(0) == 0).to(ratios.dtype).mean()
        return Report(ranking_nce(ratios), {"data_first": first})


def both(conditional: nn.Module, noise: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The two modules that map contexts to a model and to its noise, which is not learned."""
    instance(conditional, nn.Module, "conditional", "; a module that maps contexts to a gibbsite.Model")
    instance(noise, nn.Module, "noise", "; a module that maps contexts to a gibbsite.Distribution")
    return conditional, noise.requires_grad_(False)
