"""`gibbsite score`: U(x) of states under the model that a run trained, and their log-likelihood."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import torch
import tyro

from ..estimate import log_likelihood
from ..model import Distribution, NotFinite, evaluate
from .arrays import check_new, read_states, write_arrays
from .logz import described
from .model import loaded
from .words import Run, UsageError, parsed

_SHOWN, _BATCH = 10, 1024


@final
@dataclass(frozen=True)
class _Score:
    """U(x) = log p(x) + log Z of each state in a file, and the mean log-likelihood if the run's log Z is bracketed."""

    run: Run
    """The run's directory."""
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """States (n, *event): a .npy file, or a .npz file in which they are named x or alone."""
    out: Path | None = None
    """A new .npz or .npy file for U(x) of every state; without it the first ones are printed."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


def score(words: list[str]) -> int:
    """gibbsite score RUN DATA."""
    options = parsed(_Score, "score", words)
    out = None if options.out is None else check_new(options.out)
    run = loaded(options.run, options.device)
    x = read_states(options.data, run.model).to(options.device)
    try:
        u = torch.cat([evaluate(run.model, part, start=True).double() for part in x.split(_BATCH)])
    except NotFinite as error:
        raise UsageError(f"score {options.run} {options.data}: {error}") from error
    if out is not None:
        write_arrays(out, {"u": u})
        print(f"wrote {out}")
    else:
        _show(u)
    print(f"mean U: {float(u.mean()):.4f} over {len(u)} states")
    if isinstance(run.model, Distribution):
        print("which is the mean log-likelihood, for log Z is 0")
    elif (log_z := run.directory.log_z()) is None:
        print(f"log-likelihood: unknown, for log Z is; `gibbsite logz {options.run}` brackets it")
    else:
        print(described(log_likelihood(run.model, x, log_z), "mean log-likelihood"))
    return 0


def _show(u: torch.Tensor) -> None:
    print("state  U(x)")
    for number, value in enumerate(u[:_SHOWN].tolist()):
        print(f"{number:5d}  {value:.6g}")
    if len(u) > _SHOWN:
        print(f"  ...  {len(u) - _SHOWN} more, which --out FILE.npz writes")
