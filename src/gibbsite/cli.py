"""The command line: run a recipe, list recipes, make a report again."""

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, final

import torch
import tyro

from .recipes import RECIPES, Bars, Recipe
from .recipes.expected import checks, expectations
from .report import RunDirectory, RunDirectoryError, next_directory, render, surroundings
from .report.record import package_version

_RUNS = Path("runs")
_INTERRUPTED = 130

_HELP = """usage: gibbsite COMMAND

Energy-based models: sampled exactly, with every number beside its error.

commands:
  run RECIPE     run an experiment and write a report: {recipes}
  recipes        say what each recipe does
  report RUN     make a run's report.html again from what it saved

options:
  -h, --help     show this; after a command or a recipe, its own help
  --version      show the version

example:
  gibbsite run ising-transition --preset smoke
"""
_RUN_HELP = """usage: gibbsite run RECIPE [--preset NAME] [--out DIRECTORY] [options of the recipe]

recipes:
{recipes}

`gibbsite run RECIPE --help` lists a recipe's options.
"""
_RECIPES_HELP = (
    "usage: gibbsite recipes\n\nLists the recipes with one line each and the figure of the paper that each redraws.\n"
)


class UsageError(Exception):
    """A command line that makes no sense, and what would."""


@final
@dataclass(frozen=True)
class _Report:
    """Make a run's report.html again from its saved metrics and samples."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run's directory."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0, 1 when something failed, 2 for a wrong command, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _command(words)
    except SystemExit as stop:  # tyro's, after --help or a wrong flag
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (UsageError, RunDirectoryError) as error:
        print(f"gibbsite: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gibbsite: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except OSError as error:
        print(f"gibbsite: error: {error}", file=sys.stderr)
        return 1


def _command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_HELP.format(recipes=", ".join(RECIPES)), end="")
        return 0 if words else 2
    if words[0] == "--version":
        print(f"gibbsite {package_version()}")
        return 0
    commands: dict[str, Callable[[list[str]], int]] = {"run": _run, "recipes": _recipes, "report": _report}
    return commands[_named("command", words[0], commands)](words[1:])


def _named(what: str, name: str, known: Any) -> str:
    """name if it is known, else an error that suggests the nearest."""
    if name in known:
        return name
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"there is no {what} {name!r}; {hint}({what}s: {', '.join(known)})")


def _recipes(words: list[str]) -> int:
    if words:
        print(_RECIPES_HELP, end="")
        return 0 if words[0] in ("-h", "--help") else 2
    for name, recipe in RECIPES.items():
        print(f"{name:18}{recipe.summary}\n{'':18}{recipe.figure}; presets: {', '.join(recipe.presets)}")
    return 0


def _report(words: list[str]) -> int:
    options = tyro.cli(_Report, prog="gibbsite report", args=words)
    directory = RunDirectory.open(options.run)
    config = directory.config()
    recipe = RECIPES[_named("recipe", str(config.get("recipe")), RECIPES)]
    try:
        restored = recipe.restore(config.get("parameters", {}))
    except (TypeError, ValueError) as error:
        raise RunDirectoryError(f"{options.run}: written by another version of the recipe: {error}") from error
    print(f"wrote {_write_report(recipe, restored, directory)}")
    return 0


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:18}{recipe.summary}" for name, recipe in RECIPES.items())
        print(_RUN_HELP.format(recipes=listed), end="")
        return 0 if words else 2
    name = _named("recipe", words[0], RECIPES)
    recipe = RECIPES[name]
    preset = _preset(recipe, words[1:])
    try:
        parsed = tyro.cli(
            _options_type(recipe, preset),
            prog=f"gibbsite run {name}",
            description=f"{recipe.config_type.__doc__}\n\nRedraws: {recipe.figure}.",
            args=_one_word_flags(words[1:]),
        )
        torch.empty(0, device=parsed.config.device)
    except (ValueError, RuntimeError, AssertionError) as error:  # the configuration's own checks; torch's of the device
        raise UsageError(f"run {name}: {str(error).splitlines()[0]}") from error
    out = parsed.out or next_directory(_RUNS, name)
    if parsed.replace:
        RunDirectory.clear(out, name)
    config, before = parsed.config, recipe.presets[preset]
    record = {"recipe": name, "preset": preset, "seed": config.seed, "command": _again(name, preset, config, before)}
    record |= {"parameters": asdict(config)} | surroundings(config.device)
    return _carry_out(recipe, config, RunDirectory.create(out, record))


def _one_word_flags(words: list[str]) -> list[str]:
    """--flag=value is split, so that both ways of writing a flag are the same."""
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def _preset(recipe: Recipe[Any], words: list[str]) -> str:
    """The preset named on the command line, whose values the other flags change."""
    flags = _one_word_flags(words)
    chosen = [after for flag, after in pairwise(flags) if flag == "--preset"]
    return _named("preset", chosen[-1], recipe.presets) if chosen else "laptop"


def _options_type(recipe: Recipe[Any], preset: str) -> Any:
    """What can be written after the recipe's name: how to run it, then its own fields with the preset's values."""
    config = recipe.presets[preset]
    choice = Annotated[Literal[tuple(recipe.presets)], tyro.conf.arg(help="The values that the other flags start from.")]
    out = Annotated[Path | None, tyro.conf.arg(help="Where the run is written; by default the next runs/RECIPE-NUMBER.")]
    again = Annotated[
        bool, tyro.conf.arg(help="Replace an earlier run of the same recipe in --out."), tyro.conf.FlagCreatePairsOff
    ]
    own = Annotated[recipe.config_type, tyro.conf.arg(name="")]
    return make_dataclass(
        "options", [("preset", choice, preset), ("out", out, None), ("replace", again, False), ("config", own, config)]
    )


def _again(name: str, preset: str, config: Any, before: Any) -> str:
    """The command that runs this again."""
    words = ["gibbsite run", name, "--preset", preset]
    for field in fields(config):
        value = getattr(config, field.name)
        if value != getattr(before, field.name):
            text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{field.name.replace('_', '-')}", text]
    return " ".join(words)


def _carry_out(recipe: Recipe[Any], config: Any, directory: RunDirectory) -> int:
    status = 0
    try:
        recipe.run(config, directory, Bars(shown=sys.stderr.isatty()))
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except Exception:
        traceback.print_exc()
        print(f"gibbsite: the run failed; what was finished is kept in {directory.path}", file=sys.stderr)
        return 1
    if status:
        directory.record({"kind": "interrupted"})
    path = _write_report(recipe, config, directory)
    if status:
        parts = len(directory.results()) - 1
        print(f"gibbsite: interrupted; the report shows the {parts} finished results", file=sys.stderr)
    for key, value in recipe.findings(config, directory.results()).items():
        print(f"  {key.replace('_', ' ')}: {value:.4g}")
    print(f"wrote {path}")
    return status


def _write_report(recipe: Recipe[Any], config: Any, directory: RunDirectory) -> Path:
    record, results = directory.config(), directory.results()
    page = recipe.page(config, directory)
    if recipe.presets.get(record["preset"]) == replace(config, device="cpu"):  # nothing was changed: it can be checked
        expected = expectations(record["recipe"], record["preset"])
        page = replace(page, sections=[*page.sections, *checks(expected, recipe.findings(config, results))])
    interrupted = any(row.get("kind") == "interrupted" for row in results)
    return directory.write_report(render(page, record, interrupted=interrupted))
