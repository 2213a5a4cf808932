"""Several processes learn what one would: gradients, chains, draws, metrics, kills, and what goes wrong in one of them."""

import json
import os
import random
import signal
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

import gibbsite as gb
from gibbsite.learn.order import Order
from gibbsite.processes import Group
from gibbsite.random import substream

from .processes import meeting, together
from .runs import differences, train_together
from .test_guard import Failing

L, S, M = gb.learn, gb.sample, gb.models
ROUNDING = 1e-10  # of some dozen updates in double precision, whose sums are taken in another order


def data():
    return gb.Binary(9).uniform().sample(36, seed=0)


def settings(objective, **more):
    optimiser = torch.optim.Adam(objective.parameters(), lr=0.05)
    return {"optimiser": optimiser, "steps": 30, "batch": 12, "seed": 3, "clip": 1.0, **more}


def pseudo_likelihood():
    return L.PseudoLikelihood(M.Ising.lattice(3, coupling=0.1).double())


def second_order():
    """Score matching, whose gradient is a derivative of a derivative."""
    return L.ScoreMatching(M.MLP(gb.Real(2), (8,), seed=0).double())


def left_out():
    """A parameter that the loss does not use, as those of a proposal that is not learned."""
    objective = pseudo_likelihood()
    objective.spare = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    return objective


def plane():
    return torch.randn(36, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


EXACT = {
    "pseudo-likelihood": (pseudo_likelihood, data),
    "score matching": (second_order, plane),
    "a parameter left out": (left_out, data),
}


def learn_exact(rank, name, folder, mutant=""):
    """An objective that draws nothing, so that two processes can only differ from one by rounding."""
    if mutant:
        L.session.gradients.wrapped = lambda objective, group: objective
    make, examples = EXACT[name]
    objective = make()
    fitted = L.fit(objective, examples(), **settings(objective, average=L.Average(objective, 0.9)), log_every=10)
    save_file(objective.state_dict(), folder / f"{rank}.safetensors")
    save_file(fitted.average.weights, folder / f"mean{rank}.safetensors")
    (folder / f"{rank}.json").write_text(json.dumps(fitted.metrics))


def apart(one, two):
    """The largest difference between two sets of tensors."""
    return max(float((one[key] - two[key]).abs().max()) for key in one)


@pytest.mark.parametrize("name", EXACT)
def test_two_processes_learn_what_one_learns(name, tmp_path):
    alone, mutant = tmp_path / "alone", tmp_path / "mutant"
    alone.mkdir(), mutant.mkdir()
    learn_exact(0, name, alone)
    together(learn_exact, 2, name, tmp_path)
    for prefix in ("", "mean"):
        first, second = (load_file(tmp_path / f"{prefix}{rank}.safetensors") for rank in range(2))
        assert all(torch.equal(first[key], second[key]) for key in first)
        assert apart(first, load_file(alone / f"{prefix}0.safetensors")) < ROUNDING
    lines = [json.loads((folder / "0.json").read_text()) for folder in (tmp_path, alone)]
    assert json.loads((tmp_path / "1.json").read_text()) == lines[0]
    for two, one in zip(*lines, strict=True):
        assert two == pytest.approx(one, rel=1e-9, abs=1e-9)
    together(learn_exact, 2, name, mutant, "gradients that are not averaged")
    assert apart(load_file(mutant / "0.safetensors"), load_file(alone / "0.safetensors")) > 1e-4


def chains():
    return gb.Binary(9).uniform().sample(8, seed=1)


def persistent(x):
    return L.Contrastive(M.Ising.lattice(3, coupling=0.1).double(), L.Persistent(S.GibbsSweep(), x))


def learn_by_chains(rank, folder, mutant):
    if mutant == "one stream":
        L.session.random.substream = lambda seed, number: seed if number >= 0 else substream(seed, number)
    objective = persistent(chains()[:4] if mutant == "one start" else L.shard(chains()))
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.05)
    L.fit(objective, data(), optimiser=optimiser, steps=20, batch=12, seed=3)
    save_file(objective.state_dict(), folder / f"{mutant}{rank}.safetensors")


def learn_both_parts():
    """What two processes do, by one that plays both: each part's gradient from its own data, chains and generator."""
    parts = [persistent(chains()[rank::2]) for rank in range(2)]
    parts[1].model = parts[0].model
    order = [Order(36, 12, 3, Group(rank, 2)) for rank in range(2)]
    draws = [torch.Generator().manual_seed(substream(3, rank)) for rank in range(2)]
    optimiser = torch.optim.SGD(parts[0].parameters(), lr=0.05)
    for _ in range(20):
        optimiser.zero_grad()
        for part, rows, generator in zip(parts, order, draws, strict=True):
            (part(data()[rows.next()], seed=generator).loss / 2).backward()
        optimiser.step()
    return [part.state_dict() for part in parts]


def test_each_process_has_chains_and_draws_of_its_own(tmp_path):
    expected = learn_both_parts()
    together(learn_by_chains, 2, tmp_path, "")
    for rank, tensors in enumerate(expected):
        found = load_file(tmp_path / f"{rank}.safetensors")
        assert torch.equal(found.pop("negatives.x"), tensors["negatives.x"])
        assert apart(found, tensors) < ROUNDING
    together(learn_by_chains, 2, tmp_path, "one start")  # the same chains to begin with part at once
    first, second = (load_file(tmp_path / f"one start{rank}.safetensors")["negatives.x"] for rank in range(2))
    assert not torch.equal(first, second)
    together(learn_by_chains, 2, tmp_path, "one stream")  # the mutant: one generator's draws in both
    assert not torch.equal(load_file(tmp_path / "one stream1.safetensors")["negatives.x"], expected[1]["negatives.x"])


def left(folder):
    """All that a run of two processes leaves."""
    checkpoints = sorted((folder / "checkpoint").glob("step-*.safetensors"))[-2:]
    named = {f"{path.name}.{key}": value for path in checkpoints for key, value in load_file(path).items()}
    for rank in range(2):
        named |= {f"{rank}.{key}": value for key, value in load_file(folder / f"learned{rank}.safetensors").items()}
    return {**named, "metrics": (folder / "metrics.jsonl").read_text()}


def test_two_processes_of_which_one_is_killed_go_on_to_the_same_bits(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    together(train_together, 2, "rbm", whole)
    moment = random.Random(0)
    for victim in (1, 0):
        with meeting(train_together, 2, "rbm", broken, 0.03) as group:
            goal, deadline = len(list(broken.glob("checkpoint/*"))) and 60, time.monotonic() + 300
            while not any(int(path.name[5:14]) > goal for path in broken.glob("checkpoint/step-*")):
                assert time.monotonic() < deadline and all(process.is_alive() for process in group)
                time.sleep(0.001)
            time.sleep(moment.uniform(0, 0.02))
            os.kill(group[victim].pid, signal.SIGKILL)
            group[1 - victim].join(300)
            assert group[1 - victim].exitcode not in (0, None), "it went on alone"
    together(train_together, 2, "rbm", broken)
    found = left(broken)
    assert differences(found, left(whole)) == []
    assert found["metrics"].count("\n") == 240 // 2, "one process writes the metrics"


def refuse(rank, folder, message):
    objective = persistent(L.shard(chains()))
    with pytest.raises(L.CheckpointError, match=message):
        L.fit(objective, data(), **settings(objective), out=folder)


def write(rank, folder):
    objective = persistent(L.shard(chains()))
    L.fit(objective, data(), **settings(objective), out=folder)


def test_what_is_wrong_for_one_process_stops_all(tmp_path):
    together(write, 2, tmp_path)
    refuse(0, tmp_path, "the checkpoints are of 2 processes, this run has 1")
    (part,) = (tmp_path / "checkpoint").glob("step-*30.rank1-of-2.safetensors")
    part.write_bytes(part.read_bytes()[:-9])
    together(refuse, 2, tmp_path, r"rank1-of-2.safetensors: not a whole checkpoint")


def diverge(rank, folder, retries):
    objective = Failing("potential", (13,) if rank else ())
    examples = torch.randn(64, generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.05)
    how = {"steps": 20, "batch": 8, "seed": 0, "save_every": 5, "out": folder, "guard": L.Guard(retries=retries)}
    if not retries:
        with pytest.raises(L.Diverged, match=r"step 13: the potential .* of step 10"):
            L.fit(objective, examples, optimiser=optimiser, **how)
        return
    objective.steps = ()
    objective.register_forward_pre_hook(lambda *_: setattr(objective, "steps", next(turns)))
    turns = iter([(0,) if rank else (), (), *[()] * 12, (13,) if rank else (), *[()] * 30])
    fitted = L.fit(objective, examples, optimiser=optimiser, **how)
    assert fitted.step == 20 and [line["event"] for line in fitted.metrics if "event" in line] == ["diverged"] * 2


@pytest.mark.parametrize("retries", [0, 2])
def test_when_one_diverges_all_go_back(retries, tmp_path):
    together(diverge, 2, tmp_path, retries)


def interrupted(rank, folder):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    objective, told = persistent(L.shard(chains())), []

    def press(steps):
        told.append(steps)
        if rank == 0 and len(told) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    fitted = L.fit(objective, data(), **settings(objective), out=folder, progress=press)
    assert fitted.interrupted and fitted.step < 30
    (folder / f"{rank}").write_text(str(fitted.step))


def test_ctrl_c_in_one_stops_all_at_one_step(tmp_path):
    together(interrupted, 2, tmp_path)
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text()


def test_shares_are_all_there_is_and_no_more():
    for size in (1, 2, 3):
        groups = [Group(rank, size) for rank in range(size)]
        assert [sum(group.share(count, "n") for group in groups) for count in (3, 7, 8)] == [3, 7, 8]
    with pytest.raises(ValueError, match="chains: expected at least one for each of the 3 processes, got 2"):
        Group(0, 3).share(2, "chains")


def unlike_seeds(rank):
    with pytest.raises(ValueError, match="seed: expected the same one in every process"):
        Group.current().source(torch.Generator().manual_seed(rank))
    group = Group.current()
    rows = group.gather(torch.full((2 + rank, 3), rank, dtype=torch.int8))
    assert rows[:, 0].tolist() == [0, 0, 1, 1, 1] and rows.dtype == torch.int8
    draws = torch.rand(2, generator=group.source(torch.Generator().manual_seed(0)))
    assert len(set(group.gather(draws).tolist())) == 4


def test_processes_gather_rows_and_have_draws_of_their_own_from_one_seed():
    together(unlike_seeds, 2)
