"""The model that a run keeps: the same bits when it is loaded, and refused if it is cut, edited, missing or another's."""

from dataclasses import dataclass

import pytest
import torch

import gibbsite as gb
from gibbsite.learn.checkpoint import CheckpointError
from gibbsite.recipes import RECIPES, Bars, Trained
from gibbsite.report import RunDirectory, RunDirectoryError


@dataclass(frozen=True)
class Small:
    visible: int = 6
    hidden: int = 3


TRAINED = Trained(
    build=lambda config: gb.models.RBM(config.visible, config.hidden, seed=0), data=lambda config: torch.eye(6)
)


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", {"recipe": "small"})
    directory.save_model(gb.models.RBM.random(6, 3, seed=5))
    return directory


def test_the_weights_come_back_in_every_bit(run):
    model, known = TRAINED.load(Small(), run), gb.models.RBM.random(6, 3, seed=5).state_dict()
    assert all(torch.equal(value, known[key]) for key, value in model.state_dict().items())
    assert not model.training and not any(parameter.requires_grad for parameter in model.parameters())
    before = TRAINED.build(Small()).state_dict()  # the mutant: weights that were not put back
    assert not torch.equal(before["weight"], known["weight"])


def test_an_average_is_kept_if_it_is_copied_in(run):
    model = gb.models.RBM(6, 3, seed=0)
    average = gb.learn.Average(model, 0.5)
    torch.nn.init.ones_(model.visible_bias)
    average.update()
    average.copy_to(model)
    run.save_model(model)
    assert TRAINED.load(Small(), run).visible_bias.tolist() == [0.5] * 6


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: gb.models.RBM(6, 4, seed=0), "model: .* of another model: expected weight of shape"),
        (lambda: gb.models.RBM(6, 3, seed=0).double(), "model: .* of another model: expected weight .*float64"),
        (lambda: gb.models.RBM(7, 3, seed=0), "space: the checkpoint is of another run: expected Binary"),
        (lambda: gb.models.Ising.lattice(2, coupling=0.1), "kind: .* expected Ising, it has RBM"),
    ],
)
def test_weights_of_another_model_are_refused_and_nothing_changes(run, other, message):
    model = other()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(CheckpointError, match=message):
        run.load_model(model)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_weights_that_were_cut_or_edited_are_refused(run):
    path = run.path / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: not a whole checkpoint .*; run it again"):
        TRAINED.load(Small(), run)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=r"model\.safetensors: changed since it was written"):
        TRAINED.load(Small(), run)


def test_a_run_without_a_model_says_what_to_do(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", {"recipe": "small"})
    with pytest.raises(RunDirectoryError, match="did not train to its end; run it again"):
        TRAINED.load(Small(), directory)
    (directory.path / "checkpoint").mkdir()
    with pytest.raises(RunDirectoryError, match="`gibbsite resume` goes on with it"):
        TRAINED.load(Small(), directory)


def test_clear_takes_the_model_and_the_checkpoints(run):
    rbm = gb.models.RBM(6, 3, seed=0)
    data = rbm.space.uniform().sample(8, seed=0)
    objective = gb.learn.Contrastive(rbm, gb.learn.FromData(gb.sample.BlockGibbs()))
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.1)
    gb.learn.fit(objective, data, optimiser=optimiser, steps=2, batch=4, seed=0, out=run.path)
    assert (run.path / "checkpoint").is_dir()
    RunDirectory.clear(run.path, "small")
    assert list(run.path.iterdir()) == []


def results(directory):
    clocks = {"seconds", "learning"}
    rows = ({key: value for key, value in row.items() if key not in clocks} for row in directory.results())
    return sorted(map(str, rows))


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.trained])
def test_a_recipe_that_is_interrupted_goes_on_to_the_same_results(name, tmp_path, monkeypatch):
    """Ctrl-C when training has just ended: run again in its directory, it ends as one that was never stopped."""
    recipe, real, calls = RECIPES[name], RunDirectory.save_model, []
    one, two = (RunDirectory.create(tmp_path / part, {}) for part in ("one", "two"))
    config = recipe.presets["smoke"]
    recipe.run(config, one, Bars(shown=False))

    def stop(directory, model):
        calls.append(directory)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(directory, model)

    monkeypatch.setattr(RunDirectory, "save_model", stop)
    with pytest.raises(KeyboardInterrupt):
        recipe.run(config, two, Bars(shown=False))
    recipe.run(config, two, Bars(shown=False))
    assert len(calls) == 2 and results(one) == results(two)
    kept = [recipe.trained.load(config, directory).state_dict() for directory in (one, two)]
    assert all(torch.equal(value, kept[1][key]) for key, value in kept[0].items())
    untrained = recipe.trained.build(config).state_dict()  # the mutant: a run that keeps what it started from
    assert any(not torch.equal(value, untrained[key]) for key, value in kept[0].items())
