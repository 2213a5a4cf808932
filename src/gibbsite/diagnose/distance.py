"""Distances between a sample and a law, or between two samples: kernel MMD and total variation."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from ..check import number
from ..exact.enumerate import index, probabilities
from ..model import as_model
from ..space import Discrete, Space

if TYPE_CHECKING:
    Similarity = Callable[[Tensor, Tensor], Tensor]


def hamming_similarity(x: Shaped[Tensor, "n *event"], y: Shaped[Tensor, "m *event"]) -> Float[Tensor, "n m"]:
    """exp(-average Hamming distance), the kernel of the GWG paper (appendix E)."""
    if x.shape[1:] != y.shape[1:]:
        raise ValueError(f"x, y: expected states of one shape, got {tuple(x.shape)} and {tuple(y.shape)}")
    flat = x.reshape(len(x), -1).double(), y.reshape(len(y), -1).double()
    return torch.exp(-torch.cdist(*flat, p=0) / flat[0].shape[1])  # p = 0 counts the entries that differ, pair by pair


def squared_exponential(bandwidth: float) -> "Similarity":
    """exp(-|x - y|^2 / (2 bandwidth^2)), for real states."""
    bandwidth = number(bandwidth, "bandwidth", above=0)

    def similarity(x: Tensor, y: Tensor) -> Tensor:
        flat_x, flat_y = x.reshape(len(x), -1).double(), y.reshape(len(y), -1).double()
        # differences first: |x|^2 + |y|^2 - 2 x.y, which cdist takes for many points, cancels far from the origin
        distance = torch.cdist(flat_x, flat_y, compute_mode="donot_use_mm_for_euclid_dist")
        return torch.exp(-distance.square() / (2 * bandwidth**2))

    return similarity


def mmd(
    x: Shaped[Tensor, "n *event"], y: Shaped[Tensor, "m *event"], similarity: "Similarity" = hamming_similarity
) -> Float[Tensor, ""]:
    """The squared maximum mean discrepancy mean k(x, x') + mean k(y, y') - 2 mean k(x, y), all pairs (never negative).

    References: Gretton et al. (2012), A kernel two-sample test.

    Example:
        >>> import gibbsite as gb
        >>> q = gb.Binary(20).uniform()
        >>> bool(gb.diagnose.mmd(q.sample(200, seed=0), q.sample(200, seed=1)) < 0.01)
        True
    """
    if x.shape[1:] != y.shape[1:] or not len(x) or not len(y):
        raise ValueError(f"x, y: expected non-empty samples of one shape, got {tuple(x.shape)} and {tuple(y.shape)}")
    value = similarity(x, x).mean() + similarity(y, y).mean() - 2 * similarity(x, y).mean()
    return value.clamp(min=0)


def total_variation(
    x: Shaped[Tensor, "n *event"], model: Callable[[Tensor], Tensor], *, space: Space | None = None
) -> Float[Tensor, ""]:
    """Half the L1 distance between the frequencies of x and the enumerated law of a small discrete model."""
    model = as_model(model, space)
    if not isinstance(model.space, Discrete):
        raise TypeError(f"model: expected a model on Binary or Categorical sites, got one on {model.space}")
    x = model.space.check(x)
    if not x.numel():
        raise ValueError(f"x: expected a non-empty sample, got shape {tuple(x.shape)}")
    p = probabilities(model).to(x.device)
    place = index(model.space, x).flatten()
    frequency = torch.bincount(place, minlength=len(p)).double() / len(place)
    return (frequency - p).abs().sum() / 2
