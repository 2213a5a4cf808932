"""Killed at random moments and run again, a run ends in the same bits as one that was never stopped."""

import os
import random
import signal
import time

import pytest

from .processes import finish, start
from .runs import MUTANTS, RUNS, differences, outcome, press_twice, train, train_slowly


def last_step(folder):
    return max((int(path.name[5:14]) for path in (folder / "checkpoint").glob("step-*.safetensors")), default=0)


def killed(folder, times, seed, *arguments):
    """Runs the command, kills it `times` times, at a random moment after some random further steps; then lets it end."""
    moment, steps = random.Random(seed), []
    for _ in range(times):
        goal, process = last_step(folder) + moment.randint(1, 40), start(train, *arguments)
        deadline = time.monotonic() + 60
        while last_step(folder) < goal and process.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(moment.uniform(0, 0.02))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it had ended before it could be killed"
        steps.append(last_step(folder))
    finish(start(train, *arguments))
    return steps


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """What each run leaves when nothing stops it."""
    folders = {name: tmp_path_factory.mktemp(name) for name in RUNS}
    finish(*[start(train, name, folder) for name, folder in folders.items()])
    return {name: outcome(folder) for name, folder in folders.items()}


@pytest.mark.parametrize(("name", "times"), [("rbm", 5), ("ising", 3), ("real", 3)])
def test_a_run_that_is_killed_and_run_again_ends_in_the_same_bits(name, times, untouched, tmp_path):
    steps = killed(tmp_path, times, 0, name, tmp_path)
    found = outcome(tmp_path)
    print(f"{name}: killed after the checkpoints of steps {steps}; {len(found)} results compared")
    assert differences(found, untouched[name]) == []
    assert found["metrics"].count("\n") == 240 // 2
    assert not list((tmp_path / "checkpoint").glob(".step*")), "a killed writer's file was left"


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_resume_that_forgets_something_ends_elsewhere(mutant, untouched, tmp_path):
    killed(tmp_path, 1, 1, "rbm", tmp_path, mutant)
    assert differences(outcome(tmp_path), untouched["rbm"])


def test_a_finished_run_that_is_run_again_changes_nothing_and_one_asked_for_more_goes_on(untouched, tmp_path):
    finish(start(train, "ising", tmp_path, "", 120))
    finish(start(train, "ising", tmp_path, "", 120))
    finish(start(train, "ising", tmp_path))
    found = outcome(tmp_path)
    assert differences(found, untouched["ising"]) == []
    finish(start(train, "ising", tmp_path))
    assert differences(outcome(tmp_path), found) == []


def test_ctrl_c_ends_the_step_and_saves_and_the_run_goes_on_to_the_same_bits(untouched, tmp_path):
    process, metrics = start(train_slowly, "rbm", tmp_path), tmp_path / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not metrics.exists() or metrics.stat().st_size < 1000:
        assert process.is_alive() and time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGINT)
    finish(process)
    assert 0 < last_step(tmp_path) < 240
    finish(start(train, "rbm", tmp_path))
    assert differences(outcome(tmp_path), untouched["rbm"]) == []


def test_a_second_ctrl_c_does_not_wait_for_the_step(tmp_path):
    began = time.monotonic()
    finish(start(press_twice, tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]
    assert time.monotonic() - began < 50
