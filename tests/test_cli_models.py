"""Commands on a run that trained a model: resume, sample, score, logz; what they refuse without changing anything."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from gibbsite import cli
from gibbsite.algebra import Tilt
from gibbsite.cli.arrays import read_states
from gibbsite.cli.words import UsageError
from gibbsite.distributions import Bernoulli, Normal
from gibbsite.estimate import log_likelihood
from gibbsite.model import Potential
from gibbsite.models import RBM
from gibbsite.recipes import RECIPES, rbm_digits
from gibbsite.report import RunDirectory
from gibbsite.space import Binary

TINY = (
    "run rbm-digits --preset smoke --hidden 6 --updates 40 --looks 2 --temperatures 20 --particles 20 --walkers 4 "
    "--draws 100 --thin 1"
)
PROGRAM = [sys.executable, "-c", "import sys; from gibbsite.cli import main; sys.exit(main())"]
THERE = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[2])}


def command(text, *more):
    return cli.main([*text.split(), *map(str, more)])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "tiny"
    assert command(TINY, "--out", path) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    """A copy of that run, to be changed."""
    import shutil

    return Path(shutil.copytree(finished, tmp_path / "tiny"))


def model(run):
    recipe = RECIPES["rbm-digits"]
    directory = RunDirectory.open(run)
    config = recipe.restore(directory.config()["parameters"])
    return recipe.trained.load(config, directory), config


def contents(folder):
    """Every file and its bytes: what a refused command must leave as it is."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def results(run):
    rows = RunDirectory.open(run).results()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_sample_writes_states_their_u_and_a_picture(finished, tmp_path, capsys):
    out = tmp_path / "drawn.npz"
    assert command("sample", finished, "-n", 9, "--steps", 40, "--out", out) == 0
    drawn, machine = np.load(out), model(finished)[0]
    x = torch.from_numpy(drawn["x"])
    assert x.shape == (9, 64) and torch.equal(machine(x), torch.from_numpy(drawn["u"]))
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert f"wrote {out}: 9 states" in said and "R-hat" in said and f"wrote {tmp_path / 'drawn.png'}" in said


def test_the_same_seed_draws_the_same_and_another_does_not(finished, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert command("sample", finished, "-n", 5, "--steps", 20, "--seed", seed, "--out", tmp_path / f"{name}.npy") == 0
    a, b, c = (np.load(tmp_path / f"{name}.npy") for name in "abc")
    assert (a == b).all() and (a != c).any()


def test_without_out_samples_are_numbered_in_the_run(run, capsys):
    for number in (1, 2):
        assert command("sample", run, "-n", 2, "--steps", 10) == 0
        assert f"wrote {run / 'samples' / f'drawn-{number}.npz'}" in capsys.readouterr().out
    assert command(TINY, "--out", run, "--replace") == 0 and not (run / "samples" / "drawn-1.npz").exists()


def test_score_says_u_and_the_log_likelihood_with_its_ends(finished, tmp_path, capsys):
    machine, config = model(finished)
    x = rbm_digits.bits(config, "test")[:30]
    np.save(tmp_path / "x.npy", x.numpy())
    assert command("score", finished, tmp_path / "x.npy") == 0
    said = capsys.readouterr().out
    for number, value in enumerate(machine(x[:10]).tolist()):
        assert f"{number:5d}  {value:.6g}" in said
    mean = log_likelihood(machine, x, RunDirectory.open(finished).log_z())
    assert f"mean log-likelihood: {mean.value:.4f}" in said and "20 more" in said
    assert f"at least {mean.lower:.4f}, at most {mean.upper:.4f}" in said and "trusted" in said
    exact = float(machine(x).double().mean() - machine.log_z())
    assert mean.lower <= exact <= mean.upper
    assert command("score", finished, tmp_path / "x.npy", "--out", tmp_path / "u.npz") == 0
    assert torch.allclose(torch.from_numpy(np.load(tmp_path / "u.npz")["u"]), machine(x).double())


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64, np.uint16, bool])
def test_score_takes_any_integers(kind, finished, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((2, 64), dtype=kind))
    assert command("score", finished, tmp_path / "x.npz") == 0


def test_logz_brackets_what_is_known_and_keeps_it(run, capsys):
    (run / "log_z.json").unlink()
    np.save(run.parent / "x.npy", np.zeros((1, 64), dtype=np.int8))
    assert command("score", run, run.parent / "x.npy") == 0
    assert f"log-likelihood: unknown, for log Z is; `gibbsite logz {run}`" in capsys.readouterr().out
    assert command("logz", run, "--temperatures", 200, "--chains", 50) == 0
    said, exact = capsys.readouterr().out, float(model(run)[0].log_z())
    lower, upper = map(float, re.search(r"at least ([\d.]+), at most ([\d.]+)", said).groups())
    assert lower <= exact <= upper and "\n       trusted; ESS" in said
    kept = RunDirectory.open(run).log_z()
    assert kept.lower == pytest.approx(lower, abs=1e-3) and kept.cost.evaluations > 0
    assert command("score", run, run.parent / "x.npy") == 0
    assert "mean log-likelihood" in capsys.readouterr().out


def test_a_bracket_that_cannot_be_trusted_says_why(run, capsys):
    assert command("logz", run, "--temperatures", 1, "--chains", 3, "--widest", 1e-6) == 0
    assert "NOT trusted: " in capsys.readouterr().out


STATES = {
    "shape": (np.zeros((3, 63), dtype=np.int8), r"expected integers in \[0, 2\) of shape \(\*, 64\), got int64 \(3, 63\)"),
    "one state": (np.zeros(64, dtype=np.int8), r"expected an array \(n, 64\) of at least 1 state, got \(64,\)"),
    "empty": (np.zeros((0, 64), dtype=np.int8), r"at least 1 state, got \(0, 64\)"),
    "floats": (np.zeros((3, 64)), r"expected integers in .*, got float64 \(3, 64\)"),
    "not a number": (np.full((3, 64), np.nan), r"expected integers in"),
    "range": (np.full((3, 64), 2), r"expected integers in .*, got 2 at \[0, 0\]"),
    "spins": (-np.ones((3, 64), dtype=np.int8), r"spins s of -1 and 1 are bits"),
    "texts": (np.full((3, 64), "a"), r"expected numbers, got <U1"),
    "complex": (np.zeros((3, 64), dtype=complex), r"expected numbers, got complex128"),
    "large": (np.full((3, 64), 2**64 - 1, dtype=np.uint64), r"expected integers below 2\^63"),
}


@pytest.mark.parametrize("name", STATES)
def test_states_that_are_none_of_the_model_are_named(name, finished, tmp_path, capsys):
    states, message = STATES[name]
    np.save(tmp_path / "x.npy", states)
    assert command("score", finished, tmp_path / "x.npy", "--out", tmp_path / "u.npz") == 2
    error = capsys.readouterr().err
    assert re.search(message, error) and "x.npy" in error and "Traceback" not in error
    assert not (tmp_path / "u.npz").exists()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("x.npy", None, "there is no such file"),
        ("x.csv", b"0,1", "expected a .npy or .npz file"),
        ("x.npy", b"not that", "cannot be read as numbers"),
        ("x.npz", b"PK\x03\x04", "cannot be read as numbers"),
        ("x.npy", b"\x93NUMPY\x01\x00v\x00", "cannot be read as numbers"),
    ],
)
def test_files_that_are_no_arrays_are_named(file, content, message, finished, tmp_path, capsys):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    assert command("score", finished, tmp_path / file) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_objects_are_never_unpickled_and_a_npz_of_several_arrays_is_refused(finished, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    assert command("score", finished, tmp_path / "x.npy") == 2 and "cannot be read" in capsys.readouterr().err
    np.savez(tmp_path / "x.npz", a=np.zeros(1), b=np.zeros(1))
    assert command("score", finished, tmp_path / "x.npz") == 2
    assert "expected an array named x, or one alone; it holds a, b" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sampel {run} -n 3", "did you mean sample?"),
        ("sample {run} -m 3", "-m"),
        ("sample {run} -n 3 --step 5", "--steps"),
        ("sample {run}", "-n"),
        ("sample {run} -n 0", "--n: expected at least 1, got 0"),
        ("sample {run} -n 2 --seed -1", "--seed: expected at least 0, got -1"),
        ("sample {run} -n three", "three"),
        ("sample {run} -n 3 --device abacus", "--device abacus: "),
        ("sample {run} -n 3 --out {run}/config.json", "expected a name that ends in .npz or .npy"),
        ("sample {run} -n 3 --out {run}/nowhere/x.npz", "does not exist"),
        ("sample {run}x -n 3", "did you mean {run}?"),
        ("logz tyni", "expected a run directory"),
        ("logz {run} --temperatures 0", "expected a positive integer, got 0"),
        ("logz {run} --chains 1", "chains: expected an integer of at least 3, got 1"),
        ("resume {run}x", "did you mean {run}?"),
        ("score {run} {run}x.npy", "there is no such file"),
    ],
)
def test_mistakes_are_named_with_status_2_and_change_nothing(words, message, finished, capsys):
    before = contents(finished.parent)
    assert command(words.format(run=finished)) == 2
    error = capsys.readouterr().err
    assert message.format(run=finished) in error and "Traceback" not in error
    assert contents(finished.parent) == before


def test_a_run_in_runs_is_suggested_by_its_name(finished, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "digits").symlink_to(finished)
    monkeypatch.chdir(tmp_path)
    assert command("sample digit -n 3") == 2
    assert f"did you mean {Path('runs', 'digits')}?" in capsys.readouterr().err


def test_a_file_that_exists_is_not_overwritten(finished, tmp_path, capsys):
    for name in ("x.npz", "y.png"):
        (tmp_path / name).write_text("mine")
    for name in ("x.npz", "y.npz"):
        assert command("sample", finished, "-n", 2, "--steps", 4, "--out", tmp_path / name) == 2
        assert "not overwritten" in capsys.readouterr().err
    assert sorted(contents(tmp_path).values()) == [b"mine", b"mine"]


@pytest.mark.parametrize("words", ["sample {run} -n 3", "logz {run}", "score {run} {run}/x.npy"])
@pytest.mark.parametrize("fault", ["cut", "edited", "another", "missing"])
def test_weights_that_do_not_fit_are_refused(fault, words, run, capsys):
    path = run / "model.safetensors"
    whole = path.read_bytes()
    if fault == "another":
        RunDirectory.open(run).save_model(RBM(64, 7, seed=0))
    else:
        path.write_bytes({"cut": whole[:-9], "edited": whole[:-1] + bytes([whole[-1] ^ 1]), "missing": b""}[fault])
    if fault == "missing":
        path.unlink()
    np.save(run / "x.npy", np.zeros((1, 64), dtype=np.int8))
    before = contents(run)
    assert command(words.format(run=run)) == 2
    message = {"cut": "not a whole checkpoint", "edited": "changed since it was written", "another": "of another model",
               "missing": "did not train to its end"}[fault]  # fmt: skip
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert contents(run) == before


def test_a_run_of_a_recipe_without_a_model_says_which_have_one(tmp_path, capsys):
    config = {"recipe": "fhmm", "command": "gibbsite run fhmm", "parameters": vars(RECIPES["fhmm"].presets["smoke"])}
    RunDirectory.create(tmp_path / "run", config)
    assert command("sample", tmp_path / "run", "-n", 3) == 2
    assert "a run of fhmm, which keeps no model; recipes that do: rbm-digits" in capsys.readouterr().err
    assert command("resume", tmp_path / "run") == 2
    assert "keeps no checkpoints; run it again: gibbsite run fhmm" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", ["resume {run}", "report {run}", "logz {run}", "sample {run} -n 2", f"{TINY} --out {{run}} --replace"]
)
def test_a_run_that_another_process_uses_is_left_alone(words, run, capsys):
    code = (
        "import sys; from pathlib import Path; from gibbsite.report import RunDirectory\n"
        "with RunDirectory.held(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, run], env=THERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "held\n"
        before = contents(run)
        assert command(words.format(run=run)) == 2
        assert f"{run}: in use by another process ({other.pid}); wait for it" in capsys.readouterr().err
        assert contents(run) == before
    finally:
        other.communicate()
    assert command("report", run) == 0 and not (run / ".lock").exists()


def test_resume_of_a_finished_run_changes_nothing(run, capsys):
    before = contents(run)
    assert command("resume", run) == 0
    assert "finished; nothing is left to do" in capsys.readouterr().out
    assert contents(run) == before


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_run_that_was_interrupted_is_resumed_to_the_same_bits(after, finished, tmp_path, monkeypatch, capsys):
    """Ctrl-C in the first bracket, the second, and the last: rows, weights and samples end as if nothing had happened."""
    real, calls = rbm_digits.bracket, []

    def stop(*arguments, **options):
        calls.append(1)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(rbm_digits, "bracket", stop)
    run = tmp_path / "run"
    assert command(TINY, "--out", run) == 130
    assert f"`gibbsite resume {run}` goes on with it" in capsys.readouterr().err
    assert "was interrupted" in (run / "report.html").read_text()
    assert command("resume", run) == 0
    assert (run / "log_z.json").read_bytes() == (finished / "log_z.json").read_bytes()
    for name in ("model.safetensors", "samples/chains.safetensors"):
        one, two = load_file(run / name), load_file(finished / name)
        assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in two)
    assert sorted(map(str, results(run))) == sorted(map(str, results(finished)))
    assert "was interrupted" not in (run / "report.html").read_text()


def test_a_killed_run_is_resumed_to_the_same_bits(finished, tmp_path):
    run = tmp_path / "run"
    process = subprocess.Popen([*PROGRAM, *TINY.split(), "--out", str(run)], env=THERE, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list((run / "checkpoint").glob("step-*.safetensors")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (run / "model.safetensors").exists() and not (run / "report.html").exists()
    assert command("resume", run) == 0
    one, two = (load_file(path / "model.safetensors") for path in (run, finished))
    assert all(torch.equal(one[key], two[key]) for key in two)
    assert sorted(map(str, results(run))) == sorted(map(str, results(finished)))
    mutant = model(finished)[0].weight + 1e-7  # what the comparison of bits would not let pass
    assert not torch.equal(mutant, two["model.weight"])


def test_a_checkpoint_that_was_cut_or_is_of_another_run_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rbm_digits, "bracket", lambda *arguments, **options: (_ for _ in ()).throw(KeyboardInterrupt))
    run = tmp_path / "run"
    assert command(TINY, "--out", run) == 130
    last = max((run / "checkpoint").glob("step-*.safetensors"))
    whole = last.read_bytes()
    last.write_bytes(whole[:-3])
    before = contents(run)
    assert command("resume", run) == 2
    assert "not a whole checkpoint" in capsys.readouterr().err
    assert {k: v for k, v in contents(run).items() if k.parts[0] in ("checkpoint", "config.json")} == {
        k: v for k, v in before.items() if k.parts[0] in ("checkpoint", "config.json")
    }
    last.write_bytes(whole)
    config = json.loads((run / "config.json").read_text())
    config["parameters"]["rate"] = 0.5
    (run / "config.json").write_text(json.dumps(config))
    assert command("resume", run) == 2
    assert "optimiser.0.lr: the checkpoint is of another run" in capsys.readouterr().err


def test_real_states_become_the_models_type_and_must_be_finite(tmp_path):
    normal = Normal.standard(2, dtype=torch.float32)
    np.save(tmp_path / "x.npy", np.array([[0.5, 1e-3]]))
    x = read_states(tmp_path / "x.npy", normal)
    assert x.dtype == torch.float32 and x.tolist() == [[0.5, pytest.approx(1e-3)]]
    np.save(tmp_path / "x.npy", np.array([[0.5, np.nan]]))
    with pytest.raises(UsageError, match=r"x\.npy: expected finite floats .*, got nan at \[0, 1\]"):
        read_states(tmp_path / "x.npy", normal)


@pytest.fixture
def other(run, monkeypatch):
    """Has the run keep another module than its recipe's."""

    def keep(build, **changes):
        recipe = RECIPES["rbm-digits"]
        trained = replace(recipe.trained, build=lambda config: build(), **changes)
        monkeypatch.setitem(RECIPES, "rbm-digits", replace(recipe, trained=trained))
        RunDirectory.open(run).save_model(build())

    return keep


def test_a_distribution_is_drawn_from_exactly_and_has_log_z_0(other, run, tmp_path, capsys):
    other(lambda: Bernoulli(torch.linspace(-2, 2, 64)))
    assert command("sample", run, "-n", 7, "--seed", 3, "--out", tmp_path / "x.npy") == 0
    assert "R-hat" not in capsys.readouterr().out
    x = torch.from_numpy(np.load(tmp_path / "x.npy"))
    assert torch.equal(x, Bernoulli(torch.linspace(-2, 2, 64)).sample(7, seed=3))
    assert command("score", run, tmp_path / "x.npy") == 0
    assert "which is the mean log-likelihood, for log Z is 0" in capsys.readouterr().out
    assert command("logz", run, "--temperatures", 50) == 0 and "trusted" in capsys.readouterr().out


def test_a_tilt_is_bracketed_from_its_own_base(other, run, capsys):
    """q exp V with V = 0: annealing from q itself is exact, whatever the data."""
    other(lambda: Tilt(Bernoulli(torch.linspace(-3, 3, 64)), Potential(lambda x: 0.0 * x.sum(-1).float(), Binary(64))))
    assert command("logz", run, "--temperatures", 1, "--chains", 8) == 0
    assert "log Z: 0.0000 ± 0.0000" in capsys.readouterr().out.replace("-0.0000", "0.0000")


def test_what_is_no_model_or_cannot_be_drawn_from_says_so(other, run, capsys):
    other(torch.nn.Identity)
    assert command("sample", run, "-n", 2) == 2
    assert "its Identity gives models of contexts, and is not one itself" in capsys.readouterr().err
    other(lambda: RBM(64, 6, seed=0), kernel=None)
    assert command("sample", run, "-n", 2) == 2
    assert "its recipe names no kernel" in capsys.readouterr().err


def test_weights_that_are_not_finite_are_an_error_of_the_run(other, run, tmp_path, capsys):
    other(lambda: RBM.from_weights(torch.full((6, 64), 1e38), torch.zeros(64), torch.zeros(6)))
    np.save(tmp_path / "x.npy", np.ones((2, 64), dtype=np.int8))
    for words in (f"score {run} {tmp_path / 'x.npy'}", f"logz {run}", f"sample {run} -n 2"):
        assert command(words) == 2
        error = capsys.readouterr().err
        assert "finite" in error and str(run) in error and "Traceback" not in error


def test_help_of_each_names_every_flag_with_its_words(capsys):
    assert command("--help") == 0
    listed = capsys.readouterr().out
    for name, flags in (("sample", "-n --steps --seed --out --device"), ("score", "--out --device"), ("resume", ""),
                        ("logz", "--temperatures --chains --widest --seed --device"), ("report", "")):  # fmt: skip
        assert f"  {name} RUN" in listed and command(f"{name} --help") == 0
        text = capsys.readouterr().out
        assert "RUN" in text and all(f"  {flag}" in text or f"│ {flag}" in text for flag in flags.split())
        # every flag has words of its own: tyro shows "(default: ...)" alone where a docstring is missing
        assert not re.search(r"--[\w-]+ \S+\s+\(default", text)
