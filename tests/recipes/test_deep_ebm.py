"""Deep EBMs: what is learned from, what a step costs, the likelihood that is reported, and runs that go on."""

from dataclasses import replace

import pytest
import torch

import gibbsite as gb
from gibbsite.learn import Diverged
from gibbsite.recipes import RECIPES, Bars, deep_ebm
from gibbsite.recipes.deep_ebm_images import DeepEBM, model, problem
from gibbsite.report import RunDirectory, render, surroundings

TINY = DeepEBM(
    data="digits", shrink=(4, 4), features=4, blocks=2, steps=2, slots=20, batch=10, updates=6, warmup=2,
    temperatures=(3, 5), chains=6, shown=4,
)  # fmt: skip


def directory(path):
    return RunDirectory.create(path, {"recipe": "deep-ebm"})


def kept(run):
    """All that a run recorded, except for its times."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in run.results()]


@pytest.mark.parametrize("data", ["digits", "grey_digits"])
def test_the_model_is_the_base_times_the_network_and_has_it_all_to_learn(data):
    config = replace(TINY, data=data, levels=3)
    images = problem(config)
    trained = model(config, images)
    x = images.test[:5]
    assert torch.allclose(trained(x), trained.base(x) + trained.potential(x))
    assert all(not p.requires_grad for p in trained.base.parameters())
    assert all(p.requires_grad for p in trained.potential.parameters())
    assert gb.exact.log_z(trained.base).abs() < 1e-5
    frequent = images.train.double().mean(0)  # of a pixel, and what the base, with a count of each value added, makes of it
    table = trained.base.logits.double()
    held = table.sigmoid() if data == "digits" else table.softmax(-1) @ torch.arange(3.0).double()
    assert (frequent - held).abs().max() < 3 / len(images.train)


def test_bits_are_drawn_anew_and_the_test_images_stay():
    images, again = problem(TINY), problem(replace(TINY, seed=5))
    assert torch.equal(images.test, again.test) and torch.equal(images.train, again.train)
    rows = [images.data.rows(torch.arange(50), torch.Generator().manual_seed(k)) for k in (0, 1)]
    assert not torch.equal(*rows)
    grey = gb.datasets.digits().train[0].double() / 16
    assert images.data.probabilities.tensors[0][0, 0, 1].item() == pytest.approx(grey[:4, 4:].mean().item())


def test_grey_levels_of_the_original_size_are_the_originals():
    images = problem(replace(TINY, data="grey_digits", shrink=(1, 1), levels=17))
    assert torch.equal(images.test.long(), gb.datasets.digits().test.long())


@pytest.mark.parametrize(("data", "levels", "steps"), [("digits", 2, 40), ("grey_digits", 6, 8), ("grey_digits", 200, 1)])
def test_gibbs_evaluates_the_potential_as_often_as_gwg(data, levels, steps):
    """Of 20 steps: the costs that the kernels themselves tell, on a model without a closed form."""
    config = replace(TINY, data=data, levels=levels, steps=20)
    images = problem(config)
    trained, source = model(config, images), torch.Generator().manual_seed(0)
    spent = {}
    for name in ("GWG", "Gibbs"):
        kernel, made = deep_ebm.sampler(replace(config, sampler=name), images)
        state = kernel.init(trained, images.train[:3])
        cost = kernel.step(trained, state, source)[1].cost
        spent[name] = made * (cost.evaluations + cost.gradients)
        assert made == (20 if name == "GWG" else steps)
    assert levels == 200 or spent["Gibbs"] == spent["GWG"]


def test_a_run_that_was_cut_short_goes_on_to_the_same_end(tmp_path, monkeypatch):
    whole, cut = directory(tmp_path / "whole"), directory(tmp_path / "cut")
    deep_ebm.run(TINY, whole, Bars(shown=False))
    real, calls = deep_ebm.bracket, []

    def interrupted(*arguments, **options):
        calls.append(options["temperatures"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(deep_ebm, "bracket", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deep_ebm.run(TINY, cut, Bars(shown=False))
    assert len([row for row in cut.results() if row.get("kind") == "bracket"]) == 1
    deep_ebm.run(TINY, cut, Bars(shown=False))
    assert calls == [3, 5, 5] and kept(cut) == kept(whole)
    for name in ("images", "annealed"):
        for key, value in whole.samples(name).items():
            assert torch.equal(cut.samples(name)[key], value)


def test_the_model_that_is_kept_is_the_one_that_was_bracketed(tmp_path):
    """Its exact likelihood is the one recorded; the mutant, the model before learning, has another."""
    run, images = directory(tmp_path / "run"), problem(TINY)
    deep_ebm.run(replace(TINY, rate=0.05), run, Bars(shown=False))

    def likelihood(which):
        return (which(images.test).double().mean() - gb.exact.log_z(which)).item()

    (recorded,) = {row["exact"] for row in run.results() if row.get("kind") == "bracket"}
    config = replace(TINY, rate=0.05)
    trained = RECIPES["deep-ebm"].trained.load(config, run)
    assert likelihood(trained) == pytest.approx(recorded, abs=1e-6)
    log_z = run.log_z()
    assert log_z.lower < gb.exact.log_z(trained) < log_z.upper and log_z.n == config.chains
    assert abs(likelihood(model(config, images)) - recorded) > 1e-5


@pytest.mark.parametrize(("data", "moves"), [("digits", 1), ("digits", 3), ("grey_digits", 1), ("grey_digits", 2)])
def test_the_estimate_is_the_exact_likelihood(data, moves, monkeypatch):
    """On at most 81 states |z| < 4.9, 1e-6; the mutant leaves the base out of U."""
    config = replace(TINY, data=data, levels=3, moves=moves, chains=200)
    images = problem(config)
    trained = model(config, images).requires_grad_(False)
    for parameter in trained.potential.parameters():
        parameter.mul_(3)  # a network that has learned something
    exact = trained(images.test).double().mean().item() - gb.exact.log_z(trained).item()
    assert abs(exact - trained.base(images.test).mean().item()) > 0.1

    def z():
        _, row = deep_ebm.bracketed(config, images, trained, 100, 0, lambda steps: None)
        return (row["value"] - exact) / row["stderr"]

    assert abs(z()) < 4.9
    real = deep_ebm.log_likelihood
    monkeypatch.setattr(deep_ebm, "log_likelihood", lambda which, *rest: real(which.potential, *rest))
    assert abs(z()) > 4.9


def test_what_cannot_be_trusted_is_said_and_so_is_a_run_that_diverged(tmp_path, monkeypatch):
    recipe, run = RECIPES["deep-ebm"], directory(tmp_path / "run")
    deep_ebm.run(TINY, run, Bars(shown=False))
    row = [row for row in run.results() if row.get("kind") == "bracket"][-1]
    run.record(row | {"temperatures": 7, "trusted": False, "why": "the ends cross", "lower": None})
    page = recipe.page(TINY, run)
    assert "NOT trusted: the ends cross" in page.lead and recipe.findings(TINY, run.results())["trusted"] == 0
    html = render(page, surroundings("cpu") | {"recipe": "", "preset": "", "command": "", "parameters": {}})
    assert "With 7 temperatures: NOT trusted: the ends cross." in html

    def diverging(*arguments, **options):
        raise Diverged(7, "gap", 1e9, 0)

    monkeypatch.setattr(deep_ebm, "fit", diverging)
    run = directory(tmp_path / "other")
    deep_ebm.run(TINY, run, Bars(shown=False))
    page = recipe.page(TINY, run)
    assert recipe.findings(TINY, run.results()) == {} and page.lead == "Learning diverged."
    assert any("Learning diverged, at step 7" in getattr(block, "text", "") for block in page.sections[0].blocks)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"data": "faces"}, "data, sampler: expected one of mnist, frey_faces"),
        ({"batch": 21}, "no larger batch than slots"),
        ({"shrink": (2,)}, "shrink, rate, average, batch: expected rows and columns"),
        ({"levels": 1}, "levels: expected at least 2"),
        ({"chains": 2}, "chains: expected at least 3"),
        ({"moves": 4}, "moves: expected an odd number on bits"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **wrong)


def test_a_size_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match=r"shrink: expected divisors of \(8, 8\), the size of digits, got \(3, 2\)"):
        problem(replace(TINY, shrink=(3, 2)))


def test_on_any_device(tmp_path, device):
    run = directory(tmp_path / "run")
    deep_ebm.run(replace(TINY, device=str(device), data="grey_digits", levels=3), run, Bars(shown=False))
    assert len([row for row in run.results() if row.get("kind") == "bracket"]) == 2
