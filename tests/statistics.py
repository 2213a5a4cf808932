"""Tests of frequencies with a stated false-alarm probability."""

from statistics import NormalDist

import torch

ALARM = 1e-6


def chi_square_bound(freedom: int, alarm: float = ALARM) -> float:
    """The quantile of chi-square at 1 - alarm (Wilson and Hilferty's approximation, good to a percent from 1 degree up)."""
    z = NormalDist().inv_cdf(1 - alarm)
    return freedom * (1 - 2 / (9 * freedom) + z * (2 / (9 * freedom)) ** 0.5) ** 3


def fits(counts: torch.Tensor, probabilities: torch.Tensor) -> bool:
    """Whether rows of counts agree with rows of probabilities: chi-square over all rows, rare cells pooled."""
    counts, expected = counts.double(), counts.double().sum(-1, keepdim=True) * probabilities.double()
    if bool((counts[expected == 0] > 0).any()):
        return False
    statistic, freedom = 0.0, 0
    for row, want in zip(counts, expected, strict=True):
        rare = want < 10
        kept = torch.cat((row[~rare], row[rare].sum()[None])), torch.cat((want[~rare], want[rare].sum()[None]))
        cells = kept[1] > 0
        statistic += float(((kept[0] - kept[1])[cells] ** 2 / kept[1][cells]).sum())
        freedom += int(cells.sum()) - 1
    return statistic < chi_square_bound(freedom)
