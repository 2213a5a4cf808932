"""The calibration error against its definition in loops; forecasts that are known to be honest, or not."""

import pytest
import torch

import gibbsite as gb


def by_definition(p, y, bins):
    n, classes = p.shape
    total = 0.0
    for c in range(classes):
        for b in range(bins):
            inside = [i for i in range(n) if b / bins <= float(p[i, c]) < (b + 1) / bins or (b == bins - 1 and p[i, c] == 1)]
            if inside:
                right = sum(int(y[i]) == c for i in inside) / len(inside)
                said = sum(float(p[i, c]) for i in inside) / len(inside)
                total += len(inside) / n * abs(right - said)
    return total / classes


def cases(device, n=200, classes=3):
    g = torch.Generator().manual_seed(0)
    p = torch.rand(n, classes, generator=g, dtype=torch.float64).softmax(-1)
    p[:5] = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)  # both ends belong to a bin
    return p.to(device), torch.randint(classes, (n,), generator=g).to(device)


@pytest.mark.parametrize("bins", [1, 7, 20])
def test_it_is_its_definition(device, bins):
    p, y = cases(device)
    assert gb.diagnose.calibration_error(p, y, bins=bins) == pytest.approx(by_definition(p, y, bins), abs=1e-12)


def test_the_error_of_the_best_label_alone_is_another_number(device):
    p, y = cases(device)
    top, right = p.max(-1).values[:, None], (p.argmax(-1) == y).long()
    mutant = by_definition(torch.cat([1 - top, top], 1), right, 20)
    assert abs(gb.diagnose.calibration_error(p, y) - mutant) > 1e-3


def test_frequencies_have_no_error_and_certainty_that_is_wrong_has_all_of_it(device):
    y = torch.arange(10, device=device) % 2
    assert gb.diagnose.calibration_error(torch.full((10, 2), 0.5, device=device), y) == pytest.approx(0, abs=1e-12)
    wrong = torch.nn.functional.one_hot(1 - y).float()
    assert gb.diagnose.calibration_error(wrong, y) == pytest.approx(1)


def test_mistakes_are_named():
    p = torch.full((2, 2), 0.5)
    with pytest.raises(ValueError, match="values from 0 to 1"):
        gb.diagnose.calibration_error(3 * p, torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match="integers from 0 to 1"):
        gb.diagnose.calibration_error(p, torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="at least one case"):
        gb.diagnose.calibration_error(p[:0], torch.zeros(0, dtype=torch.long))
