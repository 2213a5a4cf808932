"""# How much memory do PCD, annealed importance sampling and `fit` take, beside their peers?

The contestants of those benchmarks, each in a process of its own on one thread: what the process holds once its data and
weights are there (mostly the libraries that were imported), how much more it holds at most during its first call, in which
compiled loops are loaded too, and how much more than after that during a second one, which finds its memory at hand. Read
from Linux's resident set and its high-water mark.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _harness import child, heading, machine, table, write

SCRIPTS = ("pcd_rbm", "ais_rbm", "fit_overhead")
_MIB = 1024  # of the kibibytes that Linux counts in


def _kibibytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def measured(script: str, contest: int, contestant: int) -> dict[str, Any]:
    """What one contestant takes, in this process."""
    found = importlib.import_module(script).contests()[contest]
    one = found.contestants[contestant]
    held = _kibibytes("VmRSS")
    return {"title": found.title, "name": one.name, "held": held, "first": _more(one.work), "second": _more(one.work)}


def _more(work: Callable[[], Any]) -> int:
    """How far the resident set rises during a call."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    before = _kibibytes("VmRSS")
    work()
    return _kibibytes("VmHWM") - before


def sizes() -> dict[str, list[int]]:
    """How many contestants each contest of each script has; counted in a child, for the scripts set up torch."""
    return {name: [len(c.contestants) for c in importlib.import_module(name).contests()] for name in SCRIPTS}


def _page(record: dict[str, Any]) -> str:
    rows = [
        [row["title"], row["name"], *(f"{row[key] / _MIB:.1f}" for key in ("held", "first", "second"))]
        for row in record["rows"]
    ]
    columns = ["work", "", "held, MiB", "more in the first call", "more in the second"]
    return heading(record) + "\n" + table(columns, rows)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that it is pinned to")
    given = arguments.parse_args()
    if given.child:
        asked = json.loads(os.environ["MEMORY_OF"])
        Path(given.child).write_text(json.dumps(sizes() if asked is None else measured(*asked)))
        return
    rows = [
        _asked(given.cpu, [script, contest, contestant])
        for script, counts in _asked(given.cpu, None).items()
        for contest, count in enumerate(counts)
        for contestant in range(count)
    ]
    record = {"question": __doc__, "machine": machine(), "rows": rows}
    write("memory", record, _page(record))


def _asked(cpu: int, what: list[Any] | None) -> Any:
    os.environ["MEMORY_OF"] = json.dumps(what)
    return child(sys.argv[0], "one thread", cpu)


if __name__ == "__main__":
    main()
