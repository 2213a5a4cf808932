"""Log-mel energies against their formula written out, slopes against a regression line, and what normalising leaves."""

import cmath
import math

import pytest
import torch

from gibbsite.apps.speech import LogMel, SpeechError, normalised, slopes, with_slopes

FRONT = LogMel(rate=800, bands=6, window=0.04, hop=0.015, low=10.0)  # 32 samples, a hop of 12, 32 points


def sound(count, seed=0):
    return torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def reference(front, x, power=2):
    """The formula, one number at a time: a Hann window, a discrete Fourier transform, triangles on the mel scale."""
    window, hop, points = front.samples
    mel = [2595 * math.log10(1 + f / 700) for f in (front.low, front.rate / 2)]
    corners = [
        700 * (10 ** ((mel[0] + k * (mel[1] - mel[0]) / (front.bands + 1)) / 2595) - 1) for k in range(front.bands + 2)
    ]
    rows = []
    for start in range(0, len(x) - points + 1, hop):
        before = (points - window) // 2  # the window stands in the middle of the frame
        y = [x[start + before + n] * (0.5 - 0.5 * math.cos(2 * math.pi * n / window)) for n in range(window)]
        size = [
            abs(sum(v * cmath.exp(-2j * math.pi * k * n / points) for n, v in enumerate(y))) for k in range(points // 2 + 1)
        ]
        row = []
        for a, b, c in zip(corners, corners[1:], corners[2:]):
            energy = 0.0
            for k, amplitude in enumerate(size):
                f = k * front.rate / points
                weight = (f - a) / (b - a) if a <= f <= b else (c - f) / (c - b) if b < f <= c else 0.0
                energy += weight * amplitude**power
            row.append(math.log(max(energy, 1e-10)))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("front", [FRONT, LogMel(rate=1000, bands=4, window=0.02, hop=0.01)])
def test_log_mel_is_its_formula(front, device):
    x = sound(100)
    found = front(x.to(device)).cpu()
    assert torch.allclose(found, reference(front, x.tolist()), atol=1e-9)
    assert not torch.allclose(found, reference(front, x.tolist(), power=1), atol=1e-2)  # the mutant: amplitude for power


def test_a_tone_is_loudest_in_its_band():
    front = LogMel(rate=8000)
    tone = torch.sin(2 * math.pi * 1000 * torch.arange(4000, dtype=torch.float64) / 8000)
    band = int(front(tone).mean(0).argmax())
    weights = front.triangles()[band]
    assert weights[round(1000 * 256 / 8000)] > 0


def test_slopes_are_those_of_regression_lines():
    c = sound(12).reshape(6, 2)
    found = slopes(c)
    for t in range(6):
        near = torch.stack([c[min(max(t + n, 0), 5)] for n in range(-2, 3)])
        n = torch.arange(-2.0, 3.0, dtype=torch.float64)
        line = (n[:, None] * (near - near.mean(0))).sum(0) / (n * n).sum()
        assert torch.allclose(found[t], line)
    assert torch.allclose(slopes(torch.arange(9.0)[:, None])[3:6], torch.ones(3, 1))
    assert with_slopes(c).shape == (6, 6) and torch.equal(with_slopes(c)[:, 4:], slopes(found))


def test_normalised_features_have_mean_0_and_variance_1():
    x = torch.cat((3 + 5 * sound(40).reshape(20, 2), torch.ones(20, 1, dtype=torch.float64)), 1)
    found = normalised(x)
    assert torch.allclose(found.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(found[:, :2].square().mean(0), torch.ones(2, dtype=torch.float64)) and not found[:, 2].any()


def test_what_is_wrong_is_said():
    with pytest.raises(SpeechError, match=r"short: expected at least the 32 samples of one frame, got \(31,\)"):
        FRONT(sound(31), "short")
    with pytest.raises(ValueError, match="low"):
        LogMel(rate=100, low=60.0)
