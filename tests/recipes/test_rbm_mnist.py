"""The recipe `rbm-mnist`: mutants that its expectations reject, and a run cut short that goes on."""

from dataclasses import replace

import pytest
import torch

import gibbsite as gb
from gibbsite.learn import Drawn, Negatives
from gibbsite.models import RBM
from gibbsite.recipes import RECIPES, Bars, rbm_mnist
from gibbsite.recipes.expected import expectations
from gibbsite.report import RunDirectory
from gibbsite.sample import MH, Gibbs, Informed

from .test_smoke import misses, smoke

SMOKE = RECIPES["rbm-mnist"].presets["smoke"]
SMALL = replace(SMOKE, updates=60, hidden=4, temperatures=20, look_temperatures=5, truth_steps=5, moves=3, truth=10, draws=5)


class Still(Negatives):
    """Chains that never move."""

    def __init__(self, kernel, x, steps):
        super().__init__()
        self.x = x

    def draw(self, model, data, *, seed):
        return Drawn(self.x)


def test_mutant_chains_that_stand_still(tmp_path, monkeypatch):
    monkeypatch.setattr(rbm_mnist, "Persistent", Still)
    assert "test_log_likelihood_exactly" in misses("rbm-mnist", smoke("rbm-mnist", tmp_path / "run")[0])


def test_mutant_a_bracket_of_weights_five_percent_larger(tmp_path, monkeypatch):
    real = rbm_mnist.bracket

    def wrong(machine, **options):
        return real(RBM.from_weights(1.05 * machine.weight, machine.visible_bias, machine.hidden_bias), **options)

    monkeypatch.setattr(rbm_mnist, "bracket", wrong)
    assert "log_z_off_by_errors" in misses("rbm-mnist", smoke("rbm-mnist", tmp_path / "run")[0])


def test_mutant_gibbs_under_the_name_of_gwg(tmp_path, monkeypatch):
    monkeypatch.setattr(rbm_mnist, "samplers", lambda config: {"Gibbs": Gibbs(), "GWG": Gibbs(), "GWG-3": MH(Informed())})
    found = RECIPES["rbm-mnist"].findings(SMOKE, run(tmp_path / "run", SMOKE).results())
    expected = expectations("rbm-mnist", "smoke")["gwg_minus_gibbs_log_mmd"]
    assert not expected.holds(found["gwg_minus_gibbs_log_mmd"]) and expected.holds(found["gwg_3_minus_gibbs_log_mmd"])


def run(path, config):
    """The directory of a run, made or gone on with."""
    directory = RunDirectory.open(path) if path.exists() else RunDirectory.create(path, {"recipe": "rbm-mnist"})
    RECIPES["rbm-mnist"].run(config, directory, Bars(shown=False))
    return directory


def weights(directory):
    return rbm_mnist.TRAINED.load(SMALL, directory).state_dict()


@pytest.mark.parametrize("where", ["bracketed", "draw_truth", "approach"])
def test_a_run_cut_short_goes_on_to_the_same_results(tmp_path, monkeypatch, where):
    """Cut at the first look, or in one of the parts after learning."""
    real = getattr(rbm_mnist, where)

    def cut(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rbm_mnist, where, cut)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", SMALL)
    monkeypatch.setattr(rbm_mnist, where, real)
    one, other = run(tmp_path / "cut", SMALL), run(tmp_path / "whole", SMALL)
    assert all(torch.equal(a, b) for a, b in zip(weights(one).values(), weights(other).values(), strict=True))
    timed = {"seconds", "learning", "cpu_minutes_to_the_bracket"}
    kept = [[{k: v for k, v in row.items() if k not in timed} for row in d.results() if "kind" in row] for d in (one, other)]
    assert kept[0] == kept[1]


def test_what_later_commands_need_of_it(tmp_path):
    directory = run(tmp_path / "run", SMALL)
    trained, machine = rbm_mnist.TRAINED, rbm_mnist.TRAINED.load(SMALL, directory)
    states = trained.data(SMALL)
    assert machine.space == gb.Binary(64) and trained.image(SMALL) == (8, 8)
    assert torch.equal(states, trained.data(SMALL)) and bool(machine(states).isfinite().all())
    assert not torch.equal(machine.weight, rbm_mnist.build(SMALL).weight)
    state = trained.kernel(SMALL).init(machine, states[:3])
    assert state.x.shape == (3, 64)


def test_moments_and_mistakes():
    assert rbm_mnist.moments(30) == [1, 2, 5, 10, 20, 30] and rbm_mnist.moments(1) == [1]
    with pytest.raises(ValueError, match="expected mnist or digits"):
        rbm_mnist.RBMMnist(images="letters")
    with pytest.raises(ValueError, match="no more looks than"):
        rbm_mnist.RBMMnist(updates=3)
