"""# Is a model learned with E-ARM nearer to its source than one learned by cross-entropy?

The recipe `earm-toy`: sources whose sequences can be enumerated, so that both divergences are exact. Each way to learn has
the same data, the same start and the same order of mini-batches; differences are taken within a source, and their errors are
from the spread over sources. The numbers are those of a run of the recipe: `--run` names one that is there, else its laptop
preset is run, on one pinned thread.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from _harness import RESULTS, table

from gibbsite.recipes import RECIPES, Bars, earm_toy
from gibbsite.report import RunDirectory, number, surroundings

_NAME = "earm-toy"


def main() -> None:
    """Writes results/earm_toy.md."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that the run is pinned to")
    arguments.add_argument("--run", type=Path, help="a run directory of the recipe that is finished")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory.open(given.run) if given.run else measured(Path(folder) / "run", given.cpu)
        text = page(directory)
    (RESULTS / "earm_toy.md").write_text(text)
    print(text)


def measured(path: Path, cpu: int) -> RunDirectory:
    """A run of the laptop preset, on one thread."""
    os.sched_setaffinity(0, {cpu})
    torch.set_num_threads(1)
    recipe = RECIPES[_NAME]
    config = recipe.presets["laptop"]
    record = {"recipe": _NAME, "preset": "laptop", "parameters": vars(config), **surroundings("cpu")}
    directory = RunDirectory.create(path, record)
    recipe.run(config, directory, Bars(shown=True))
    return directory


def page(directory: RunDirectory) -> str:
    """The question, what was run on what, the verdict, the ends, and the divergences against steps."""
    record, results = directory.config(), directory.results()
    config = RECIPES[_NAME].restore(record["parameters"])
    rows = earm_toy.learned_rows(results)
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    ends = earm_toy.table(config, results)
    spent = sum(row["seconds"] for row in rows)
    parts = [
        (__doc__ or "").strip(),
        f"{record['started'][:10]}, {record['hardware']}; {versions}. Preset {record['preset']}: {spent:.0f} CPU-seconds of "
        f"learning, {len(rows)} models.",
        earm_toy.verdict(config, results),
        "## After the last step",
        table([column.replace("|", "\\|") for column in ends.columns], ends.rows).strip(),
        ends.caption,
    ]
    for examples in sorted({row["examples"] for row in rows}):
        parts += [f"## KL(source || model) against steps, {examples:,} examples", against_steps(rows, examples)]
    return "\n\n".join(parts) + "\n"


def against_steps(rows: list[dict[str, Any]], examples: int) -> str:
    """Means over sources with their standard errors, a column for each way to learn."""
    lines = earm_toy.curves([row for row in rows if row["examples"] == examples], 1)
    steps = next(iter(lines.values())).x
    cells = [[str(step), *(number(line.y[k], line.error[k]) for line in lines.values())] for k, step in enumerate(steps)]
    return table(["step", *lines], cells).strip()


if __name__ == "__main__":
    main()
