"""The command line, in this process and as a program."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gibbsite import cli
from gibbsite.recipes import RECIPES, Bars, ising_transition
from gibbsite.report import RunDirectory

TINY = "run ising-transition --preset smoke --side 4 --couplings 0.3 0.5 --chains 4 --steps 30 --warmup 2 --local-steps 20"
PROGRAM = [sys.executable, "-c", "import sys; from gibbsite.cli import main; sys.exit(main())"]


def command(text, *more):
    return cli.main([*text.split(), *map(str, more)])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "tiny"
    assert command(TINY, "--out", path) == 0
    return path


def test_a_run_leaves_everything(finished, capsys):
    config = json.loads((finished / "config.json").read_text())
    assert config["recipe"] == "ising-transition" and config["preset"] == "smoke" and config["seed"] == 0
    assert config["parameters"]["couplings"] == [0.3, 0.5] and config["parameters"]["side"] == 4
    assert {"gibbsite", "torch", "python"} == set(config["versions"]) and config["hardware"] and config["started"]
    assert [row["kind"] for row in RunDirectory.open(finished).results()].count("coupling") == 2
    assert set(RunDirectory.open(finished).samples("lattices")) == {"0.3", "0.5"}
    html = (finished / "report.html").read_text()
    assert "Swendsen-Wang" in html and config["command"] in html and "http" not in html


def test_the_recorded_command_runs_the_same_again(finished, tmp_path):
    again = json.loads((finished / "config.json").read_text())["command"].removeprefix("gibbsite ")
    assert command(again, "--out", tmp_path / "again") == 0
    first, second = (RunDirectory.open(path).results() for path in (finished, tmp_path / "again"))
    for row in (*first, *second):
        del row["seconds"]
    assert first == second


def test_a_report_is_made_again_from_what_was_saved(finished, capsys):
    before = (finished / "report.html").read_text()
    (finished / "report.html").unlink()
    assert command("report", finished) == 0
    assert (finished / "report.html").read_text() == before
    assert f"wrote {finished / 'report.html'}" in capsys.readouterr().out


def test_it_ends_by_saying_what_it_wrote_and_numbers_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(TINY) == 0 and command(TINY + " --seed=7") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"wrote {Path('runs', 'ising-transition-2', 'report.html')}"
    assert json.loads((tmp_path / "runs" / "ising-transition-2" / "config.json").read_text())["command"].endswith("--seed 7")


def test_a_run_is_not_overwritten_unless_replaced(finished, tmp_path, capsys):
    assert command(TINY, "--out", finished) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert command(TINY, "--out", tmp_path / "demo", "--replace") == 0
    assert command(TINY, "--out", tmp_path / "demo", "--replace", "--seed", 3) == 0
    assert RunDirectory.open(tmp_path / "demo").config()["seed"] == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("words")
    assert command(TINY, "--out", tmp_path / "mine", "--replace") == 2
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "words"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rum", "did you mean run?"),
        ("run ising-transitoin", "did you mean ising-transition?"),
        ("run fhmm --preset smok", "did you mean smoke?"),
        ("run fhmm --lenght 3", "--length"),
        ("run fhmm --length three", "three"),
        ("run fhmm --length 1", "length: expected at least 2, got 1"),
        ("run fhmm --factors 20", "factors: expected at most 12"),
        ("run fhmm --device abacus", "run fhmm: "),
        ("run relaxations --temperatures 0", "temperatures: expected positive numbers"),
        ("report nowhere", "expected a run directory"),
    ],
)
def test_mistakes_are_named_with_status_2_and_no_traceback(words, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(words) == 2
    error = capsys.readouterr().err
    assert expected in error and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_another_version_says_so(finished, tmp_path, capsys):
    config = json.loads((finished / "config.json").read_text())
    del config["parameters"]["side"]
    RunDirectory.create(tmp_path / "old", config)
    assert command("report", tmp_path / "old") == 2
    assert "another version of the recipe" in capsys.readouterr().err


def test_help_names_every_flag_with_its_words(capsys):
    assert (
        command("--help") == 0 and command("run --help") == 0 and command("recipes") == 0 and command("report --help") == 0
    )
    out = capsys.readouterr().out
    for name, recipe in RECIPES.items():
        assert out.count(name) >= 3 and recipe.figure in out
        assert command(f"run {name} --help") == 0
        text = capsys.readouterr().out
        for field in recipe.config_type.__dataclass_fields__:
            assert f"--{field.replace('_', '-')} " in text
        # every field has words of its own: tyro shows "(default: ...)" alone where a docstring is missing
        assert not re.search(r"│ --[\w-]+ \S+\s+\(default", text)
    assert cli.main([]) == 2 and cli.main(["run"]) == 2


def test_the_version(capsys):
    assert command("--version") == 0
    assert re.fullmatch(r"gibbsite \S.*\n", capsys.readouterr().out)


def test_an_interrupted_run_keeps_and_reports_what_was_finished(tmp_path, monkeypatch, capsys):
    real, calls = ising_transition.trace, []

    def second_is_interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(ising_transition, "trace", second_is_interrupted)
    assert command(TINY, "--out", tmp_path / "cut") == 130
    assert "interrupted; the report shows the 1 finished results" in capsys.readouterr().err
    html = (tmp_path / "cut" / "report.html").read_text()
    assert "was interrupted" in html and "K = 0.3" in html and "K = 0.5" not in html
    assert command("report", tmp_path / "cut") == 0
    assert (tmp_path / "cut" / "report.html").read_text() == html


@pytest.mark.parametrize("name", RECIPES)
def test_an_interruption_before_the_first_result_still_gives_a_report(name, tmp_path, monkeypatch):
    @contextlib.contextmanager
    def total(self, steps):
        def part(name):
            raise KeyboardInterrupt

        yield part

    monkeypatch.setattr(Bars, "total", total)
    assert command(f"run {name} --preset smoke", "--out", tmp_path / "cut") == 130
    assert "was interrupted" in (tmp_path / "cut" / "report.html").read_text()


def test_a_failing_run_keeps_what_was_finished_and_says_where(tmp_path, monkeypatch, capsys):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ising_transition, "trace", fail)
    assert command(TINY, "--out", tmp_path / "full") == 1
    error = capsys.readouterr().err
    assert "No space left" in error and f"kept in {tmp_path / 'full'}" in error


def test_as_a_program_ctrl_c_leaves_a_report_and_status_130(tmp_path):
    words = f"{TINY} --local-steps 10000000 --out run"
    there = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[2])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell's "&" makes deaf to it
    program = [*PROGRAM[:2], heard + PROGRAM[2], *words.split()]
    with subprocess.Popen(program, cwd=tmp_path, env=there, **pipes) as process:
        try:
            metrics, deadline = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 120
            while not (metrics.exists() and metrics.read_text().count('"coupling": 0.5') >= 1):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, error
    assert "Traceback" not in error and "interrupted" in error and "wrote" in out
    assert "was interrupted" in (tmp_path / "run" / "report.html").read_text()
