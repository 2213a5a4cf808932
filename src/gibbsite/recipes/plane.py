"""Models in the plane beside a mixture that is known: the modes that draws reach, and densities to look at."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..distributions import NormalMixture
from ..model import Model, dtype_of


def modes_reached(x: Float[Tensor, "n 2"], truth: NormalMixture, reach: float = 3.0) -> tuple[int, float]:
    """How many modes have a draw within `reach` of their standard deviations, and the share of draws that are so near one.

    References: Dumoulin et al. (2017), Adversarially learned inference, for both; Song and Ou (2018).
    """
    distance = torch.cdist(x.double(), truth.means.double().to(x.device)) / truth.scales.double().to(x.device)
    near, which = distance.min(1)
    kept = which[near < reach]
    return len(kept.unique()), len(kept) / max(1, len(x))


@torch.no_grad()
def density(model: Model, side: float, points: int = 161) -> Float[Tensor, "points points"]:
    """exp U / Z at a grid over [-side, side] x [-side, side], normalised there."""
    line = torch.linspace(-side, side, points, dtype=torch.float64)
    x = torch.cartesian_prod(line, line)
    u = torch.cat([model(part.to(dtype_of(model))).double() for part in x.split(1 << 14)])
    return (u - u.logsumexp(0) - 2 * math.log(2 * side / (points - 1))).exp().view(points, points)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; no error for one value alone."""
    tensor = torch.tensor(values, dtype=torch.float64)
    error = (tensor.std() / math.sqrt(len(values))).item() if len(values) > 1 else math.nan
    return tensor.mean().item(), error
