"""What a command line says: names that suggest the nearest known one, flags, and the run that a path names."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, TypeVar

import tyro

from ..report import RunDirectory

RUNS = Path("runs")
_CONFIG = "config.json"
Options = TypeVar("Options")
Run = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]


class UsageError(Exception):
    """A command line that makes no sense, and what would."""


def named(what: str, name: str, known: Collection[str]) -> str:
    """name if it is known, else an error that suggests the nearest."""
    if name in known:
        return name
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"there is no {what} {name!r}; {hint}({what}s: {', '.join(known)})")


def one_word_flags(words: Iterable[str]) -> list[str]:
    """--flag=value is split, so that both ways of writing a flag are the same."""
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def parsed(options: type[Options], command: str, words: Sequence[str]) -> Options:
    """The options that the words after a command say; its help, and the end, where they ask for it or are wrong."""
    return tyro.cli(options, prog=f"gibbsite {command}", args=one_word_flags(words))


def opened(path: Path) -> RunDirectory:
    """The run in a directory, else an error that suggests the nearest run beside it or in runs/."""
    if (path / _CONFIG).is_file():
        return RunDirectory.open(path)
    there = {run.parent for folder in (path.parent, RUNS) for run in sorted(folder.glob(f"*/{_CONFIG}"))}
    near = get_close_matches(path.name, [run.name for run in there], n=1, cutoff=0.4)
    hint = f"; did you mean {next(run for run in sorted(there) if run.name == near[0])}?" if near else ""
    raise UsageError(f"{path}: expected a run directory with {_CONFIG}, which `gibbsite run` makes{hint}")
