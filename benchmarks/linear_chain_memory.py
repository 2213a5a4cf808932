"""# How much memory do log Z of linear chains and its gradient take at most, beside pytorch-crf?

Each in a process of its own on one thread, in which nothing ran before but two chains of 3 positions, so that compiled loops
are loaded and no memory is at hand that other work left: how far the resident set rises, at its highest, during one call.
Inputs are there before; gradients are results, and count.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from _harness import child, heading, machine, table, write

SIZES = ((64, 100, 50), (32, 1000, 20), (256, 100, 50), (8, 100, 200))
NAMES = ("gibbsite", "gibbsite, the loops alone", "pytorch-crf")


def measured(B: int, T: int, K: int, name: str) -> dict[str, Any]:
    """KiB that one call takes, in this process."""
    from linear_chain import gradient, size, ways
    from memory import _more

    gradient(*ways(2, 3, K)[name])()
    work = gradient(*ways(B, T, K)[name])
    return {"title": size(B, T, K), "name": name, "more": _more(work)}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that it is pinned to")
    given = arguments.parse_args()
    if given.child:
        Path(given.child).write_text(json.dumps(measured(*json.loads(os.environ["MEMORY_OF"]))))
        return
    rows = []
    for size in SIZES:
        for name in NAMES:
            os.environ["MEMORY_OF"] = json.dumps([*size, name])
            rows.append(child(sys.argv[0], "one thread", given.cpu))
    cells = [[row["title"], row["name"], f"{row['more'] / 1024:.1f}"] for row in rows]
    page = heading({"question": __doc__, "machine": machine()}) + "\n" + table(["work", "", "MiB"], cells)
    write("linear_chain_memory", {"question": __doc__, "machine": machine(), "rows": rows}, page)


if __name__ == "__main__":
    main()
