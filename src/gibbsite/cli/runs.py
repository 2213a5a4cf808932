"""Commands that compute: run a recipe, go on with an interrupted run, make a report again."""

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, final

import torch
import tyro

from ..datasets import DatasetError
from ..learn import CheckpointError, Diverged
from ..recipes import APPLICATIONS, RECIPES, Bars, Recipe
from ..recipes.expected import checks, expectations
from ..report import RunDirectory, RunDirectoryError, next_directory, render, surroundings
from . import tag
from .words import RUNS, Run, UsageError, named, one_word_flags, opened, parsed

_INTERRUPTED = 130

_RUN_HELP = """usage: gibbsite run RECIPE [--preset NAME] [--out DIRECTORY] [options of the recipe]

recipes:
{recipes}

`gibbsite run RECIPE --help` lists a recipe's options.
"""


@final
@dataclass(frozen=True)
class _Report:
    """Make a run's report.html again from its saved metrics and samples."""

    run: Run
    """The run's directory."""


@final
@dataclass(frozen=True)
class _Resume:
    """Go on with a training run that was interrupted or killed, from its last good checkpoint.

    It ends in the same bits as a run that was never stopped.
    """

    run: Run
    """The run's directory."""


def recipe_of(directory: RunDirectory) -> tuple[Recipe[Any], Any]:
    """The recipe of a run, and the configuration it was run with."""
    config, known = directory.config(), RECIPES | APPLICATIONS
    recipe = known[named("recipe", str(config.get("recipe")), known)]
    try:
        return recipe, recipe.restore(config.get("parameters", {}))
    except (TypeError, ValueError) as error:
        raise RunDirectoryError(f"{directory.path}: written by another version of the recipe: {error}") from error


def report(words: list[str]) -> int:
    """gibbsite report RUN."""
    directory = opened(parsed(_Report, "report", words).run)
    if directory.config().get("recipe") == tag.TAG:
        with RunDirectory.held(directory.path):
            print(f"wrote {tag.report(directory)}")
        return 0
    recipe, config = recipe_of(directory)
    with RunDirectory.held(directory.path):
        print(f"wrote {write_report(recipe, config, directory)}")
    return 0


def resume(words: list[str]) -> int:
    """gibbsite resume RUN."""
    directory = opened(parsed(_Resume, "resume", words).run)
    if directory.config().get("recipe") == tag.TAG:
        return _go_on(directory, tag.resume)
    recipe, config = recipe_of(directory)
    if recipe.trained is None:
        again = directory.config().get("command", "gibbsite run")
        raise UsageError(f"{directory.path}: this recipe keeps no checkpoints; run it again: {again}")
    return _go_on(directory, lambda directory: _carry_out(recipe, config, directory))


def _go_on(directory: RunDirectory, carry_out: Callable[[RunDirectory], int]) -> int:
    with RunDirectory.held(directory.path):
        if any(row.get("kind") == "finished" for row in directory.results()):
            print(f"{directory.path}: finished; nothing is left to do")
            return 0
        directory.forget("interrupted")
        return carry_out(directory)


def run(words: list[str]) -> int:
    """gibbsite run RECIPE."""
    if not words or words[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:18}{recipe.summary}" for name, recipe in RECIPES.items())
        print(_RUN_HELP.format(recipes=listed), end="")
        return 0 if words else 2
    name = named("recipe", words[0], RECIPES)
    return start(name, RECIPES[name], f"run {name}", words[1:])


def start(name: str, recipe: Recipe[Any], command: str, words: list[str]) -> int:
    """Runs a recipe in a new directory, with the options that the words after `gibbsite command` say."""
    preset = _preset(recipe, words)
    try:
        options = tyro.cli(
            _options_type(recipe, preset),
            prog=f"gibbsite {command}",
            description=f"{recipe.config_type.__doc__}\n\nRedraws: {recipe.figure}.",
            args=one_word_flags(words),
        )
        torch.empty(0, device=options.config.device)
    except (ValueError, RuntimeError, AssertionError) as error:  # the configuration's own checks; torch's of the device
        raise UsageError(f"{command}: {str(error).splitlines()[0]}") from error
    out = options.out or next_directory(RUNS, name)
    config, before = options.config, recipe.presets[preset]
    record = {"recipe": name, "preset": preset, "seed": config.seed, "command": _again(command, preset, config, before)}
    record |= {"parameters": asdict(config)} | surroundings(config.device)
    with RunDirectory.held(out):
        if options.replace:
            RunDirectory.clear(out, name)
        return _carry_out(recipe, config, RunDirectory.create(out, record))


def _preset(recipe: Recipe[Any], words: list[str]) -> str:
    """The preset named on the command line, whose values the other flags change."""
    flags = one_word_flags(words)
    chosen = [after for flag, after in pairwise(flags) if flag == "--preset"]
    return named("preset", chosen[-1], recipe.presets) if chosen else "laptop"


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


def _again(command: str, preset: str, config: Any, before: Any) -> str:
    """The command that runs this again."""
    words = ["gibbsite", command, "--preset", preset]
    for field in fields(config):
        value = getattr(config, field.name)
        if value != getattr(before, field.name):
            text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{field.name.replace('_', '-')}", text]
    return " ".join(words)


def _carry_out(recipe: Recipe[Any], config: Any, directory: RunDirectory) -> int:
    began, status = time.monotonic(), 0
    try:
        recipe.run(config, directory, Bars(shown=sys.stderr.isatty()))
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except (CheckpointError, Diverged, DatasetError):
        raise
    except Exception:
        traceback.print_exc()
        print(f"gibbsite: the run failed; what was finished is kept in {directory.path}", file=sys.stderr)
        return 1
    directory.record({"kind": "interrupted" if status else "finished", "seconds": time.monotonic() - began})
    path = write_report(recipe, config, directory)
    if status:
        parts = sum("kind" in row for row in directory.results()) - 1
        further = f"; `gibbsite resume {directory.path}` goes on with it" if recipe.trained else ""
        print(f"gibbsite: interrupted; the report shows the {parts} finished results{further}", file=sys.stderr)
    for key, value in recipe.findings(config, directory.results()).items():
        print(f"  {key.replace('_', ' ')}: {value:.4g}")
    print(f"wrote {path}")
    return status


def write_report(recipe: Recipe[Any], config: Any, directory: RunDirectory) -> Path:
    """Makes the report of what was recorded so far."""
    record, results = directory.config(), directory.results()
    page = recipe.page(config, directory)
    if recipe.presets.get(record["preset"]) == replace(config, device="cpu"):  # nothing was changed: it can be checked
        expected = expectations(record["recipe"], record["preset"])
        page = replace(page, sections=[*page.sections, *checks(expected, recipe.findings(config, results))])
    interrupted = any(row.get("kind") == "interrupted" for row in results)
    return directory.write_report(render(page, record, interrupted=interrupted))
