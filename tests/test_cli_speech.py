"""`gibbsite speech`: learning, resuming, transcribing and scoring a user's own recordings, and what it says of mistakes."""

import json
import math
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from gibbsite import cli
from gibbsite.apps.speech.scores import counted
from gibbsite.cli.speech import _spaced
from gibbsite.learn import fit
from gibbsite.recipes import APPLICATIONS
from gibbsite.report import RunDirectory

TINY = ("--loss ctc --layers 1 --width 16 --subsample 1 --epochs 15 --looks 3 --batch 4 --rate 0.03 --average 0 "
        "--dropout 0 --time-masks 1")  # fmt: skip


def command(text, *more):
    return cli.main([*text.split(), *map(str, more)])


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A manifest of made-up recordings: each letter is three frames of one feature, with a pause after it."""
    folder, source = tmp_path_factory.mktemp("spoken"), np.random.default_rng(0)
    for part, count in (("train", 40), ("test", 12)):
        rows = []
        for number in range(count):
            letters = "".join(source.choice(list("abc"), 4))
            frames = np.repeat(["abc ".index(letter) for letter in " ".join(letters)], 3)
            np.save(folder / f"{part}{number}.npy", np.eye(4)[frames] + 0.1 * source.normal(size=(len(frames), 4)))
            rows.append({"features": f"{part}{number}.npy", "text": letters})
        (folder / f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def train(spoken, out, *more):
    files = ("--data", "manifest", "--train", spoken / "train.jsonl", "--test", spoken / "test.jsonl")
    return command(f"speech train --units characters {TINY}", *files, "--out", out, *more)


@pytest.fixture(scope="module")
def run(spoken, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "letters"
    assert train(spoken, path) == 0
    return path


def test_a_run_leaves_everything(run, spoken):
    config, results = json.loads((run / "config.json").read_text()), RunDirectory.open(run).results()
    assert config["recipe"] == "speech" and config["parameters"]["units"] == "characters"
    assert config["command"].startswith("gibbsite speech train --preset laptop --data manifest --units characters")
    assert [row["epoch"] for row in results if row.get("kind") == "look"] == [5, 10, 15]
    (tested,) = [row for row in results if row.get("kind") == "tested"]
    lower, upper = tested["error"][1:]
    assert 0 <= lower <= tested["error"][0] <= upper and tested["error"][0] < 0.5 and len(tested["said"]) == 12
    html = (run / "report.html").read_text()
    assert html.count("<figure>") == 4 and "characters of utterances it never saw" in html and "http" not in html


def test_the_report_is_made_again(run, capsys):
    before = (run / "report.html").read_text()
    assert command("report", run) == 0 and (run / "report.html").read_text() == before


def test_recordings_are_transcribed(run, spoken, capsys):
    assert command("speech decode", run, spoken / "test0.npy", spoken / "test1.npy") == 0
    lines = capsys.readouterr().out.splitlines()
    (tested,) = [row for row in RunDirectory.open(run).results() if row.get("kind") == "tested"]
    assert [line.split("\t")[1] for line in lines] == [heard for _, _, heard in tested["said"][:2]]


def test_errors_are_counted_of_a_part_or_a_manifest(run, spoken, capsys, tmp_path):
    run = shutil.copytree(run, tmp_path / "run")
    assert command("speech evaluate", run) == command("speech evaluate", run, "--of", spoken / "test.jsonl") == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("errors")]
    rows = [row for row in RunDirectory.open(run).results() if row.get("kind") == "evaluated"]
    assert len(printed) == 4 and printed[:2] == printed[2:] and [row["what"] for row in rows[:2]] == ["characters", "words"]
    (tested,) = [row for row in RunDirectory.open(run).results() if row.get("kind") == "tested"]
    assert rows[0]["error"][0] == pytest.approx(tested["error"][0])
    assert "gibbsite speech evaluate" in (run / "report.html").read_text()


def test_lists_of_the_best_are_written(run, spoken, tmp_path, capsys):
    out = tmp_path / "list.jsonl"
    assert command("speech nbest", run, "--out", out, "--n", 3) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 12 and rows[0]["id"] == "test0" and len(rows[0]["ref"]) == 4
    for row in rows:
        scores = [score for _, score in row["hyps"]]
        assert row["onebest"] == row["hyps"][0][0] and len(scores) == 3 and scores == sorted(scores, reverse=True)
        assert sum(map(math.exp, scores)) < 1 + 1e-6
    assert command("speech decode", run, spoken / "test0.npy", "--beam", 50) == 0
    assert capsys.readouterr().out.splitlines()[-1].split("\t")[1] == rows[0]["onebest"]
    assert command("speech nbest", run, "--out", out) == 2 and "is not overwritten" in capsys.readouterr().err


def test_an_interrupted_run_goes_on_bit_for_bit(run, spoken, tmp_path, monkeypatch, capsys):
    from gibbsite.apps.speech import training

    def cut(*arguments, **options):
        fitted = fit(*arguments, **options)
        if fitted.step > 50:
            raise KeyboardInterrupt
        return fitted

    with monkeypatch.context() as patched:
        patched.setattr(training, "fit", cut)
        assert train(spoken, tmp_path / "cut") == 130
    assert "goes on with it" in capsys.readouterr().err
    assert command("resume", tmp_path / "cut") == 0
    one, two = (load_file(path / "model.safetensors") for path in (run, tmp_path / "cut"))
    assert one.keys() == two.keys() and all(torch.equal(value, two[name]) for name, value in one.items())
    ends = [[{k: v for k, v in row.items() if "seconds" not in k} for row in RunDirectory.open(path).results()
             if row.get("kind") in ("look", "tested")] for path in (run, tmp_path / "cut")]  # fmt: skip
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("speech", "usage: gibbsite speech"),
        ("speech trian", "there is no speech command 'trian'; did you mean train"),
        ("speech train --data manifest", "train, test: expected files with --data manifest"),
        ("speech train --width 7 --loss ctc", "width: expected an even number"),
        ("speech train --data manifest --train a.jsonl", "dictionary: expected a pronouncing dictionary"),
        ("speech train --data manifest --train none.jsonl --units characters --out OUT", "cannot be read as a manifest"),
        (
            "speech decode RUN WIDE",
            "expected at least 1 frame of 4 features, as those that were learned from have, got 9 of 5",
        ),
        ("speech decode RUN none.wav", "none.wav: cannot be read"),
        ("speech evaluate RUN --of none.jsonl", "none.jsonl: cannot be read as a manifest"),
        ("speech decode RUN a.npy --beam -1", "--beam: expected at least 0, got -1"),
        ("speech nbest RUN --out OUT --n 0", "--n: expected at least 1, got 0"),
        ("sample RUN -n 1", "its Recogniser gives models of contexts, and is not one itself"),
    ],
)
def test_mistakes_are_said_without_a_traceback(words, message, run, tmp_path, capsys):
    np.save(tmp_path / "wide.npy", np.ones((9, 5)))
    words = [
        str({"RUN": run, "OUT": tmp_path / "out", "WIDE": tmp_path / "wide.npy"}.get(word, word)) for word in words.split()
    ]
    assert cli.main(words) in (1, 2)
    told = "".join(capsys.readouterr())
    assert message in told and "Traceback" not in told


def test_too_few_frames_for_the_labels_are_named(spoken, tmp_path, capsys):
    assert train(spoken, tmp_path / "out", "--subsample", 9) == 1
    assert "21 frames are 3 after subsampling by 9, but its 4 labels need" in capsys.readouterr().err


def test_presets_are_plans():
    assert {type(plan).__name__ for plan in APPLICATIONS["speech"].presets.values()} == {"Plan"}
    assert torch.device(APPLICATIONS["speech"].presets["laptop"].device).type == "cpu"


def test_a_space_is_told_from_every_character():
    said, heard = (_spaced(units) for units in (("a", " ", "b"), ("a", "_", "b")))
    (found,) = counted([said], [heard])
    assert found.substitutions == found.errors == 1 and found.length == 3


def test_runs_of_other_commands_are_named(tmp_path, capsys):
    for made_by in ("tag", "label-bias"):
        RunDirectory.create(tmp_path / made_by, {"recipe": made_by, "parameters": {}})
        assert command("speech evaluate", tmp_path / made_by) == 2
        assert f"expected a run of `gibbsite speech train`, got one of {made_by}" in capsys.readouterr().err
