"""Have chains forgotten where they started? A permutation test of groups of chains, exact for any autocorrelation."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import random
from ..random import Source


def group_p_value(
    values: Float[Tensor, "chains k"], group: Int[Tensor, " chains"], *, shuffles: int = 4000, seed: Source
) -> float:
    """How often shuffled groups differ as much: the largest share of variance between groups over k statistics of a chain.

    If every chain has the same law, its statistics may be long-run means of anything, and the chains are independent, then
    the p-value is uniform, however slowly each chain moves: the test needs no effective sample size.
    """
    centred = values.double() - values.double().mean(0)
    spread = centred.square().sum(0)
    centred = centred[:, spread > 1e-20 * (1 + values.double().square().sum(0))]
    if not centred.shape[1]:
        return 1.0
    orders = random.uniform((shuffles, len(values)), seed).argsort(1).to(values.device)
    member = torch.nn.functional.one_hot(group, int(group.max()) + 1).double()
    seen = _between(centred, member[None])
    others = torch.cat([_between(centred, member[part]) for part in orders.split(500)])
    return float((1 + (others >= seen * (1 - 1e-12)).sum()) / (1 + shuffles))


def _between(centred: Float[Tensor, "chains k"], member: Float[Tensor, "shuffles chains groups"]) -> Tensor:
    """The largest share of a statistic's variance that lies between the groups' means, for each shuffle."""
    sums, sizes = torch.einsum("scg,ck->sgk", member, centred), member.sum(1)
    return ((sums.square() / sizes[..., None]).sum(1) / centred.square().sum(0)).amax(-1)
