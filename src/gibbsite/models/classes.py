"""Drawing an independent set of sites at once: what the colour classes of Ising and Potts models have in common."""

from jaxtyping import Int
from torch import Tensor

from .. import random
from ..model import ClosedForm
from ..random import Source


def draw_class(
    model: ClosedForm, members: Int[Tensor, " members"], x: Int[Tensor, "batch *event"], source: Source, clamp: Tensor | None
) -> Int[Tensor, "batch *event"]:
    """x with the free sites of one independent set drawn from their conditionals; no two members may be coupled."""
    members = members.to(x.device)
    if clamp is not None:
        members = members[~clamp.flatten().to(x.device)[members]]
    if not len(members):
        return x
    sites = members.expand(len(x), -1)
    drawn = random.categorical(model.site_logits(x, sites), source)
    return x.flatten(1).scatter(1, sites, drawn.to(x.dtype)).view_as(x)
