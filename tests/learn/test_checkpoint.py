"""Checkpoints: whole or refused, never overwritten by another run, and safe from a full disk and from two writers."""

import random
import re
import resource
import shutil
from pathlib import Path

import pytest
import torch

import gibbsite as gb
from gibbsite.learn.checkpoint import Checkpoints
from gibbsite.learn.snapshot import Snapshot

from . import runs
from .processes import start

L, S = gb.learn, gb.sample


def objective(seed=0, visible=12, steps=1):
    model = gb.models.RBM(visible, 4, seed=seed)
    return L.Contrastive(model, L.Persistent(S.BlockGibbs(), model.space.uniform().sample(8, seed=1), steps=steps))


def settings(**changes):
    made = changes.pop("objective", None) or objective()
    optimiser = changes.pop("optimiser", torch.optim.Adam)(made.parameters(), lr=changes.pop("lr", 0.01))
    data = gb.models.RBM(12, 4).space.uniform().sample(32, seed=2)
    return {"objective": made, "data": data, "optimiser": optimiser, "steps": 6, "batch": 8, "seed": 0, "log_every": 2,
            "save_every": 2, **changes}  # fmt: skip


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


@pytest.fixture
def folder(tmp_path):
    """A run of 6 steps, whose last two checkpoints are those of steps 4 and 6."""
    L.fit(**settings(out=tmp_path))
    return tmp_path


def test_the_last_ones_are_kept(folder):
    assert sorted(path.name for path in (folder / "checkpoint").glob("step*")) == [
        "step-000000004.safetensors",
        "step-000000006.safetensors",
    ]


OTHERS = {
    "another model": (lambda: {"objective": objective(visible=13), "data": torch.zeros(32, 13, dtype=torch.int8)}, "Binary"),
    "other chains": (
        lambda: {"objective": L.Contrastive(gb.models.RBM(12, 4), L.Persistent(S.BlockGibbs(), torch.zeros(9, 12).byte()))},
        "expected negatives.x of shape",
    ),
    "more tensors": (
        lambda: {
            "objective": L.Contrastive(gb.models.RBM(12, 4), L.Reservoir(S.BlockGibbs(), torch.zeros(8, 12).byte(), 8))
        },
        "negatives.kind: .* expected Reservoir, it has Persistent",
    ),
    "other steps of the sampler": (lambda: {"objective": objective(steps=2)}, "negatives.steps: .* expected 2, it has 1"),
    "another optimiser": (lambda: {"optimiser": torch.optim.SGD}, "optimiser: .* expected SGD, it has Adam"),
    "another rate": (lambda: {"lr": 0.02}, "optimiser.0.lr: .* expected 0.02, it has 0.01"),
    "other data": (lambda: {"data": torch.zeros(32, 12, dtype=torch.int8)}, "data: the checkpoint is of another run"),
    "fewer data": (lambda: {"data": torch.zeros(31, 12, dtype=torch.int8)}, "data: the checkpoint is of another run"),
    "another batch": (lambda: {"batch": 4}, "batch: .* expected 4, it has 8"),
    "another seed": (lambda: {"seed": 1}, "seed: .* expected 1, it has 0"),
    "a schedule": (lambda: {"schedule": L.schedule.Warmup(3)}, "schedule: .* expected Warmup"),
    "clipping": (lambda: {"clip": 1.0}, "clip: .* expected 1.0, it has None"),
    "another guard": (lambda: {"guard": L.Guard(retries=1)}, "guard.retries: .* expected 1, it has 0"),
    "fewer steps": (lambda: {"steps": 5}, "holds step 6, beyond the 5 steps asked for"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_run_is_refused_and_nothing_changes(other, folder):
    make, message = OTHERS[other]
    given, before = settings(out=folder, **make()), bytes_of(folder)
    weights = {key: value.clone() for key, value in given["objective"].state_dict().items()}
    with pytest.raises(L.CheckpointError, match=message):
        L.fit(**given)
    assert bytes_of(folder) == before
    assert all(torch.equal(weights[key], value) for key, value in given["objective"].state_dict().items())
    assert not given["optimiser"].state
    L.fit(**settings(out=folder))  # the run itself is not


def test_an_average_where_there_was_none_is_refused(folder):
    given = settings(out=folder)
    with pytest.raises(L.CheckpointError, match=r"average: .* expected 0.9, it has None"):
        L.fit(**given, average=L.Average(given["objective"], 0.9))


def test_a_file_that_is_cut_or_changed_anywhere_is_refused(folder):
    path = folder / "checkpoint" / "step-000000006.safetensors"
    whole, moment = path.read_bytes(), random.Random(0)
    cut = [whole[:size] for size in (0, 1, 7, 8, 100, len(whole) - 1, *(moment.randrange(len(whole)) for _ in range(20)))]
    places = [*range(12), *(moment.randrange(len(whole)) for _ in range(60))]
    edited = [whole[:at] + bytes([whole[at] ^ 1 << moment.randrange(8)]) + whole[at + 1 :] for at in places]
    for content in (*cut, *edited, whole + b"\0"):
        path.write_bytes(content)
        before = bytes_of(folder)
        with pytest.raises(L.CheckpointError, match=r"step-000000006.*remove it to go on from step 4"):
            L.fit(**settings(out=folder))
        assert bytes_of(folder) == before
    path.write_bytes(whole)
    expected = Checkpoints(folder / "checkpoint").read(6)
    path.unlink()  # as it says
    L.fit(**settings(out=folder))
    found = Checkpoints(folder / "checkpoint").read(6)
    assert found.state == expected.state
    assert all(torch.equal(found.tensors[key], value) for key, value in expected.tensors.items())


def test_a_file_that_was_renamed_is_refused(folder):
    path = folder / "checkpoint" / "step-000000006.safetensors"
    path.rename(path.with_name("step-000000007.safetensors"))
    with pytest.raises(L.CheckpointError, match=r"step-000000007.*: holds step 6: it was renamed; remove it to go on from"):
        L.fit(**settings(out=folder, steps=8))


def test_metrics_of_another_run_are_not_overwritten(folder):
    shutil.rmtree(folder / "checkpoint")
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(L.CheckpointError, match="holds 3 lines of a run whose checkpoints are not beside it"):
        L.fit(**settings(out=folder))
    assert (folder / "metrics.jsonl").read_bytes() == before and len(list(folder.iterdir())) == 1
    (folder / "checkpoint").mkdir()  # as a run leaves it that is killed before its first checkpoint: it starts anew
    L.fit(**settings(out=folder))
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_full_disk_loses_nothing(tmp_path):
    """The system refuses to write more than some bytes to a file: no checkpoint fits, then all do."""
    plain = settings()
    L.fit(**plain)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    calls = []

    def grow(line):
        calls.append(line)
        if len(calls) == 3:  # between the saves of steps 2 and 4
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    given = settings(out=tmp_path, listener=grow, log_every=1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.warns(UserWarning, match=r"step-000000002.safetensors: not written .*tried again later"):
            L.fit(**given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert torch.equal(given["objective"].model.weight, plain["objective"].model.weight)
    assert len(bytes_of(tmp_path)) == 3, "metrics and two checkpoints, and no half of one"


def test_a_disk_that_stays_full_is_an_error_that_leaves_the_last_checkpoint_and_the_model(folder):
    before, limit = bytes_of(folder / "checkpoint"), resource.getrlimit(resource.RLIMIT_FSIZE)
    given = settings(out=folder, steps=8)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(L.CheckpointError, match=r"step-000000008.safetensors: not written .*the model is in memory"):
            L.fit(**given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert bytes_of(folder / "checkpoint") == before
    expected = settings(steps=8)
    L.fit(**expected)
    assert torch.equal(given["objective"].model.weight, expected["objective"].model.weight)


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    other = start(runs.train, "rbm", tmp_path, "", 10**6)
    try:
        while not list((tmp_path / "checkpoint").glob("step-*")):
            assert other.is_alive()
        with pytest.raises(
            L.CheckpointError, match=rf"in use by another process \({other.pid}\); wait for it or choose another"
        ):
            L.fit(**settings(out=tmp_path))
    finally:
        other.kill()
        other.join()
    with pytest.raises(L.CheckpointError, match="another run"):  # it is free now, but of another run
        L.fit(**settings(out=tmp_path))


def test_what_a_killed_writer_left_is_removed(folder):
    left = folder / "checkpoint" / ".step-000000006.safetensors.abc"
    left.write_bytes(b"half")
    L.fit(**settings(out=folder))
    assert not left.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(L.CheckpointError, match="cannot be made"):
        L.fit(**settings(out=tmp_path / "file"))


def test_no_pickle_is_ever_loaded():
    for path in Path(gb.__file__).parent.rglob("*.py"):
        assert not re.search(r"\bimport pickle|pickle\.|torch\.load\(|allow_pickle=True|joblib", path.read_text()), path


def test_tensors_of_every_type_come_back_bit_for_bit(tmp_path):
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.bool, torch.int8, torch.uint8, torch.int64]
    tensors = {str(kind): torch.arange(-2, 3).to(kind) for kind in kinds}
    tensors |= {"empty": torch.empty(0, 3), "number": torch.tensor(torch.nan), "turned": torch.arange(6).view(2, 3).T}
    Checkpoints(tmp_path).write(1, Snapshot(tensors, {"pi": 3.141592653589793, "huge": 1e308}))
    found = Checkpoints(tmp_path).read(1)
    assert found.state == {"pi": 3.141592653589793, "huge": 1e308}
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(
            found.tensors[name].reshape(-1).view(torch.uint8), tensor.reshape(-1).contiguous().view(torch.uint8)
        )
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001.safetensors"]
