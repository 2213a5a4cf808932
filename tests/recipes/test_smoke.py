"""Every recipe's smoke preset meets expected.toml, and a deliberately wrong one does not."""

import sys
from dataclasses import replace

import pytest

from gibbsite.models import FHMM, RBM, Ising
from gibbsite.recipes import (
    RECIPES,
    Bars,
    deep_ebm,
    earm_toy,
    fhmm,
    ising_learning,
    ising_sampling,
    ising_transition,
    label_bias,
    nrf_toy,
    rbm_digits,
    relaxations,
    vaebm_stages,
)
from gibbsite.recipes.expected import Expectation, checks, expectations
from gibbsite.report import RunDirectory, render, surroundings
from gibbsite.sample import MH, Gibbs, Informed


def smoke(name, path):
    """The findings of the smoke preset, and its report."""
    recipe = RECIPES[name]
    config = recipe.presets["smoke"]
    record = {"recipe": name, "preset": "smoke", "command": "", "parameters": {}, **surroundings("cpu")}
    directory = RunDirectory.create(path, record)
    recipe.run(config, directory, Bars(shown=False))
    return recipe.findings(config, directory.results()), render(recipe.page(config, directory), record)


def misses(name, found):
    return {key for key, expectation in expectations(name, "smoke").items() if not expectation.holds(found[key])}


@pytest.mark.parametrize("name", RECIPES)
def test_smoke_is_as_expected(name, tmp_path):
    found, html = smoke(name, tmp_path / "run")
    assert expectations(name, "smoke") and misses(name, found) == set(), found
    assert html.count("<figure>") >= 1 and html.count("<table") >= 2


def test_mutant_a_coupling_five_percent_off(tmp_path, monkeypatch):
    real = Ising.lattice
    monkeypatch.setattr(ising_transition.Ising, "lattice", lambda side, *, coupling: real(side, coupling=1.05 * coupling))
    assert "energy_worst_z" in misses("ising-transition", smoke("ising-transition", tmp_path / "run")[0])


def test_mutant_gibbs_under_the_name_of_gwg(tmp_path, monkeypatch):
    real = ising_sampling.samplers
    monkeypatch.setattr(ising_sampling, "samplers", lambda config: {**real(config), "GWG": Gibbs()})
    missed = misses("ising-sampling", smoke("ising-sampling", tmp_path / "run")[0])
    assert missed == {"gwg_ess_over_exact_4x4_theta_0", "gwg_over_gibbs_ess_4x4_theta_0"}


def test_mutant_a_posterior_whose_chains_forget(tmp_path, monkeypatch):
    real = FHMM.sample_exact

    def wrong(self, n, *, seed):
        other = FHMM(self.observations, self.weight, self.bias.detach(), stay=0.6)
        return real(other, n, seed=seed)

    monkeypatch.setattr(FHMM, "sample_exact", wrong)
    assert "block_gibbs_log_joint_z" in misses("fhmm", smoke("fhmm", tmp_path / "run")[0])


def test_mutant_chains_that_have_hardly_moved(tmp_path, monkeypatch):
    real = relaxations.last_states

    def short(kernel, model, chains, steps, source, advance):
        return real(kernel, model, chains, 3 if repr(kernel) == repr(MH(Informed())) else steps, source, advance)

    monkeypatch.setattr(relaxations, "last_states", short)
    assert "gwg_mmd_over_exact_12" in misses("relaxations", smoke("relaxations", tmp_path / "run")[0])


def test_mutant_gibbs_learns_under_the_name_of_gwg(tmp_path, monkeypatch):
    monkeypatch.setattr(ising_learning, "samplers", lambda: {"Gibbs": Gibbs(), "GWG": Gibbs()})
    missed = misses("ising-learning", smoke("ising-learning", tmp_path / "run")[0])
    assert missed == {"gwg_minus_gibbs_on_lattices_at_equal_steps"}


def test_mutant_samples_of_a_model_whose_edges_count_once(tmp_path, monkeypatch):
    """Couplings theta instead of 2 theta: the usual mistake with the paper's convention."""
    real = ising_learning.draw

    def wrong(truth, examples, source):
        return real(Ising(truth.couplings.detach() / 2), examples, source)

    monkeypatch.setattr(ising_learning, "draw", wrong)
    missed = misses("ising-learning", smoke("ising-learning", tmp_path / "run")[0])
    assert "exact_likelihood_minus_least_3_x_3_theta_0.15" in missed


def test_mutant_a_word_is_surer_after_what_was_seen_more_often(tmp_path, monkeypatch):
    """What follows "likes", seen twice, is then surer than what follows "like", seen once."""
    real = label_bias.local_model

    def wrong(epsilon):
        model = real(epsilon)
        model.conditional.logits.data[3, 5] += 0.1
        return model

    monkeypatch.setattr(label_bias, "local_model", wrong)
    missed = misses("label-bias", smoke("label-bias", tmp_path / "run")[0])
    assert missed == {"local_gap", "local_score_minus_exact"}


def test_mutant_a_feature_of_two_words_looks_at_one(tmp_path, monkeypatch):
    real = label_bias.features

    def wrong(x):
        f = real(x)
        f[..., 6] = x[..., 1] == 3  # "likes", whatever follows
        return f

    monkeypatch.setattr(label_bias, "features", wrong)
    missed = misses("label-bias", smoke("label-bias", tmp_path / "run")[0])
    assert {"log_z_of_all_216", "last_score_learned"} <= missed


def test_mutant_a_bracket_of_weights_five_percent_off(tmp_path, monkeypatch):
    real = rbm_digits.bracket

    def wrong(machine, **options):
        return real(RBM.from_weights(1.05 * machine.weight, machine.visible_bias, machine.hidden_bias), **options)

    monkeypatch.setattr(rbm_digits, "bracket", wrong)
    assert "log_z_minus_exact" in misses("rbm-digits", smoke("rbm-digits", tmp_path / "run")[0])


def test_mutant_an_average_that_hardly_leaves_the_start(tmp_path, monkeypatch):
    real = rbm_digits.Average
    monkeypatch.setattr(rbm_digits, "Average", lambda machine, decay: real(machine, 0.9999))
    assert "above_independent_pixels" in misses("rbm-digits", smoke("rbm-digits", tmp_path / "run")[0])


def test_mutant_an_average_that_never_takes_the_weights_in(tmp_path, monkeypatch):
    monkeypatch.setattr(deep_ebm.Average, "update", lambda self: None)
    assert "above_independent_pixels" in misses("deep-ebm", smoke("deep-ebm", tmp_path / "run")[0])


def test_mutant_earm_that_ascends(tmp_path, monkeypatch):
    module = sys.modules["gibbsite.learn.earm"]  # `gibbsite.learn.earm` is the function
    real = module.earm_of
    monkeypatch.setattr(module, "earm_of", lambda *told: -real(*told))
    missed = misses("earm-toy", smoke("earm-toy", tmp_path / "run")[0])
    assert {f"{key}_minus_cross_entropy_last_9600" for key in ("earm", "earm_without_average")} <= missed


def test_mutant_data_of_the_source_without_its_tilt(tmp_path, monkeypatch):
    real = earm_toy.Truth.sample

    def wrong(self, n, source):
        return real(earm_toy.Truth(self.model.base), n, source)

    monkeypatch.setattr(earm_toy.Truth, "sample", wrong)
    missed = misses("earm-toy", smoke("earm-toy", tmp_path / "run")[0])
    assert "cross_entropy_kl_9600" in missed


def test_mutant_a_log_z_that_is_off(tmp_path, monkeypatch):
    real = vaebm_stages.integrate

    def wrong(*arguments):
        found = real(*arguments)
        return replace(found, value=found.value + 0.3)

    monkeypatch.setattr(vaebm_stages, "integrate", wrong)
    assert misses("vaebm-25gaussians", smoke("vaebm-25gaussians", tmp_path / "run")[0]) == {"vaebm_test_z"}


def test_mutant_a_log_z_of_another_box(tmp_path, monkeypatch):
    real = nrf_toy.integrate
    monkeypatch.setattr(nrf_toy, "integrate", lambda model, low, high, points: real(model, 0.0, high, points))
    assert "test_z" in misses("nrf-toy", smoke("nrf-toy", tmp_path / "run")[0])


def test_mutant_an_energy_that_learns_the_wrong_way(tmp_path, monkeypatch):
    real = vaebm_stages.Contrastive.forward

    def wrong(self, data, *, seed):
        report = real(self, data, seed=seed)
        return report._replace(loss=-report.loss)

    monkeypatch.setattr(vaebm_stages.Contrastive, "forward", wrong)
    found = smoke("vaebm-25gaussians", tmp_path / "run")[0]
    assert found["diverged"] == 1 or "vaebm_below_truth" in misses("vaebm-25gaussians", found)


def test_every_expectation_is_explained_and_names_a_finding():
    for name, recipe in RECIPES.items():
        for preset in recipe.presets:
            for expectation in expectations(name, preset).values():
                assert expectation.tolerance >= 0 and len(expectation.source) > 20 and expectation.hardware


def test_a_finding_that_is_no_number_or_missing_is_not_as_expected():
    expectation = Expectation(1.0, 0.1, "why", "any")
    assert expectation.holds(1.1 - 1e-9) and not expectation.holds(float("nan")) and not expectation.holds(1.2)
    (section,) = checks({"a": expectation, "b": expectation}, {"a": 3.0})
    assert [row[3] for row in section.blocks[0].rows] == ["NO", "not measured"]
    assert checks({}, {"a": 1.0}) == []


def test_presets_restore_from_what_config_json_holds():
    for recipe in RECIPES.values():
        for config in recipe.presets.values():
            parameters = {key: list(value) if isinstance(value, tuple) else value for key, value in vars(config).items()}
            assert recipe.restore(parameters) == config
    parameters = vars(RECIPES["fhmm"].presets["smoke"])
    with pytest.raises(ValueError, match="these differ: length"):
        RECIPES["fhmm"].restore({key: value for key, value in parameters.items() if key != "length"})


def test_fhmm_blocks_are_all_bits_of_one_time():
    config = fhmm.FactorialHMM(length=3, factors=2)
    kernel, _, _ = fhmm.samplers(config)["Hamming ball"]
    assert kernel.blocks == [[0, 1], [2, 3], [4, 5]]
