"""Whether probabilities mean what they say: the expected calibration error."""

import torch
from torch import Tensor

from .. import check
from ..space import whole


def calibration_error(probabilities: Tensor, labels: Tensor, *, bins: int = 20) -> float:
    """How far the probability that a label is given lies from how often it is right: the classwise ECE.

    ECE = 1/K sum_y sum_b |B_yb|/n |acc(B_yb) - conf(B_yb)|, where B_yb are the cases whose p(y) lies in the b-th of
    equal bins, conf the mean of p(y) there, acc the share of them whose label is y. `probabilities` (n, K) of n cases with
    `labels` (n,). It is no proper score: a model that always gives the labels' frequencies has 0.

    References: Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning; Ou (2024), Energy-based
        models with applications to speech and language processing, eq. 5.19.

    Example:
        >>> p = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
        >>> round(calibration_error(p, torch.tensor([0, 1])), 6)
        0.4
    """
    p = check.floats(probabilities, "probabilities", ("n", "K"))
    cases, classes = p.shape
    bins = whole(bins, "bins")
    if not cases or not classes or float(p.min()) < 0 or float(p.max()) > 1 + 1e-5:
        raise ValueError(f"probabilities: expected at least one case, values from 0 to 1, got shape {tuple(p.shape)}")
    y = torch.as_tensor(labels, device=p.device)
    if y.shape != (cases,) or y.is_floating_point() or int(y.min()) < 0 or int(y.max()) >= classes:
        raise ValueError(f"labels: expected {cases} integers from 0 to {classes - 1}, got {y.dtype} {tuple(y.shape)}")
    p = p.double()
    place = (p * bins).long().clamp(0, bins - 1) + bins * torch.arange(classes, device=p.device)
    right = torch.nn.functional.one_hot(y.long(), classes).double()
    gaps = torch.zeros(classes * bins, dtype=p.dtype, device=p.device).index_add_(0, place.flatten(), (right - p).flatten())
    return float(gaps.abs().sum() / (classes * cases))
