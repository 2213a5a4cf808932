"""What a preset's findings should be, from expected.toml: value, tolerance, source, hardware."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import final

from ..report import Section, Table, number


@final
@dataclass(frozen=True)
class Expectation:
    """A finding should be within `tolerance` of `value`; `source` says where both come from."""

    value: float
    tolerance: float
    source: str
    hardware: str

    def holds(self, found: float) -> bool:
        """Whether the finding is as expected; one that is not a number is not."""
        return abs(found - self.value) <= self.tolerance


def expectations(recipe: str, preset: str) -> dict[str, Expectation]:
    """The expected findings of a recipe's preset, none if the file has none."""
    table = tomllib.loads(files("gibbsite.recipes").joinpath("expected.toml").read_text(encoding="utf-8"))
    return {name: Expectation(**row) for name, row in table.get(recipe, {}).get(preset, {}).items()}


def checks(expected: Mapping[str, Expectation], found: Mapping[str, float]) -> list[Section]:
    """A section that compares findings with what was expected of them; none if nothing was."""
    rows = []
    for name, expectation in expected.items():
        value = found.get(name)
        verdict = "not measured" if value is None else "yes" if expectation.holds(value) else "NO"
        wanted = number(expectation.value, None) + f" ± {expectation.tolerance:g}"
        rows.append([name.replace("_", " "), number(value), wanted, verdict, expectation.source])
    caption = "Tolerances are set so that a correct run fails a row about once in a million."
    return [Section("Checks", [Table(("finding", "found", "expected", "within", "why"), rows, caption)])] if rows else []
