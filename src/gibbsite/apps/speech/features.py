"""From sound to features: log-mel energies by torch.stft, their slopes over time, and what makes recordings comparable."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ...check import number
from ...space import whole
from .errors import SpeechError

_FLOOR = 1e-10


@final
@dataclass(frozen=True)
class LogMel:
    """log sum_f H_m(f) |X_t(f)|^2, X_t the Fourier transform of frame t under a Hann window, H_m triangles on the mel scale.

    mel(f) = 2595 log10(1 + f / 700); the triangles' corners are evenly spaced in mel between `low` and half the rate.
    A window of `window` seconds stands in the middle of a frame, one every `hop` seconds; frames lie within the recording.

    References: Davis and Mermelstein (1980), Comparison of parametric representations for monosyllabic word recognition.

    Example:
        >>> import torch
        >>> from gibbsite.apps.speech import LogMel
        >>> LogMel(rate=8000)(torch.zeros(8000)).shape
        torch.Size([97, 40])
    """

    rate: int = 16_000
    bands: int = 40
    window: float = 0.025
    hop: float = 0.010
    low: float = 20.0

    def __post_init__(self):
        whole(self.rate, "rate")
        whole(self.bands, "bands")
        number(self.window, "window", above=0)
        number(self.hop, "hop", above=0)
        number(self.low, "low", least=0, below=self.rate / 2)

    @property
    def samples(self) -> tuple[int, int, int]:
        """Samples of a window, of a hop, and points of the Fourier transform: the next power of 2."""
        window, hop = round(self.rate * self.window), round(self.rate * self.hop)
        return window, hop, 1 << (window - 1).bit_length()

    def triangles(self) -> Float[Tensor, "bands frequencies"]:
        """The weight of each frequency of the transform in each band."""
        top = _mel(self.rate / 2)
        corners = torch.linspace(_mel(self.low), top, self.bands + 2, dtype=torch.float64)
        corners = 700 * (10 ** (corners / 2595) - 1)
        points = self.samples[2]
        frequencies = torch.arange(points // 2 + 1, dtype=torch.float64) * self.rate / points
        left, middle, right = (corners[k : k + self.bands, None] for k in range(3))
        rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
        return torch.minimum(rising, falling).clamp(min=0)

    def __call__(self, sound: Float[Tensor, " samples"], name: str = "sound") -> Float[Tensor, "frames bands"]:
        """The features of a recording."""
        window, hop, points = self.samples
        if sound.ndim != 1 or len(sound) < points:
            raise SpeechError(f"{name}: expected at least the {points} samples of one frame, got {tuple(sound.shape)}")
        shape = torch.hann_window(window, dtype=sound.dtype, device=sound.device)
        spectrum = torch.stft(sound, points, hop, window, shape, center=False, return_complex=True)
        power = spectrum.abs().square().mT
        return (power @ self.triangles().to(power).mT).clamp(min=_FLOOR).log()


def _mel(frequency: float) -> float:
    return 2595 * math.log10(1 + frequency / 700)


def normalised(features: Float[Tensor, "frames size"]) -> Float[Tensor, "frames size"]:
    """Each feature with mean 0 and variance 1 over a recording; one that does not vary is 0."""
    centred = features - features.mean(0)
    return centred / centred.square().mean(0).sqrt().clamp(min=1e-5)


def slopes(features: Float[Tensor, "frames size"], reach: int = 2) -> Float[Tensor, "frames size"]:
    """d_t = sum_(n=1..reach) n (c_(t+n) - c_(t-n)) / (2 sum n^2), the regression line's slope; the ends are repeated."""
    padded = torch.cat((features[:1].expand(reach, -1), features, features[-1:].expand(reach, -1)))
    total, frames = torch.zeros_like(features), len(features)
    for n in range(1, reach + 1):
        total = total + n * (padded[reach + n : reach + n + frames] - padded[reach - n : reach - n + frames])
    return total / (2 * sum(n * n for n in range(1, reach + 1)))


def with_slopes(features: Float[Tensor, "frames size"]) -> Float[Tensor, "frames triple"]:
    """The features, their slopes and the slopes of these, side by side."""
    first = slopes(features)
    return torch.cat((features, first, slopes(first)), 1)
