"""Every example in a docstring, and every Python block of README, CONTRIBUTING and the pages in docs/, runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import gibbsite

ROOT = Path(__file__).parent.parent
MODULES = sorted(m.name for m in pkgutil.walk_packages(gibbsite.__path__, "gibbsite."))


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S)


PAGES = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(name, n, block) for name in ("README.md", "CONTRIBUTING.md") for n, block in enumerate(blocks(name))]
BLOCKS += [(name, 0, "\n".join(blocks(name))) for name in PAGES]  # a page is one program


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize(("name", "number", "block"), BLOCKS, ids=[f"{b[0]}-{b[1]}" for b in BLOCKS])
def test_blocks_run(name, number, block, capsys):
    exec(compile(block, f"{name} block {number}", "exec"), {"__name__": "block"})


def test_the_quick_start_is_short_and_says_what_it_prints(capsys):
    (start,) = [block for name, number, block in BLOCKS if name == "README.md" and number == 0]
    assert len([line for line in start.splitlines() if line.strip()]) <= 20
    exec(compile(start, "README.md", "exec"), {"__name__": "block"})
    printed = capsys.readouterr().out
    assert "ess_bulk" in printed and "r_hat" in printed
    assert float(printed.splitlines()[-1]) < 1e-10


def test_every_class_named_in_the_readme_exists():
    text = (ROOT / "README.md").read_text()
    table = text[text.index("| method |") : text.index("## What is measured")]
    for name in re.findall(r"`(?:gb\.)?([A-Za-z_][A-Za-z_.]*)", table):
        homes = [gibbsite, gibbsite.sample, gibbsite.models]
        assert any(_reach(home, name.split(".")) for home in homes), name


def test_every_helper_of_contributing_has_the_signature_it_shows():
    rows = re.findall(r"^\| (`\w+\.[^|]*`) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    shown = [call for row in rows for call in re.findall(r"`([\w.]+)\((.*?)\)`", row)]
    assert len(shown) > 15
    for name, arguments in shown:
        module, function = name.rsplit(".", 1)
        signature = inspect.signature(getattr(importlib.import_module(f"gibbsite.{module}"), function))
        assert not _differs(signature, arguments.split(", ")), name
    assert _differs(signature, ["value"]) and _differs(signature, ["name", "value"])  # the mutants: one short, swapped


def _differs(signature, arguments):
    """Whether the arguments, with their defaults if shown, are not parameters in order that include all required ones."""
    order = {name: p.default for name, p in signature.parameters.items()}
    names = [argument.split("=")[0] for argument in arguments]
    wrong = [a for a in arguments if "=" in a and str(order.get(a.split("=")[0])) != a.split("=")[1]]
    missing = {name for name, default in order.items() if default is inspect.Parameter.empty} - set(names)
    return wrong or missing or names != [name for name in order if name in names]


def _reach(home, parts):
    for part in parts:
        home = getattr(home, part, None)
    return home is not None
