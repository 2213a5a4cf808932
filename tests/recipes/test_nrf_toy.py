"""Generators beside an energy on 32 modes: the mixture, where generators start, and a run that diverges."""

from dataclasses import replace

import torch

from gibbsite.learn import Diverged
from gibbsite.recipes import RECIPES, Bars, nrf_toy
from gibbsite.recipes.nrf_toy import Toy, examples, four_circles, start
from gibbsite.recipes.plane import modes_reached
from gibbsite.report import RunDirectory, render, surroundings

RECIPE = RECIPES["nrf-toy"]


def test_the_modes_are_eight_on_each_circle_and_far_apart():
    means = four_circles().means
    radii = means.norm(dim=1).round(decimals=4)
    assert means.shape == (32, 2) and [int((radii == r).sum()) for r in (2, 3, 4, 5)] == [8] * 4
    assert torch.pdist(means).min() > 10 * 0.1, "of the deviation"
    assert modes_reached(four_circles().sample(2000, seed=0), four_circles())[0] == 32


def test_generators_start_as_far_out_as_the_data_and_stay_in_the_box():
    """The spread of 20,000 draws is within a fifth of the data's (the bound takes some); the mutant is a bare network."""
    own, wide = start(Toy(), 0), examples(Toy(), 0).std()
    x = own.split(own.sample(20_000, seed=0))[1]
    assert abs(x.std() / wide - 1) < 0.2 and x.abs().max() < 6 + 6 * Toy().scale
    bare = start(replace(Toy(), seed=1), 0).decoder.mean[0]
    with torch.no_grad():
        bare[-1].weight.mul_(10)
        assert bare(torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))).abs().max() > 6


def test_methods_start_from_the_same_data_and_weights():
    one, two = start(Toy(), 0), start(Toy(), 0)
    assert torch.equal(one.decoder.mean[0][0].weight, two.decoder.mean[0][0].weight)
    assert not torch.equal(examples(Toy(), 0), examples(Toy(), 1))


def test_a_run_that_diverges_is_recorded_and_not_published(tmp_path, monkeypatch):
    def diverging(*arguments, **options):
        raise Diverged(7, "gap", 1e9, 0)

    monkeypatch.setattr(nrf_toy, "fit", diverging)
    record = {"recipe": "", "preset": "", "command": "", "parameters": {}}
    directory = RunDirectory.create(tmp_path / "run", record)
    RECIPE.run(RECIPE.presets["smoke"], directory, Bars(shown=False))
    assert RECIPE.findings(RECIPE.presets["smoke"], directory.results()) == {}
    html = render(RECIPE.page(RECIPE.presets["smoke"], directory), record | surroundings("cpu"))
    assert "0 of 1" in html and "No run was finished" in html
