"""# How good are neural taggers, by the law on top of the encoder?

One encoder (word vectors learned from the training set alone, a convolution over characters, one layer of LSTMs in both
directions) under four laws of the labels: a softmax at each word, a linear-chain CRF, an RNN transducer and a CRF
transducer with both designs of its potentials (EBM-SLP, eq. 4.30 and 4.31), which begins as an RNN transducer. All see the
corpus as often: the CRF transducer's epochs are those of both its stages. UPOS accuracy on the test set of UD English EWT,
F1 of spans on that of WNUT-17; the epoch is chosen on the development set. `--data` is a folder with `tagging/ud_ewt` and
`tagging/wnut17`.

Every run writes a file of its own under `--out`, so that the work can be divided (`--only`, `--tasks`, `--from-seed`) and a
run that is there is not made again; the table is of all the runs that are there. Time is that of the process that trains,
on one thread: CPU-minutes without a GPU, minutes of the clock with one, which runs that go on beside it (`--jobs`) share.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from _harness import RESULTS, machine, table

from gibbsite.apps.tagging import (
    Corpus,
    NeuralCRF,
    NeuralCRFTransducer,
    NeuralLearner,
    NeuralRNNTransducer,
    NeuralSoftmax,
    Words,
)
from gibbsite.apps.tagging.choice import score
from gibbsite.apps.tagging.heads import Separate, Sum
from gibbsite.files import plain

_LAWS = ("softmax", "crf", "rnn-t", "crf-t-sum", "crf-t-separate")
_NAMES = {
    "softmax": "softmax", "crf": "linear-chain CRF", "rnn-t": "RNN transducer",
    "crf-t-sum": "CRF transducer, eq. 4.30", "crf-t-separate": "CRF transducer, eq. 4.31",
}  # fmt: skip


class Task(NamedTuple):
    """A corpus, how it is learned, and what its score is called."""

    name: str
    files: tuple[str, str, str]
    column: str
    score: str
    settings: dict[str, Any]
    first_runs: str = ""  # with what those runs were made that do not say it themselves


TASKS = {
    "ewt": Task(
        "UD English EWT, UPOS",
        tuple(f"tagging/ud_ewt/en_ewt-ud-{part}.conllu.gz" for part in ("train-reassembled", "dev", "test")),
        "upos", "test accuracy", {"reading": Words(), "epochs": 12},
        "These runs were made with other settings than the script has now: the moving average of weights had a decay of\n"
        "0.998 at every step (now it looks back one pass), the CRF transducers' beam was 8 wide (now 32), and their rate\n"
        "fell from its full value to 0 in each of the two stages (now once, over both).",
    ),
    "wnut17": Task(
        "WNUT-17, named entities",
        tuple(f"tagging/wnut17/{part}" for part in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")),
        "ner", "test F1 of spans",
        {"reading": Words(word_dropout=1.0, dropout=0.5), "epochs": 30, "tokens": 256},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One tagger, trained and scored."""

    task: str
    law: str
    seed: int
    device: str
    data: str
    small: bool

    @property
    def name(self) -> str:
        return f"{self.task}-{self.law}-{self.seed}-{self.device.split(':')[0]}{'-small' if self.small else ''}"

    def learner(self) -> NeuralLearner:
        """What is trained."""
        shared = {**TASKS[self.task].settings, **({"epochs": 2} if self.small else {})}
        first = shared["epochs"] // 2
        made: dict[str, NeuralLearner] = {
            "softmax": NeuralSoftmax(**shared),
            "crf": NeuralCRF(**shared),
            "rnn-t": NeuralRNNTransducer(**shared),
            "crf-t-sum": NeuralCRFTransducer(**shared, design=Sum(), first_epochs=first),
            "crf-t-separate": NeuralCRFTransducer(**shared, design=Separate(), first_epochs=first),
        }
        learner = made[self.law]
        return replace(learner, epochs=learner.epochs - first) if self.law.startswith("crf-t") else learner

    def corpora(self) -> list[Corpus]:
        """Training, development and test set; the first sentences of each if the run is a small one."""
        task = TASKS[self.task]
        found = [Corpus.read(Path(self.data) / name, task.column) for name in task.files]
        return [replace(corpus, sentences=corpus.sentences[:100]) for corpus in found] if self.small else found


def measured(run: Run) -> dict[str, Any]:
    """Trains a tagger and scores it."""
    torch.set_num_threads(1)
    train, dev, test = run.corpora()
    clock = time.process_time if run.device == "cpu" else time.perf_counter
    began = clock()
    learner = run.learner()
    tagger = learner.fit(train, dev, seed=run.seed, device=run.device)
    minutes = (clock() - began) / 60
    nats = -sum(tagger.log_likelihood(test.sentences)) / test.tokens
    scores = {"dev": score(tagger, dev), "test": score(tagger, test), "nats": nats}
    found = {"task": run.task, "law": run.law, "seed": run.seed, "minutes": minutes, **scores}
    return {**found, "settings": plain(asdict(learner))}


def main() -> None:
    """Makes the runs that are not there, then the table of all that are."""
    given = _arguments()
    folder = given.out / "tagging_runs"
    folder.mkdir(parents=True, exist_ok=True)
    seeds = range(given.from_seed, given.from_seed + given.seeds)
    wanted = [
        Run(task, law, seed, given.device, str(given.data), given.small)
        for task in given.tasks for seed in seeds for law in given.only
    ]  # fmt: skip
    missing = [run for run in wanted if not (folder / f"{run.name}.json").exists()]
    for run, found in _each(missing, given.jobs):
        whole = {**found, "machine": {**machine(), "device": _device(given.device)}, "small": given.small}
        (folder / f"{run.name}.json").write_text(json.dumps(whole, indent=1) + "\n")
        print(f"{run.name}: test {100 * found['test']:.2f}, {found['minutes']:.1f} minutes", flush=True)
    kept = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    runs = [run for run in kept if run["small"] == given.small]
    text = page(runs)
    (given.out / "tagging_neural.md").write_text(text)
    print(text)


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    arguments.add_argument("--data", type=Path, default=Path(os.environ.get("GIBBSITE_DATA", ".")), help="$GIBBSITE_DATA")
    arguments.add_argument("--out", type=Path, default=RESULTS, help="where results are written")
    arguments.add_argument("--only", nargs="+", choices=_LAWS, default=_LAWS, help="these laws alone")
    arguments.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="these tasks alone")
    arguments.add_argument("--seeds", type=int, default=3, help="how many runs of each")
    arguments.add_argument("--from-seed", type=int, default=0, help="the first of their seeds")
    arguments.add_argument("--jobs", type=int, default=1, help="runs that go on at a time")
    arguments.add_argument("--small", action="store_true", help="100 sentences and 2 epochs: to see that it works")
    return arguments.parse_args()


def _each(runs: list[Run], jobs: int) -> Iterator[tuple[Run, dict[str, Any]]]:
    """What each run found, as soon as it is known."""
    if jobs == 1:
        yield from ((run, measured(run)) for run in runs)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(measured, run): run for run in runs}
        for done in as_completed(waiting):
            if (error := done.exception()) is None:
                yield waiting[done], done.result()
            else:  # the others go on
                print(f"{waiting[done].name}: {type(error).__name__}: {error}", flush=True)


def _device(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU"


def page(runs: list[dict[str, Any]]) -> str:
    """The question, the machines, and a table a task: means over seeds with their standard deviations."""
    parts = []
    for task in TASKS:
        of_task = [run for run in runs if run["task"] == task]
        if of_task:
            groups = {(law, run["machine"]["device"]): None for law in _LAWS for run in of_task if run["law"] == law}
            rows = [_row(law, device, of_task) for law, device in groups]
            columns = ["law of the labels", "on", "seeds", TASKS[task].score, "less that of the linear-chain CRF",
                       "development", "-log p a word", "minutes"]  # fmt: skip
            old = TASKS[task].first_runs if any("settings" not in run for run in of_task) else ""
            parts.append(f"## {TASKS[task].name}\n\n{table(columns, rows)}" + (f"\n{old}\n" if old else ""))
    small = "**Small runs: the numbers say nothing.**\n\n" if any(run["small"] for run in runs) else ""
    note = (
        "Mean and standard deviation over seeds, in per cent; differences are means over the same seeds, with\n"
        "their standard errors. -log p a word, in nats, is exact for the softmax, the linear-chain CRF and the RNN\n"
        "transducer; a CRF transducer's is a lower bound, with the Z of its beam, and not to be compared with them."
    )
    return f"{(__doc__ or '').strip()}\n\n{_machines(runs)}\n{note}\n\n{small}" + "\n".join(parts)


def _machines(runs: list[dict[str, Any]]) -> str:
    """A line a device: its machine, the days, the versions."""
    lines = {}
    for run in runs:
        m = run["machine"]
        versions = ", ".join(f"{name} {m['versions'][name]}" for name in ("torch", "numpy", "numba"))
        lines.setdefault((m["device"], f"{m['cpus']} x {m['cpu']}, Python {m['python']}; {versions}"), set()).add(m["date"])
    return "".join(f"- {device}: {', '.join(sorted(days))}, {rest}.\n" for (device, rest), days in sorted(lines.items()))


def _row(law: str, device: str, runs: list[dict[str, Any]]) -> list[str]:
    crf = {run["seed"]: run for run in runs if run["law"] == "crf" and run["machine"]["device"] == device}
    runs = [run for run in runs if run["law"] == law and run["machine"]["device"] == device]
    gaps = [100 * (run["test"] - crf[run["seed"]]["test"]) for run in runs if run["seed"] in crf]
    error = f" ({statistics.stdev(gaps) / len(gaps) ** 0.5:.2f})" if len(gaps) > 1 else ""
    beside = f"{statistics.mean(gaps):+.2f}{error}" if gaps and law != "crf" else ""
    test, dev = (_spread([100 * run[name] for run in runs], 2) for name in ("test", "dev"))
    return [_NAMES[law], device, str(len(runs)), test, beside, dev, _spread([run["nats"] for run in runs], 4),
            _spread([run["minutes"] for run in runs], 1)]  # fmt: skip


def _spread(values: list[float], digits: int) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else math.nan
    return f"{statistics.mean(values):.{digits}f}" + ("" if math.isnan(deviation) else f" ± {deviation:.{digits}f}")


if __name__ == "__main__":
    main()
