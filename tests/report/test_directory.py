"""The run directory: nothing is lost, nothing is overwritten, and what cannot be used says so."""

import json

import pytest
import torch

import gibbsite as gb
from gibbsite.files import atomic
from gibbsite.report import RunDirectory, RunDirectoryError, next_directory

CONFIG = {"recipe": "fhmm", "preset": "smoke"}


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create(tmp_path / "run", CONFIG)


def test_what_is_recorded_is_read_back(run):
    run.record({"ess": 12.5, "values": (1, 2)})
    run.record({"ess": float("nan"), "more": torch.tensor([1.5, float("inf")])})
    assert run.results() == [{"ess": 12.5, "values": [1, 2]}, {"ess": None, "more": [1.5, None]}]
    assert RunDirectory.open(run.path).config() == CONFIG


def test_metrics_are_strict_json_one_line_each(run):
    run.record({"name": "two\nlines", "bad": float("-inf")})

    def refuse(constant):
        raise AssertionError(constant)

    (line,) = (run.path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=refuse) == {"name": "two\nlines", "bad": None}


def test_a_last_line_cut_off_is_left_out_and_a_broken_one_is_an_error(run):
    run.record({"a": 1})
    path = run.path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"a": 2')
    assert run.results() == [{"a": 1}]
    path.write_text('{"a": \n{"a": 2}\n')
    with pytest.raises(RunDirectoryError, match=r"metrics\.jsonl: expected one JSON object a line"):
        run.results()


def test_samples_are_safetensors(run):
    x = torch.arange(6).view(2, 3).T  # not contiguous
    run.save_samples("x", {"states": x.to(torch.int8)})
    assert torch.equal(run.samples("x")["states"], x.to(torch.int8))
    assert run.samples("nothing") == {}
    (run.path / "samples" / "x.safetensors").write_bytes(b"not that")
    with pytest.raises(RunDirectoryError, match="expected a safetensors file"):
        run.samples("x")


def test_another_run_is_not_overwritten(run):
    run.record({"a": 1})
    with pytest.raises(RunDirectoryError, match=r"run: holds a run of fhmm, which is not overwritten: choose another --out"):
        RunDirectory.create(run.path, CONFIG)
    assert run.results() == [{"a": 1}]


def test_foreign_files_and_files_in_the_place_of_a_directory_are_errors(tmp_path):
    (tmp_path / "thesis.tex").write_text("words")
    with pytest.raises(RunDirectoryError, match="no run of gibbsite"):
        RunDirectory.create(tmp_path, CONFIG)
    with pytest.raises(RunDirectoryError, match="got a file"):
        RunDirectory.create(tmp_path / "thesis.tex", CONFIG)
    with pytest.raises(RunDirectoryError, match="cannot be made"):
        RunDirectory.create(tmp_path / "thesis.tex" / "run", CONFIG)
    with pytest.raises(RunDirectoryError, match=r"expected a run directory with config\.json"):
        RunDirectory.open(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "words"


def test_an_empty_directory_is_fine(tmp_path):
    (tmp_path / "empty").mkdir()
    assert RunDirectory.create(tmp_path / "empty", CONFIG).results() == []


def test_clear_takes_only_what_a_run_of_that_recipe_wrote(run, tmp_path):
    run.record({"a": 1})
    run.save_samples("x", {"x": torch.zeros(1)})
    run.write_report("<p>")
    (run.path / ".report.html.x1y2z3").write_text("what a killed writer left")
    with pytest.raises(RunDirectoryError, match="expected an earlier run of relaxations"):
        RunDirectory.clear(run.path, "relaxations")
    RunDirectory.clear(run.path, "fhmm")
    assert list(run.path.iterdir()) == []
    RunDirectory.clear(run.path, "fhmm")
    RunDirectory.clear(tmp_path / "missing", "fhmm")
    (run.path / "notes.txt").write_text("mine")
    with pytest.raises(RunDirectoryError, match="something else"):
        RunDirectory.clear(run.path, "fhmm")


def test_clear_takes_nothing_where_there_is_a_file_that_no_run_wrote(run):
    run.save_samples("x", {"x": torch.zeros(1)})
    (run.path / "samples" / "notes.txt").write_text("mine")
    with pytest.raises(RunDirectoryError, match=r"files that no run wrote \(samples/notes\.txt\); it is left as it is"):
        RunDirectory.clear(run.path, "fhmm")
    assert run.config() == CONFIG and list(run.samples("x")) == ["x"]


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(run):
    run.write_report("old")
    with pytest.raises(OSError, match="No space"), atomic(run.report_path) as file:
        file.write(b"ne")
        raise OSError(28, "No space left on device")
    assert run.report_path.read_text() == "old"
    assert sorted(path.name for path in run.path.iterdir()) == ["config.json", "report.html"]


def test_broken_config_is_named(run):
    (run.path / "config.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"config\.json: expected JSON"):
        run.config()
    (run.path / "config.json").write_text("[]")
    with pytest.raises(RunDirectoryError, match="expected a JSON object, got list"):
        run.config()


def test_the_next_directory_is_the_first_free_one(tmp_path):
    assert next_directory(tmp_path, "fhmm").name == "fhmm-1"
    (tmp_path / "fhmm-1").mkdir()
    assert next_directory(tmp_path, "fhmm").name == "fhmm-2"


def test_a_lock_left_by_a_killed_process_holds_nobody_and_one_that_ends_leaves_none(run):
    (run.path / ".lock").write_text("12345")
    with RunDirectory.held(run.path):
        with pytest.raises(RunDirectoryError, match="in use by another process"), RunDirectory.held(run.path):
            pass
        assert (run.path / ".lock").exists()
    assert not (run.path / ".lock").exists()


def test_a_directory_that_is_only_held_counts_as_empty_and_a_file_is_none(tmp_path):
    with RunDirectory.held(tmp_path / "new"):
        RunDirectory.clear(tmp_path / "new", "fhmm")
        assert RunDirectory.create(tmp_path / "new", CONFIG).config() == CONFIG
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="got a file"), RunDirectory.held(tmp_path / "file"):
        pass
    with pytest.raises(RunDirectoryError, match="cannot be written to"), RunDirectory.held(tmp_path / "file" / "run"):
        pass


def test_results_of_a_kind_are_forgotten_and_the_others_stay(run):
    for kind in ("a", "b", "a"):
        run.record({"kind": kind})
    run.record({"step": 1})
    run.forget("a")
    assert run.results() == [{"kind": "b"}, {"step": 1}]


def test_an_estimate_of_log_z_comes_back_whole(run):
    assert run.log_z() is None
    estimate = gb.bracket(gb.models.RBM.random(6, 3, seed=0), temperatures=10, chains=5, seed=0)
    run.save_log_z(estimate)
    assert run.log_z() == estimate
    run.save_log_z(gb.Estimate(1.0, float("inf"), 0.5, float("inf"), ess=1.0, n=5, trusted=False, why="few"))
    assert run.log_z().upper == float("inf") and not run.log_z().trusted
    for broken in ("{", "[]", '{"value": 1}'):
        (run.path / "log_z.json").write_text(broken)
        with pytest.raises(
            RunDirectoryError, match=r"log_z\.json: expected an estimate as JSON .*`gibbsite logz` makes it anew"
        ):
            run.log_z()
