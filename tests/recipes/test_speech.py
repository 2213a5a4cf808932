"""The speech application's page: bands of cepstra, alignments; its smoke preset, where its corpus is here."""

import math

import torch

from gibbsite.apps.speech import batches
from gibbsite.recipes import APPLICATIONS, Bars, speech_page
from gibbsite.recipes.expected import expectations
from gibbsite.report import RunDirectory, render, surroundings


def smoke(path):
    """What the smoke preset found that was not as expected, and its report."""
    recipe, expected = APPLICATIONS["speech"], expectations("speech", "smoke")
    config = recipe.presets["smoke"]
    record = {"recipe": "speech", "preset": "smoke", "command": "", "parameters": {}, **surroundings("cpu")}
    directory = RunDirectory.create(path, record)
    recipe.run(config, directory, Bars(shown=False))
    found = recipe.findings(config, directory.results())
    assert len(expected) == 2
    return {key for key, row in expected.items() if not row.holds(found[key])}, render(
        recipe.page(config, directory), record
    )


def test_smoke_is_as_expected(data, tmp_path):
    wrong, html = smoke(tmp_path / "run")
    assert not wrong and html.count("<figure>") == 4 and html.count("<table") == 4


def test_mutant_labels_from_the_end_to_the_start(data, tmp_path, monkeypatch):
    real = batches.collated
    monkeypatch.setattr(batches, "collated", lambda x, labels, device: real(x, [y.flip(0) for y in labels], device))
    assert "test_error" in smoke(tmp_path / "run")[0]


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
