"""Writes what a recipe's run measured as benchmarks/results/NAME.md, from the run directory alone.

`python benchmarks/recipe_results.py RUN [NOTE ...]`: the page's words and tables (not its pictures), its checks, what was
run, on what hardware, with which versions; each NOTE is a paragraph of its own at the end.
"""

import sys
from pathlib import Path

from _harness import RESULTS, table

from gibbsite.recipes import RECIPES
from gibbsite.recipes.expected import checks, expectations
from gibbsite.report import RunDirectory, Table, Text


def page(directory: RunDirectory, notes: list[str]) -> str:
    """The run as Markdown."""
    record = directory.config()
    recipe = RECIPES[record["recipe"]]
    config = recipe.restore(record["parameters"])
    whole, found = recipe.page(config, directory), recipe.findings(config, directory.results())
    sections = [*whole.sections, *checks(expectations(record["recipe"], record["preset"]), found)]
    versions = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    parts = [f"# {whole.title}\n", f"{whole.lead}\n", f"Redraws: {recipe.figure}.\n"]
    parts.append(f"`{record['command']}`, {record['started'][:10]}, {record['hardware']}, {record['system']}; {versions}.\n")
    for section in sections:
        parts.append(f"## {section.title}\n")
        for block in section.blocks:
            if isinstance(block, Text):
                parts.append(f"{block.text}\n")
            elif isinstance(block, Table):
                parts += [table(block.columns, block.rows), f"{block.caption}\n"]
    parts.append("## Findings\n")
    parts.append(table(("finding", "value"), [[name.replace("_", " "), f"{value:.5g}"] for name, value in found.items()]))
    return "\n".join([*parts, *(f"{note}\n" for note in notes)])


if __name__ == "__main__":
    run = RunDirectory.open(Path(sys.argv[1]))
    path = RESULTS / f"{run.config()['recipe'].replace('-', '_')}.md"
    path.write_text(page(run, sys.argv[2:]))
    print(f"wrote {path}")
