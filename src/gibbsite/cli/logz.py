"""`gibbsite logz`: log Z of the model that a run trained, from below and from above."""

from dataclasses import dataclass
from typing import final

from ..estimate import Estimate, bracket
from ..report import RunDirectory
from .model import loaded
from .words import Run, UsageError, parsed


@final
@dataclass(frozen=True)
class _LogZ:
    """Bracket log Z of a run's model: annealing from a base to the model bounds it from below, the way back from above.

    Prints both ends and whether they can be trusted, or why not, and keeps them in the run for `gibbsite score`.
    """

    run: Run
    """The run's directory."""
    temperatures: int = 1000
    """Steps of annealing; more bring the ends closer."""
    chains: int = 100
    """Chains in each direction."""
    widest: float = 1.0
    """Ends further apart than this are not trusted."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


def logz(words: list[str]) -> int:
    """gibbsite logz RUN."""
    options = parsed(_LogZ, "logz", words)
    run = loaded(options.run, options.device)
    sizes = {name: getattr(options, name) for name in ("temperatures", "chains", "widest", "seed")}
    with RunDirectory.held(options.run):
        try:
            estimate = bracket(run.model, base=run.base(), data=run.data(), **sizes)
        except (ValueError, TypeError) as error:
            raise UsageError(f"logz {options.run}: {error}") from error
        run.directory.save_log_z(estimate)
    print(described(estimate, "log Z"))
    return 0


def described(estimate: Estimate, name: str) -> str:
    """The estimate in three lines: value, ends, trust."""
    trust = "trusted" if estimate.trusted else f"NOT trusted: {estimate.why}"
    width = len(name)
    return (
        f"{name}: {estimate.value:.4f} ± {estimate.stderr:.4f}\n"
        f"{'ends':>{width}}: at least {estimate.lower:.4f}, at most {estimate.upper:.4f}\n"
        f"{'':>{width}}  {trust}; ESS {estimate.ess:.1f} of {estimate.n} chains in the worse direction"
    )
