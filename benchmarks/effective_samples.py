"""# Which discrete kernel makes most effective samples, a second and an evaluation of U?

Effective sample size is taken by ArviZ (bulk, all chains together) from `gibbsite.sample.trace`, of three statistics: the
Hamming distance to a random state (the GWG paper's), the absolute magnetisation |mean of 2x - 1| (Ising) or the number of
ones (others), and U. The "worst" of the statistics that are shown is what the plots draw. One row is one kernel on one
model, on one pinned thread; seconds are CPU time of the whole run of all chains, evaluations are those of U and of its
gradient that the kernel states, of all chains (a redrawn site counts as one evaluation, a block as one). Steps of unlike
kernels are unlike, so that each is thinned to at most 1,000 draws a chain: an ESS near 16,000 means that more draws would
have found more. ESS below 100, or an R-hat above 1.05, is marked with a star (a hollow bar in the plot): the chains had not
met, and the number says little more than how many chains there are. A row is run for about 3 seconds, and one that would
have a star is run again, from other draws, for 12.

Chains start in equilibrium, so that no kernel pays for a bad start: from exact draws on the FHMM, else from uniform states
after 2,000 steps of Swendsen-Wang (Ising) or block Gibbs (RBM). Tuned there, by `gibbsite.sample.adapt`: the step size of
discrete Langevin to an acceptance of 0.574, the length of the path by the squared distance jumped an evaluation.
On the Ising models all kernels run compiled loops; on the RBM GWG and block Gibbs do (a sweep of single sites is left out
there); the rest runs in torch, as everything does on the FHMM.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from _harness import RESULTS, child, heading, machine, number, table, write

import gibbsite as gb
from gibbsite.sample import (
    MH,
    BlockGibbs,
    DiscreteLangevin,
    Gibbs,
    GibbsSweep,
    Informed,
    PathAuxiliary,
    SwendsenWang,
    Wolff,
    adapt,
)

CHAINS = 16
THETAS = (0.15, 0.2, 0.22)
SECONDS = (3.0, 12.0)  # of kept steps, a kernel and model: the second where the first is not enough
DRAWS = 1000
PATHS = (3, 9, 31, 61)


def statistics(model: gb.Model) -> Callable[[torch.Tensor], torch.Tensor]:
    """Hamming distance to a random state; |magnetisation| or the number of ones."""
    other = model.space.uniform().sample(1, seed=99)[0]

    def values(x: torch.Tensor) -> torch.Tensor:
        away = (x != other).flatten(1).sum(1).double()
        ones = x.flatten(1).sum(1).double()
        total = (2 * ones / other.numel() - 1).abs() if isinstance(model, gb.models.Ising) else ones
        return torch.stack((away, total), -1)

    return values


def kernels(model: gb.Model, x: torch.Tensor) -> dict[str, gb.sample.Kernel]:
    """The kernels that the model admits, tuned."""
    langevin = adapt.step_size(lambda e: MH(DiscreteLangevin(e)), model, x, target=0.574, steps=200, seed=1, start=0.1)
    path = adapt.best(lambda n: MH(PathAuxiliary(n)), PATHS, model, langevin.x, steps=30, seed=2)
    found = {
        "Gibbs, random scan": Gibbs(),
        "block Gibbs": BlockGibbs(),
        "GWG": MH(Informed()),
        f"path-auxiliary, {path.kernel.proposal.length} flips": path.kernel,
        f"discrete Langevin, step {langevin.kernel.proposal.step_size:.3g}": langevin.kernel,
    }
    if isinstance(model, gb.models.Ising):
        found |= {"Gibbs, sweep": GibbsSweep(), "Wolff": Wolff(), "Swendsen-Wang": SwendsenWang()}
    return found


def timed(kernel: gb.sample.Kernel, model: gb.Model, x: Any, **how: Any) -> tuple[gb.sample.Trace, float]:
    """A trace and the CPU time it took."""
    began = time.process_time()
    run = gb.sample.trace(kernel, model, x, statistic=statistics(model), progress=False, **how)
    return run, time.process_time() - began


def measure(kernel: gb.sample.Kernel, model: gb.Model, x: torch.Tensor) -> dict[str, Any]:
    """One row: a short run sets the number of steps, and the row is run longer if its chains have not met."""
    timed(kernel, model, x, steps=4, thin=2, seed=3)  # compiles
    steps, (_, spent) = 2, timed(kernel, model, x, steps=2, thin=2, seed=3)
    while spent < 0.2:
        steps *= 4
        _, spent = timed(kernel, model, x, steps=steps, thin=steps, seed=3)
    row: dict[str, Any] = {}
    for seed, seconds in enumerate(SECONDS, 4):
        row = summary(kernel, model, x, max(20, int(seconds / spent * steps)), seed)
        if reliable(row):
            break
    return row


def summary(kernel: gb.sample.Kernel, model: gb.Model, x: torch.Tensor, steps: int, seed: int) -> dict[str, Any]:
    """So many steps of a kernel, as a row."""
    run, seconds = timed(kernel, model, x, steps=steps, thin=max(1, steps // DRAWS), seed=seed)
    values = torch.cat((run.values, run.u.double()[..., None]), -1)
    return {
        "steps": run.steps,
        "acceptance": float(run.acceptance.mean()),
        "seconds": seconds,
        "evaluations": (run.cost.evaluations + run.cost.gradients) * len(x),
        "ess": gb.diagnose.ess(values).tolist(),
        "rhat": gb.diagnose.rhat(values).tolist(),
    }


def equilibrium(model: gb.Model) -> torch.Tensor:
    """Where the chains start."""
    if isinstance(model, gb.models.FHMM):
        return model.sample_exact(CHAINS, seed=0)
    kernel = SwendsenWang() if isinstance(model, gb.models.Ising) else BlockGibbs()
    x = model.space.uniform().sample(CHAINS, seed=0)
    return gb.run(kernel, model, x, steps=2000, thin=2000, seed=0, progress=False).state.x


def models() -> dict[str, gb.Model]:
    ising = {f"Ising 40 x 40, theta = {theta:g}": gb.models.Ising.from_theta(40, theta=theta) for theta in THETAS}
    return ising | {
        "random RBM, 200 visible, 100 hidden": gb.models.RBM.random(200, 100, variance=0.01, seed=0),
        "FHMM, 50 times, 5 chains": gb.models.FHMM.random(length=50, factors=5, seed=0),
    }


def all_rows() -> list[dict[str, Any]]:
    rows = []
    for title, model in models().items():
        x = equilibrium(model)
        for name, kernel in kernels(model, x).items():
            rows.append({"model": title, "kernel": name, **measure(kernel, model, x)})
    return rows


def reliable(row: dict[str, Any]) -> bool:
    return min(_clean(row["ess"])) >= 100 and max(_clean(row["rhat"])) <= 1.05


def _clean(values: Sequence[float]) -> list[float]:
    return [0.0 if math.isnan(v) else v for v in values]


def _row(row: dict[str, Any]) -> list[str]:
    worst, star = min(_clean(row["ess"])), "" if reliable(row) else "*"
    cells = [row["kernel"], f"{row['steps']:,}", f"{row['acceptance']:.2f}"]
    rates = [*(v / row["seconds"] for v in _clean(row["ess"])), 1e6 * worst / row["evaluations"], worst]
    return [*cells, *(number(rate) + star for rate in rates), f"{max(_clean(row['rhat'])):.2f}"]


def page(record: dict[str, Any]) -> str:
    parts = [heading(record), f"Load average when it started: {record['load']:.2f}. {CHAINS} chains.\n"]
    parts.append("![effective samples by kernel](effective_samples.svg)\n")
    columns = ["kernel", "steps", "acceptance", "ESS/s, Hamming", "ESS/s, magnetisation or ones", "ESS/s, U",
               "worst ESS per million evaluations", "worst ESS of the run", "worst R-hat"]  # fmt: skip
    for title in dict.fromkeys(row["model"] for row in record["rows"]):
        rows = [_row(row) for row in record["rows"] if row["model"] == title]
        parts.append(f"## {title}\n\n" + table(columns, rows))
    return "\n".join(parts)


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A column a model; the worst ESS a second above, an evaluation below; hollow where it is not reliable."""
    from matplotlib.figure import Figure

    titles = list(dict.fromkeys(row["model"] for row in rows))
    figure = Figure(figsize=(4.2 * len(titles), 6.4), layout="constrained")
    axes = figure.subplots(2, len(titles), sharey="col", squeeze=False)
    for column, title in enumerate(titles):
        part = [row for row in rows if row["model"] == title][::-1]
        for axis, cost, label in zip(axes[:, column], ("seconds", "evaluations"), ("second", "evaluation of U or gradient")):
            for height, row in enumerate(part):
                fill = "tab:blue" if reliable(row) else "none"
                axis.barh(height, max(1e-12, min(_clean(row["ess"])) / row[cost]), color=fill, edgecolor="tab:blue")
            axis.set(xscale="log", xlabel=f"effective samples per {label}")
            axis.set_yticks(range(len(part)), [row["kernel"] for row in part], fontsize=8)
        axes[0, column].set_title(title, fontsize=10)
    figure.savefig(path)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that the run is pinned to")
    given = arguments.parse_args()
    if given.child:
        Path(given.child).write_text(json.dumps(all_rows()))
        return
    load = os.getloadavg()[0]
    rows = child(__file__, "one thread", given.cpu)
    record = {"question": __doc__, "machine": machine(), "load": load, "rows": rows}
    write("effective_samples", record, page(record))
    draw(rows, RESULTS / "effective_samples.svg")


if __name__ == "__main__":
    main()
