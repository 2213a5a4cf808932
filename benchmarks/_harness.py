"""What every benchmark shares: ours and the peers take turns in one process, and a ratio is the median over those turns.

`main` starts this script twice, in processes whose threads are set before anything is imported: once pinned to one CPU,
once free to use all of them. A round calls every contestant once, each for about `_TURN` seconds of whole calls; rates are
per second of the clock and per second of CPU time of the process (all its threads). A ratio is taken within a round, so
that a machine that slows down for a while slows down both sides; the table has its median and, in brackets, its extremes.
A target is of the run on one thread, and counts as reached by steps per CPU-second, which other work on the machine
disturbs least. Free threads on a machine that is busy otherwise wait for each other at every product, for as long as the
system runs something else: a contest that this ends before its third round gives no ratio, and the others are to be read
beside the load average.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_TURN = 0.3  # seconds of one contestant in one round, about
_ROUNDS = 7
_FEWEST = 3  # rounds that a ratio is the median of, at least
_BUDGET = 12.0  # seconds after which a contest ends early, with the rounds it has: threads on a busy machine can stall
_LIBRARIES = ("torch", "numpy", "numba", "jax", "thrml", "blackjax", "ebmkit", "rbms", "torchebm", "kenlm",
              "fast_ctc_decode", "transformers", "pytorch-crf", "torch-struct")  # fmt: skip
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class Contestant:
    """`work()` makes `steps` steps; a name that starts with "gibbsite" is ours."""

    name: str
    work: Callable[[], Any]
    steps: int


@dataclass(frozen=True)
class Target:
    """`ours` should make at least `least` times as many steps as `peer`."""

    ours: str
    peer: str
    least: float


@dataclass(frozen=True)
class Contest:
    """One piece of work that several contestants do; one step is `updates` of `unit` (by default: one step)."""

    title: str
    contestants: Sequence[Contestant]
    targets: Sequence[Target] = ()
    updates: float = 1.0
    unit: str = "steps"
    note: str = ""


@dataclass
class _Times:
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def main(
    script: str,
    contests: Callable[[], Sequence[Contest]],
    more: Callable[[int], tuple[dict[str, Any], str]] = lambda cpu: ({}, ""),
) -> None:
    """Runs the script's contests in two child processes and writes results/<name>.md and .json.

    `more(cpu)`: what else it measures, for the record, and the end of its page.
    """
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that the one-thread run is pinned to")
    arguments.add_argument("--one-thread", action="store_true", help="leave out the run on all threads")
    given = arguments.parse_args()
    if given.child:
        Path(given.child).write_text(json.dumps([_compete(contest) for contest in contests()]))
        return
    question = sys.modules["__main__"].__doc__ or ""
    record = {"question": question, "machine": machine(), "runs": {}}
    for name in ("one thread", "all threads")[: 1 if given.one_thread else 2]:
        record["runs"][name] = {"load": os.getloadavg()[0], "contests": child(script, name, given.cpu)}
    record["more"], end = more(given.cpu)
    write(Path(script).stem, record, _page(record) + end)


def child(script: str, threads: str, cpu: int) -> Any:
    """What the script's child process, with its threads set, answers."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        pinned = threads == "one thread"
        environment = {**os.environ, **(_ONE_THREAD if pinned else {}), "JAX_PLATFORMS": "cpu"}
        pin = ["taskset", "--cpu-list", str(cpu)] if pinned and shutil.which("taskset") else []
        subprocess.run([*pin, sys.executable, script, "--child", str(out)], env=environment, check=True)
        return json.loads(out.read_text())


def machine() -> dict[str, Any]:
    """Hardware, date, versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    vectors = [line.split() for line in lines if line.startswith("flags")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cpus": os.cpu_count(),
        "avx512": bool(vectors) and "avx512f" in vectors[0],
        "system": platform.system(),
        "python": platform.python_version(),
        "date": date.today().isoformat(),
        "versions": {name: _version(name) for name in _LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def write(name: str, record: dict[str, Any], page: str) -> None:
    """Both files, and the page on the screen."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text(page)
    print(page)


def _compete(contest: Contest) -> dict[str, Any]:
    calls, times = {}, {c.name: _Times() for c in contest.contestants}
    for contestant in contest.contestants:
        contestant.work()  # compiles, allocates
        first = time.perf_counter()
        contestant.work()
        calls[contestant.name] = max(1, round(_TURN / (time.perf_counter() - first)))
    began = time.perf_counter()
    for turn in range(_ROUNDS):
        if turn and time.perf_counter() - began > _BUDGET:
            break
        for contestant in contest.contestants:
            _take_turn(contestant, calls[contestant.name], times[contestant.name])
    return {
        "title": contest.title,
        "unit": contest.unit,
        "note": contest.note,
        "rounds": len(times[contest.contestants[0].name].wall),
        "rates": {name: _rates(contest, t) for name, t in times.items()},
        "ratios": _ratios(contest, times),
    }


def _take_turn(contestant: Contestant, calls: int, times: _Times) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        contestant.work()
    times.wall.append(contestant.steps * calls / (time.perf_counter() - wall))
    times.cpu.append(contestant.steps * calls / (time.process_time() - cpu))


def _rates(contest: Contest, times: _Times) -> dict[str, float]:
    wall, cpu = statistics.median(times.wall), statistics.median(times.cpu)
    return {"second": wall, "cpu_second": cpu, "updates": wall * contest.updates}


def _ratios(contest: Contest, times: dict[str, _Times]) -> list[dict[str, Any]]:
    ours = [c.name for c in contest.contestants if c.name.startswith("gibbsite")]
    least = {(t.ours, t.peer): t.least for t in contest.targets}
    rows = []
    for mine in ours:
        for peer in (name for name in times if name not in ours):
            wall = [a / b for a, b in zip(times[mine].wall, times[peer].wall)]
            cpu = [a / b for a, b in zip(times[mine].cpu, times[peer].cpu)]
            rows.append({"ours": mine, "peer": peer, "target": least.get((mine, peer)), "wall": _spread(wall),
                         "cpu": _spread(cpu)})  # fmt: skip
    return rows


def _spread(values: Sequence[float]) -> list[float]:
    return [statistics.median(values), min(values), max(values)]


def heading(record: dict[str, Any]) -> str:
    """The question and the machine, as the top of a page."""
    m = record["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items() if v != "absent")
    wide = " (AVX-512)" if m["avx512"] else ""
    return (
        f"{record['question'].strip()}\n\n{m['date']}, {m['cpus']} x {m['cpu']}{wide}, Python {m['python']}; {versions}.\n"
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float) -> str:
    """Three digits, or all of a large number's integer part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _page(record: dict[str, Any]) -> str:
    parts = [heading(record)]
    for name, run in record["runs"].items():
        parts.append(f"## {name[0].upper()}{name[1:]}\n\nLoad average when it started: {run['load']:.2f}.\n")
        for contest in run["contests"]:
            parts.append(f"### {contest['title']}\n\n{contest['rounds']} rounds. {contest['note']}".rstrip() + "\n")
            counted = contest["unit"] != "steps"
            columns = ["", "steps/s", "steps per CPU-second", *([f"{contest['unit']}/s"] if counted else [])]
            parts.append(table(columns, [_rate_row(n, r, counted) for n, r in contest["rates"].items()]))
            aimed = name == "one thread"  # the targets are of that run
            columns = ["ratio", "steps/s", "steps per CPU-second", *(["target"] if aimed else [])]
            if not contest["ratios"]:
                continue
            if contest["rounds"] >= _FEWEST:
                parts.append(table(columns, [_ratio_row(r)[: len(columns)] for r in contest["ratios"]]))
            else:
                parts.append("No ratios: too few rounds, for other work held the processors and the threads waited.\n")
    return "\n".join(parts)


def _rate_row(name: str, rates: dict[str, float], counted: bool) -> list[str]:
    updates = [f"{rates['updates'] / 1e6:,.0f} M"] if counted else []
    return [name, number(rates["second"]), number(rates["cpu_second"]), *updates]


def _ratio_row(row: dict[str, Any]) -> list[str]:
    target = (
        "" if row["target"] is None else f"{row['target']:g}: {'reached' if row['cpu'][0] >= row['target'] else 'missed'}"
    )
    return [
        f"{row['ours']} / {row['peer']}",
        *(f"{v[0]:.2f} ({v[1]:.2f}-{v[2]:.2f})" for v in (row["wall"], row["cpu"])),
        target,
    ]
