"""Pseudo-likelihood: each site's conditional probability given the others, which needs no normaliser."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..local import site_logits
from ..model import Model, check_model
from ..random import Seed, Source
from ..space import Discrete, whole
from .objective import Objective, Report


def discrete(model: Model) -> Discrete:
    """The model's space, if it is one of discrete sites."""
    if not isinstance(space := check_model(model).space, Discrete):
        raise TypeError(
            f"model: expected one on Binary or Categorical sites, got one on {space}; see score_matching for Real"
        )
    return space


def conditionals(
    model: Model, data: Int[Tensor, "batch *event"], sites: Int[Tensor, "batch m"] | None = None
) -> Float[Tensor, "batch m states"]:
    """log p(x_i = k | the rest) of all sites, or of some of each example, with a graph to the parameters."""
    space = discrete(model)
    if not len(data):
        raise ValueError("data: expected at least one state, got none")
    return site_logits(model, space.check(data, "data"), sites=sites, graph=True)[1].log_softmax(-1)


def current(
    space: Discrete, data: Int[Tensor, "batch *event"], sites: Int[Tensor, "batch m"] | None
) -> Int[Tensor, "batch m"]:
    """The values that the sites have."""
    flat = data.reshape(len(data), space.sites).long()
    return flat if sites is None else flat.gather(1, sites)


def pseudo_likelihood(
    model: Model, data: Int[Tensor, "batch *event"], sites: Int[Tensor, "batch m"] | None = None
) -> Float[Tensor, ""]:
    """-E_data sum_i log p(x_i | the rest). With `sites`, m of the n sites of each example, n / m times their sum.

    References: Besag (1975), Statistical analysis of non-lattice data.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising.lattice(3, coupling=0.0)
        >>> round(gb.learn.pseudo_likelihood(model, model.space.uniform().sample(4, seed=0)).item(), 3)   # 9 log 2
        6.238
    """
    logs = conditionals(model, data, sites)
    space = discrete(model)
    own = logs.gather(-1, current(space, data, sites)[..., None])[..., 0]
    return -own.mean(1).mean() * space.sites


def some_sites(space: Discrete, batch: int, count: int, seed: Seed, device: torch.device) -> Int[Tensor, "batch count"]:
    """For each example `count` of its sites, drawn without replacement."""
    if whole(count, "sites") > space.sites:
        raise ValueError(f"sites: expected at most the {space.sites} sites of the model, got {count}")
    keys = random.uniform((batch, space.sites), random.generator(seed, device))
    return keys.argsort(1)[:, :count].to(device)


@final
class PseudoLikelihood(Objective):
    """Pseudo-likelihood over all sites, or over `sites` random ones of each example (a large model, in pieces)."""

    def __init__(self, model: Model, sites: int | None = None):
        space = discrete(model)
        super().__init__(space)
        if sites is not None and whole(sites, "sites") > space.sites:
            raise ValueError(f"sites: expected at most the {space.sites} sites of the model, got {sites}")
        self.model, self.sites = model, sites

    def forward(self, data: Int[Tensor, "batch *event"], *, seed: Source) -> Report:
        if self.sites is None:
            return Report(pseudo_likelihood(self.model, data))
        sites = some_sites(discrete(self.model), len(data), self.sites, seed, data.device)
        return Report(pseudo_likelihood(self.model, data, sites))
