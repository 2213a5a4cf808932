"""Samples of Ising models from which couplings are learned: their law, and the least error that they allow."""

import math

import pytest
import torch

from gibbsite import exact as enumeration
from gibbsite.learn import Diverged
from gibbsite.models import Ising
from gibbsite.random import generator
from gibbsite.recipes import RECIPES, Bars, ising_learning
from gibbsite.recipes.ising_learning import Exact, IsingLearning, Method, Watched, findings
from gibbsite.recipes.ising_problems import Problem, draw, least_log_rmse
from gibbsite.recipes.ising_transition import exact
from gibbsite.report import RunDirectory, render, surroundings


@pytest.mark.parametrize(("theta", "how"), [(0.1, "Swendsen-Wang"), (-0.1, "parallel tempering")])
def test_samples_have_the_exact_mean_energy(theta, how):
    """Independent samples: |z| < 4.9, 1e-6; an even torus has the energy of -theta too. Mutant: a coupling 15 % larger."""
    side, samples = 6, 1000
    truth = Problem(side, theta).truth(0)
    data, described, drift = draw(truth, samples, generator(1))
    assert described.startswith(how) and data.shape == (samples, side**2) and abs(drift) < 4.9
    with torch.no_grad():
        energy = -truth(data).double() / (abs(2 * theta) * side**2)

    def z(coupling):
        mean, heat = exact(side, coupling)
        error = math.sqrt(heat / coupling**2 / side**2 / samples)
        return abs(energy.mean().item() - math.copysign(mean, -1)) / error

    assert z(2 * abs(theta)) < 4.9 < z(2.3 * abs(theta))


def test_samples_of_small_models_are_drawn_by_enumeration():
    truth = Problem(8, None).truth(0)
    data, how, _ = draw(truth, 4000, generator(0))
    found = (2 * data.double() - 1).mean(0).abs().max().item() * math.sqrt(4000)  # without fields every mean is 0
    assert how == "enumeration" and found < 5.3  # 1e-6 over 8 sites, two-sided
    assert (2 * data[:400].double() - 1).T.cov().fill_diagonal_(0).abs().max() > 0.5  # strong couplings show


def test_the_least_error_of_one_coupling():
    """Of two spins, s_1 s_2 has variance 1 - tanh(K)^2, and the paper's J is K / 2."""
    coupling, examples = 0.7, 100
    model = Ising(torch.tensor([[0, coupling], [coupling, 0]]).double())
    known = math.log(math.sqrt(1 / (1 - math.tanh(coupling) ** 2) / examples) / 2)
    assert least_log_rmse(model, examples) == pytest.approx(known, rel=1e-6)


def test_the_penalty_and_the_error_are_those_of_the_papers_matrix(double):
    """J is half of the couplings; sum over all i, j of |J_ij|, and the RMSE over pairs."""
    model, other = Ising(Problem(6, None).truth(1).couplings.detach()), Ising(torch.zeros(6, 6))
    data, config = model.space.uniform().sample(5, seed=0), IsingLearning(penalty=0.25)
    entries = [value / 2 for row in model.couplings.tolist() for value in row]
    for name, times in (("exact likelihood", 1), ("pseudo-likelihood", 2)):
        plain = Method(name).objective(model, config, generator(0))(data, seed=0).loss
        report = Watched(Method(name).penalised(model, config, generator(0)), model, other)(data, seed=0)
        assert (report.loss - plain).item() == pytest.approx(times * 0.25 * sum(map(abs, entries)))
        assert report.metrics["log_rmse"].item() == pytest.approx(math.log(math.sqrt(sum(v * v for v in entries) / 30)))
    assert Problem(3, 0.2).truth(0).couplings.max().item() == pytest.approx(0.4)  # theta counts each edge twice


def test_the_exact_likelihood_is_that_of_its_definition(double):
    model = Ising(Problem(5, None).truth(3).couplings.detach())
    data = model.space.uniform().sample(20, seed=0)
    loss = Exact(model)(data, seed=0).loss
    expected = -(enumeration.probabilities(model)[enumeration.index(model.space, data)]).log().mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-10)


def test_costs_are_counted_as_the_findings_compare_them():
    assert Method("Gibbs", 10).evaluations == Method("GWG", 5).evaluations == 10
    row = {"kind": "learned", "problem": "a", "theta": 0.1}
    rows = [row | {"method": m, "steps": k, "log_rmse": v} for m, k, v in
            (("Gibbs", 5, -1.0), ("Gibbs", 10, -2.0), ("GWG", 5, -2.5), ("GWG", 10, -2.5))]  # fmt: skip
    found = findings(IsingLearning(), [*rows, row | {"method": "GWG", "steps": 20, "diverged": "step 3: ..."}])
    assert found["gwg_minus_gibbs_on_lattices_at_equal_steps"] == pytest.approx(-1.0)
    assert found["gwg_minus_gibbs_on_lattices_at_equal_evaluations"] == pytest.approx(-0.5)


def test_a_run_that_diverges_is_recorded_and_not_published(tmp_path, monkeypatch):
    def diverging(*arguments, **options):
        raise Diverged(7, "gap", 1e9, 0)

    monkeypatch.setattr(ising_learning, "fit", diverging)
    recipe, record = RECIPES["ising-learning"], {"recipe": "", "preset": "", "command": "", "parameters": {}}
    directory = RunDirectory.create(tmp_path / "run", record)
    recipe.run(recipe.presets["smoke"], directory, Bars(shown=False))
    assert recipe.findings(recipe.presets["smoke"], directory.results()) == {}
    assert "diverged" in render(recipe.page(recipe.presets["smoke"], directory), record | surroundings("cpu"))
