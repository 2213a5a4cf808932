"""# How do time and memory grow with sites, with chains and with states?

CPU time per site update (sweeps: every site of every chain once) or per step and chain (Gibbs-With-Gradients: one proposed
flip), on square lattices that wrap around, on one pinned thread, through `gibbsite.run` with the last state kept. The time
is the slope between a shorter and a longer run, so that it is that of a step; what a run costs before its first step is a
column of its own. It is CPU time because other work on the machine stretches the clock. Bytes a chain are what a `State`
holds; peak memory is the highest resident size of a process that does nothing else, with all that the loops work on, and
the last column what of it was there before the model was made.

`run` calls a compiled loop for at most 100 steps at a time; GWG's makes its weights anew at each call, which takes time in
proportion to the sites and is most of what its steps cost on large lattices.

Potts models have no compiled loop: their kernels run in torch, which pays for its calls at small sizes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _harness import child, heading, machine, number, table, write

import gibbsite as gb
from gibbsite.sample import MH, BlockGibbs, GibbsSweep, Informed

ISING = {
    "GibbsSweep, couplings vary": GibbsSweep(),
    "BlockGibbs, couplings vary": BlockGibbs(),
    "BlockGibbs, one coupling": BlockGibbs(),
    "GWG": MH(Informed()),
}
SITES = ((32, 1_024), (100, 10_000), (316, 99_856), (1000, 1_000_000))
POTTS = {"BlockGibbs, Potts": BlockGibbs(), "GWG, Potts": MH(Informed())}
_SECONDS = 0.2


def ising(side: int, name: str) -> gb.models.Ising:
    uniform = gb.models.Ising.lattice(side, coupling=0.3)
    if "vary" not in name:
        return uniform
    weights = 0.3 * torch.randn(len(uniform.edges), generator=torch.Generator().manual_seed(0))
    return gb.models.Ising.from_edges(side * side, uniform.edges, weights)


def measure(make: Callable[[], gb.Model], kernel: gb.sample.Kernel, chains: int, work: int, most: int) -> dict[str, Any]:
    """Seconds a step and before the first; `work` is how many updates a step makes in one chain."""
    before = _peak()
    model = make()
    x = model.space.uniform().sample(chains, seed=0)

    def spent(steps: int) -> tuple[float, Any]:
        began = time.process_time()
        chain = gb.run(kernel, model, x, steps=steps, thin=steps, seed=1, progress=False)
        return time.process_time() - began, chain.state

    spent(2)  # compiles
    short, steps = 2, 4
    base = min(spent(short)[0] for _ in range(2))
    long, state = spent(steps)
    while long - base < _SECONDS and steps < most:
        steps *= 4
        long, state = spent(steps)
    second = max(long - base, 1e-9) / (steps - short)
    return {
        "sites": model.space.sites,
        "chains": chains,
        "step": second,
        "update": second / (chains * work),
        "start": max(0.0, base - short * second),
        "state": sum(part.numel() * part.element_size() for part in _tensors(state)) / chains,
        "peak": _peak(),
        "before": before,
    }


def _tensors(state: Any) -> list[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        return [state]
    return [] if state is None else [tensor for part in state for tensor in _tensors(part)]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cases() -> list[tuple[str, str, int, int, int]]:
    """Table, kernel, side, chains, states."""
    found = [("sites", name, side, 32, 2) for name in ISING for side, _ in SITES]
    found += [("chains", name, 40, chains, 2) for name in ISING for chains in (1, 8, 32, 64, 256, 1024)]
    found += [("states", name, 40, 32, states) for name in POTTS for states in (2, 4, 8, 16, 32)]
    return found


def case(number: int) -> dict[str, Any]:
    kind, name, side, chains, states = cases()[number]
    kernel = (ISING | POTTS)[name]
    work = 1 if "GWG" in name else side * side
    if kind == "states":
        couple = gb.models.Potts.lattice
        made = measure(lambda: couple(side, states=states, coupling=0.5), kernel, chains, work, 200)
    else:
        made = measure(lambda: ising(side, name), kernel, chains, work, 100_000)
    return {"table": kind, "kernel": name, "states": states, **made}


def all_rows() -> list[dict[str, Any]]:
    """A process a case, so that each has a peak of its own."""
    rows = []
    for index in range(len(cases())):
        command = [sys.executable, __file__, "--case", str(index)]
        rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
    return rows


def page(record: dict[str, Any]) -> str:
    parts = [heading(record), f"Load average when it started: {record['load']:.2f}.\n"]
    titles = {
        "sites": "Sites (32 chains, 2 states)",
        "chains": "Chains (1,600 sites, 2 states)",
        "states": "States (Potts, 1,600 sites, 32 chains)",
    }
    columns = ["kernel", "sites", "chains", "states", "ns an update or proposal", "ms a step, all chains",
               "ms before the first", "state, bytes a chain", "peak MiB", "of it before"]  # fmt: skip
    for kind, title in titles.items():
        rows = [_cells(row) for row in record["rows"] if row["table"] == kind]
        parts.append(f"## {title}\n\n" + table(columns, rows))
    return "\n".join(parts)


def _cells(row: dict[str, Any]) -> list[str]:
    counts = [f"{row['sites']:,}", str(row["chains"]), str(row["states"])]
    times = [number(1e9 * row["update"]), number(1e3 * row["step"]), number(1e3 * row["start"])]
    return [row["kernel"], *counts, *times, f"{row['state']:,.0f}", f"{row['peak']:,.0f}", f"{row['before']:,.0f}"]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by the script itself")
    arguments.add_argument("--case", type=int, help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that the run is pinned to")
    given = arguments.parse_args()
    if given.case is not None:
        print(json.dumps(case(given.case)))
        return
    if given.child:
        Path(given.child).write_text(json.dumps(all_rows()))
        return
    load = os.getloadavg()[0]
    rows = child(__file__, "one thread", given.cpu)
    record = {"question": __doc__, "machine": machine(), "load": load, "rows": rows}
    write("scaling", record, page(record))


if __name__ == "__main__":
    main()
