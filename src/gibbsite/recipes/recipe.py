"""What a recipe is: named presets of one frozen dataclass, what runs, what it found, and the page that shows it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Generic, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..report import Page, RunDirectory
from ..report.directory import Result
from .trained import Config, Trained

Advance = Callable[[int], None]


@final
class Bars:
    """Shows how far a run is: a bar for the whole, named after the part that is running."""

    def __init__(self, *, shown: bool):
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not shown, transient=True)

    @contextmanager
    def total(self, steps: int) -> Iterator[Callable[[str], Advance]]:
        """Gives a function that names the running part and returns what is to be told of its steps."""
        with self._bar:
            task = self._bar.add_task("starting", total=steps)

            def part(name: str) -> Advance:
                self._bar.update(task, description=name)
                return lambda steps: self._bar.advance(task, steps)

            yield part


@final
@dataclass(frozen=True)
class Recipe(Generic[Config]):
    """An experiment. `run` computes and records; `findings` and `page` only read what was recorded, so that a report
    can be made again, or made of an interrupted run. One that keeps a model says so in `trained`; its `run` can be called
    again after an interruption and goes on: `fit` with `out=directory.path`, and a seed of its own for every other part.
    """

    figure: str  # which figure or section of which paper
    summary: str
    presets: Mapping[str, Config]
    run: Callable[[Config, RunDirectory, Bars], None]
    findings: Callable[[Config, Sequence[Result]], dict[str, float]]
    page: Callable[[Config, RunDirectory], Page]
    trained: Trained[Config] | None = None

    @property
    def config_type(self) -> type[Config]:
        """The dataclass of its fields."""
        return type(next(iter(self.presets.values())))

    def restore(self, parameters: Mapping[str, Any]) -> Config:
        """The configuration that config.json recorded."""
        known = {field.name for field in fields(self.config_type)}  # pyright: ignore[reportArgumentType]
        if set(parameters) != known:
            odd = ", ".join(sorted(set(parameters) ^ known))
            raise ValueError(f"parameters: expected {', '.join(sorted(known))}; these differ: {odd}")
        return self.config_type(**{key: tuple(v) if isinstance(v, list) else v for key, v in parameters.items()})


def beyond(before: int, advance: Advance) -> Advance:
    """Tells only of steps after the first `before`, all of which `fit` tells at once when it goes on."""
    left = [before]

    def tell(steps: int) -> None:
        told, left[0] = steps - left[0], 0
        advance(told)

    return tell


def finished(run: Any) -> Any:
    """A trace or chain, unless Ctrl-C cut it short: a part is recorded whole or not at all."""
    if run.interrupted:
        raise KeyboardInterrupt
    return run


def at_least(config: Any, **least: int) -> None:
    """Refuses a field below its least value, or a tuple that is empty or holds such a value."""
    for name, low in least.items():
        value = getattr(config, name)
        values = value if isinstance(value, tuple) else (value,)
        if not values or min(values) < low:
            raise ValueError(f"{name}: expected at least {low}, got {value}")
