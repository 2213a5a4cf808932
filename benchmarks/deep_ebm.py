"""# How well do deep EBMs learn images at laptop size, and with how many temperatures can their likelihood be trusted?

Recipe `deep-ebm` (GWG paper, appendix I): U = log q + V, q independent pixels, V a residual network, learned by PCD with a
replay buffer, evaluated with averaged weights. The log-likelihood of the test images, in nats an image, from above by AIS
and from below by reverse AIS, each three standard errors further out. The images are smaller than the originals, or have
fewer grey levels, so that no number here can be compared with a published one. Gibbs makes as many steps before an update
as evaluate U as often as those of GWG; a run counts as diverged after 220 updates at the earliest. A path-auxiliary move
takes the one gradient that a step of GWG takes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from _harness import number, table, write

from gibbsite.recipes import RECIPES
from gibbsite.report import RunDirectory

_NAME = "deep-ebm"
_APART, _MINUTES = 1.0, 20.0  # targets: nats between the ends of an estimate that is trusted, CPU minutes of a whole run


def summary(run: RunDirectory) -> dict[str, Any]:
    """What a run directory says of the run, and what it found."""
    record, results = run.config(), run.results()
    kinds: dict[str, list[Any]] = {kind: [row for row in results if row.get("kind") == kind]
                                   for kind in ("learned", "diverged", "bracket")}  # fmt: skip
    findings = RECIPES[_NAME].findings(RECIPES[_NAME].restore(record["parameters"]), results)
    return {"record": record, **kinds, "findings": findings}


def section(run: dict[str, Any]) -> str:
    """One run: how it was made, its targets, and all its estimates; or where it diverged."""
    record, settings = run["record"], run["record"]["parameters"]
    versions = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    parts = [
        f"## {settings['data']}, learned with {settings['sampler']}, annealed by {_annealer(settings['moves'])}\n",
        f"`{record['command']}`\n",
        f"{record['started'][:10]}, {record['hardware']}; {versions}.\n",
        *(f"Diverged, at {row['why']}\n" for row in run["diverged"]),
    ]
    for about in run["learned"]:
        parts.append(
            f"{about['train']:,} training and {about['test']:,} test images of {about['sites']} pixels with "
            f"{about['states']} values each, of which independent pixels have {about['base']:.2f} nats; "
            f"{about['weights']:,} weights; {settings['updates']:,} updates of {about['steps']} steps of "
            f"{settings['sampler']} took {about['seconds']:.0f} CPU seconds.\n"
        )
        columns = ("temperatures", "test", "at least", "at most", "training", "ESS", "CPU seconds", "trusted")
        parts.append(table(("", "target", "measured", ""), _targets(run, about)))
        parts.append(table(columns, [_estimate(row) for row in run["bracket"]]))
    return "\n".join(parts)


def _annealer(moves: int) -> str:
    return "GWG" if moves == 1 else f"path-auxiliary moves of {moves} pixels"


def _targets(run: dict[str, Any], about: dict[str, Any]) -> list[list[str]]:
    last, apart = run["bracket"][-1], run["findings"]["its_ends_apart"]
    minutes = (about["seconds"] + sum(row["seconds"] for row in run["bracket"])) / 60
    trusted = "trusted" if last["trusted"] else "NOT trusted"
    return [
        ["nats between the ends, last estimate", f"{_APART:g}, trusted", f"{apart:.3g}, {trusted}",
         _met(last["trusted"] and apart <= _APART)],
        ["CPU minutes on one thread", f"{_MINUTES:g}", f"{minutes:.1f}", _met(minutes <= _MINUTES)],
    ]  # fmt: skip


def _estimate(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['temperatures']:,}",
        f"{row['value']:.3f} ± {row['stderr']:.3f}",
        *(f"{row[name]:.3f}" for name in ("lower", "upper", "train")),
        f"{row['ess']:.1f} of {row['n']}",
        number(row["seconds"]),
        "yes" if row["trusted"] else f"no: {row['why']}",
    ]


def _met(reached: bool) -> str:
    return "reached" if reached else "missed"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Writes results/deep_ebm.md and .json of finished runs of deep-ebm.")
    arguments.add_argument("run", nargs="+", type=Path, help="a run's directory")
    runs = [summary(RunDirectory.open(path)) for path in arguments.parse_args().run]
    page = "\n".join([(__doc__ or "").strip() + "\n", *map(section, runs)])
    write("deep_ebm", json.loads(json.dumps({"question": __doc__, "runs": runs})), page)
