"""The CRF transducer: globally normalised, with the whole label history behind every label."""

from collections.abc import Mapping
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ....check import instance
from ....random import Source
from .beam import Found, search, sequence_scores
from .head import Losses, any_source
from .potentials import Potentials, Separate, Sum
from .transducer import Transducer

_FIRST_DESIGN = Sum()


@final
class CRFTransducer(Transducer):
    """p(y | x) = exp u(y, x) / Z(x), u = sum_t phi_t(y_t) + psi_t(y_0 .. y_(t-1), y_t), with phi and psi of f and g.

    The design of the potentials is `Sum()` (eq. 4.30) or `Separate()` (eq. 4.31). Z is a sum over all K^T sequences:
    learning takes it over a beam, up to the first place j where the gold prefix leaves it (early update),

        loss = -u(y*_1..y*_j) + log sum_(y in B_j) exp u(y_1..y_j),    B_j = the beam at j together with the gold prefix,

    which is at least 0 because B_j has the gold prefix, and exact when the beam has room for all sequences. `best` gives
    log p with the beam's Z, which is a lower bound of Z: an upper bound of log p.

    References: Hu et al. (2019), Neural CRF transducers for sequence labeling; Andor et al. (2016); Collins and
    Roark (2004); EBM-SLP, section 4.3.2.

    Example:
        >>> import torch
        >>> from gibbsite.apps.tagging.heads import CRFTransducer
        >>> head = CRFTransducer(size=6, labels=3, source=torch.Generator().manual_seed(0))
        >>> features, mask = torch.zeros(2, 4, 6), torch.ones(2, 4, dtype=torch.bool)
        >>> bool((head.loss(features, mask, torch.zeros(2, 4).long(), source=None).values >= 0).all())
        True
    """

    def __init__(
        self,
        size: int,
        labels: int,
        *,
        design: Potentials = _FIRST_DESIGN,
        hidden: int = 64,
        dropout: float = 0.0,
        width: int = 8,
        source: Source,
    ):
        super().__init__(size, labels, hidden, dropout, width, source)
        self.design = instance(design, Potentials, "design")

    @property
    def potentials(self) -> Potentials:
        return self.design

    def log_share(self, scores: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
        return scores.log_softmax(-1)

    def loss(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
        *,
        source: Source | None,
    ) -> Losses:
        f, lengths = self.aligned(features, mask)
        gold, keep = self.gold(labels, mask), self.keep(f, source)
        found = search(f, lengths, self.prediction, self.design, self.width, gold=gold, keep=keep)
        return Losses(-self._within(f, gold, found, keep), {"early": found.left.double().mean()})

    def log_p(
        self,
        features: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        labels: Int[Tensor, "batch places"],
    ) -> Float[Tensor, " batch"]:
        """u(y) - log sum exp u over the beam and y: an upper bound."""
        f, lengths = self.aligned(features, mask)
        return self._within(f, self.gold(labels, mask), search(f, lengths, self.prediction, self.design, self.width))

    def _within(self, f: Tensor, gold: Tensor, found: Found, keep: Tensor | None = None) -> Float[Tensor, " batch"]:
        """log of the gold prefix's share of the prefixes found and itself."""
        together = torch.cat((gold[:, None], found.labels), 1)
        scores = sequence_scores(f, together, found.ends, self.prediction, self.design, keep=keep)
        return scores[:, 0] - torch.where(_counted(gold, found), scores, -torch.inf).logsumexp(1)

    def settings(self) -> dict[str, Any]:
        return {**self.sizes(), "design": type(self.design).__name__}

    @classmethod
    def restored(cls, settings: Mapping[str, Any], size: int, labels: int) -> Self:
        designs = {kind.__name__: kind() for kind in (Sum, Separate)}
        return cls(size, labels, **{**settings, "design": designs[settings["design"]]}, source=any_source())


def _counted(gold: Int[Tensor, "batch places"], found: Found) -> Bool[Tensor, "batch one_more"]:
    """Which of the gold prefix and the hypotheses stand in B_j: each sequence once, the gold one first."""
    before = torch.arange(gold.shape[1], device=gold.device) < found.ends[:, None, None]
    other = ((found.labels != gold[:, None]) & before).any(-1) & found.scores.isfinite()
    return torch.cat((torch.ones_like(other[:, :1]), other), 1)
