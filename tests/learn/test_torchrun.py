"""The scripts of docs/processes.md as a user runs them: by torchrun, and Ctrl-C while it runs."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gibbsite

ROOT = Path(__file__).parents[2]
TORCH_AT_EXIT = "terminate called without an active exception"  # after all was said: pytorch/pytorch, issue 190489
SCRIPTS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "processes.md").read_text(), re.S)


def torchrun(script, folder):
    """The command, which writes what it says to a file."""
    (folder / "train.py").write_text(script)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(gibbsite.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


@pytest.mark.parametrize("script", SCRIPTS, ids=["whole", "sharded"])
def test_the_scripts_run_and_one_process_speaks(script, tmp_path):
    process = torchrun(script, tmp_path)
    try:
        status = process.wait(400)
    finally:
        process.kill()
    said = (tmp_path / "log").read_text()
    assert status == 0 or TORCH_AT_EXIT in said, said
    assert said.count("trusted") == 1, said
    assert re.search(r"in \[.*, ESS .* of (128|64), trusted", said), said


def test_ctrl_c_at_torchrun_saves_in_both_processes(tmp_path):
    longer = (
        SCRIPTS[0].replace("steps=200, batch", "steps=10**7, batch").replace("seed=3)", 'seed=3, out="out", log_every=1)')
    )
    assert longer != SCRIPTS[0]
    process, metrics = torchrun(longer, tmp_path), tmp_path / "out" / "metrics.jsonl"
    try:
        deadline = time.monotonic() + 400
        while not metrics.exists() or metrics.stat().st_size < 1000:
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.wait(300)
    finally:
        process.kill()
    left = sorted(path.name for path in (tmp_path / "out" / "checkpoint").glob("step-*"))
    assert [name[14:] for name in left] == [".rank0-of-2.safetensors", ".rank1-of-2.safetensors"], (
        left,
        (tmp_path / "log").read_text(),
    )
