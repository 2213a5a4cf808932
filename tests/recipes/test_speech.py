"""The speech application's page: bands of cepstra, alignments; its smoke preset, where its corpus is here."""

import math

import torch

from gibbsite.recipes import speech_page


def test_cepstra_are_drawn_as_the_bands_that_they_are_the_cosine_transform_of():
    source = torch.Generator().manual_seed(0)
    band, order = torch.arange(40.0) + 0.5, torch.arange(13.0)
    cosines = torch.cos(math.pi * order[:, None] * band / 40)
    bands = torch.randn(5, 13, generator=source) @ cosines  # smooth ones, which 13 cepstra hold whole
    cepstra = bands @ cosines.T / cosines.square().sum(1)
    assert torch.allclose(speech_page._bands(cepstra), bands, atol=1e-4)
    assert speech_page._bands(bands) is bands


def test_labels_last_to_where_their_frames_end():
    assert speech_page.spans([0, 0, 2, 2, 0, 2, 1, 1], 1.0) == [(2, 4, 2), (5, 6, 2), (6, 8, 1)]
