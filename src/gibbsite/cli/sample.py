"""`gibbsite sample`: states drawn from the model that a run trained."""

import io
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import torch
import tyro
from torch import Tensor

from .. import random
from ..diagnose import ess, rhat
from ..files import atomic
from ..model import Distribution, evaluate
from ..report import RunDirectory, plots
from ..sample import trace
from ..space import Discrete
from .arrays import check_new, write_arrays
from .model import Loaded, loaded
from .words import Run, UsageError, parsed

_AGREED = 1.01  # the R-hat up to which chains count as agreeing (Vehtari et al., 2021)
_PICTURED = 400  # states in a picture, at most


@final
@dataclass(frozen=True)
class _Sample:
    """Draw states from the model that a run trained: the last state of each of n chains, or exact draws if it has them.

    Chains start at independent sites fitted to the data. Their R-hat and ESS over the last half of the steps are printed.
    """

    run: Run
    """The run's directory."""
    n: Annotated[int, tyro.conf.arg(aliases=["-n"])]
    """How many states."""
    steps: int = 2000
    """Steps of each chain."""
    seed: int = 0
    """Where all random numbers start."""
    out: Path | None = None
    """A new .npz file (x, u: the states and U of each) or .npy file (the states); by default one in the run's samples/."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


def sample(words: list[str]) -> int:
    """gibbsite sample RUN -n N."""
    options = parsed(_Sample, "sample", words)
    for name, least in (("n", 1), ("steps", 2), ("seed", 0)):
        if getattr(options, name) < least:
            raise UsageError(f"--{name}: expected at least {least}, got {getattr(options, name)}")
    given = None if options.out is None else check_new(options.out)
    run = loaded(options.run, options.device)
    picture = None if run.trained.image is None else run.trained.image(run.config)
    if picture is not None and given is not None and given.with_suffix(".png").exists():
        raise UsageError(f"--out {given}: {given.with_suffix('.png')} exists, and is not overwritten; choose another")
    with nullcontext() if given else RunDirectory.held(options.run):
        try:
            x = _drawn(run, options)
            u = evaluate(run.model, x)
        except (ValueError, TypeError) as error:
            raise UsageError(f"sample {options.run}: {error}") from error
        out = given or _next(run.directory.path)
        write_arrays(out, {"x": x, "u": u})
        print(f"wrote {out}: {len(x)} states, seed {options.seed}")
        if picture is not None:
            levels = run.model.space.states - 1 if isinstance(run.model.space, Discrete) else 1
            print(f"wrote {_drawing(x.view(-1, *picture) / levels, out.with_suffix('.png'))}")
    return 0


def _drawn(run: Loaded, options: _Sample) -> Tensor:
    source = random.generator(options.seed, torch.device(options.device))
    if isinstance(run.model, Distribution):
        return run.model.sample(options.n, seed=source)
    if run.trained.kernel is None:
        raise UsageError(f"{options.run}: its recipe names no kernel, so that its model cannot be drawn from here")
    start, kernel, kept = run.base().sample(options.n, seed=source), run.trained.kernel(run.config), options.steps // 2
    sizes = {"steps": kept, "warmup": options.steps - kept, "seed": source}
    found = trace(kernel, run.model, start, statistic=lambda x: x.flatten(1).double().mean(1), **sizes)
    if found.interrupted:
        raise KeyboardInterrupt
    _diagnosed(found.u, kept)
    return found.state.x


def _diagnosed(u: Tensor, kept: int) -> None:
    """Says whether U is the same in all chains, and in both halves of what was kept."""
    if kept < 4:
        print("too few steps to tell whether the chains agree")
        return
    agreed, effective = float(rhat(u)), float(ess(u))
    verdict = "the chains agree" if agreed <= _AGREED else f"above {_AGREED}: take more --steps"
    print(f"R-hat of U {agreed:.3f} ({verdict}); ESS {effective:.0f} of {u.numel()} states in the last {kept} steps")


def _next(folder: Path) -> Path:
    (folder / "samples").mkdir(exist_ok=True)
    number = 1
    while (path := folder / "samples" / f"drawn-{number}.npz").exists():
        number += 1
    return path


def _drawing(images: Tensor, path: Path) -> Path:
    content = io.BytesIO()
    plots.images({"": images[:_PICTURED].cpu().numpy()}).savefig(content, format="png", dpi=150)
    with atomic(path) as file:
        file.write(content.getvalue())
    return path
