"""Deep energy-based models of images: a residual network learned by PCD with GWG, its likelihood bracketed by AIS."""

import time
from dataclasses import replace

import torch

from .. import exact
from ..algebra import Geometric, Tilt
from ..estimate import Estimate, bracket, linear, log_likelihood
from ..learn import Average, Contrastive, Diverged, Reservoir, fit
from ..learn.schedule import Warmup
from ..random import substream
from ..report import RunDirectory
from ..report.directory import Result
from ..sample import MH, Gibbs, Informed, PathAuxiliary, anneal
from ..sample.kernel import Kernel
from .deep_ebm_images import DeepEBM, Problem, model, problem, shape, train_states, untrained
from .deep_ebm_page import findings, page
from .recipe import Advance, Bars, Recipe, finished
from .trained import Trained

_ENUMERABLE = 1 << 16  # states up to which log Z is summed too
_WALKS = 3  # what a bracket takes, in annealing steps: there, at the model, and back


def sampler(config: DeepEBM, images: Problem) -> tuple[Kernel, int]:
    """What moves the chains, and its steps before an update.

    A step of GWG evaluates U and its gradient, which counts as two evaluations; one of Gibbs evaluates U at every other
    value of a site.
    """
    if config.sampler == "GWG":
        return MH(Informed()), config.steps
    return Gibbs(), max(1, round(2 * config.steps / (images.space.states - 1)))


def annealer(config: DeepEBM) -> Kernel:
    """What moves annealed chains: GWG, or for several pixels a step its successor, which still takes one gradient."""
    return MH(Informed()) if config.moves == 1 else MH(PathAuxiliary(config.moves))


def run(config: DeepEBM, directory: RunDirectory, bars: Bars) -> None:
    """Learns the model, then brackets its log Z with ever more temperatures; goes on where an earlier call was cut short."""
    images = problem(config)
    trained, longest = model(config, images), max(config.temperatures)
    with bars.total(config.updates + _WALKS * sum(config.temperatures) + longest) as part:
        if not learned(config, images, trained, directory, part("learning")):
            return
        done = [row["temperatures"] for row in directory.results() if row.get("kind") == "bracket"]
        for place, temperatures in enumerate(config.temperatures):
            advance = part(f"AIS, {temperatures} temperatures")
            if temperatures in done:
                advance(_WALKS * temperatures)
            else:
                seed = substream(config.seed, 10 + place)
                log_z, row = bracketed(config, images, trained, temperatures, seed, advance)
                directory.save_log_z(log_z)
                directory.record(row)
        if not directory.samples("annealed"):
            annealed(config, trained, longest, directory, part("drawing samples"))


def learned(config: DeepEBM, images: Problem, trained: Tilt, directory: RunDirectory, advance: Advance) -> bool:
    """Learns, and leaves the average of the weights in the model; False if it diverged."""
    (kernel, steps), before = sampler(config, images), directory.results()
    start = trained.base.sample(config.slots, seed=substream(config.seed, 2))
    chains = Reservoir(kernel, start, config.batch, steps)
    objective = Contrastive(trained, chains).to(config.device)
    average = Average(trained.potential, config.average)
    optimiser, began = torch.optim.Adam(trained.potential.parameters(), config.rate), time.process_time()
    options = {"batch": config.batch, "seed": config.seed, "schedule": Warmup(config.warmup), "average": average,
               "out": directory.path, "log_every": max(1, config.updates // 100),
               "save_every": max(1, config.updates // 20), "progress": advance}  # fmt: skip
    try:
        finished(fit(objective, images.data, optimiser=optimiser, steps=config.updates, **options))
    except Diverged as error:
        directory.record({"kind": "diverged", "why": str(error)})
        return False
    average.copy_to(trained.potential)
    directory.save_model(trained.eval().requires_grad_(False))
    if not any(row.get("kind") == "learned" for row in before):
        seconds = None if before else time.process_time() - began  # not known of a run that was taken up again
        directory.record(_about(config, images, trained) | {"steps": steps, "seconds": seconds})
        shown = {"data": images.test[:: max(1, len(images.test) // config.shown)], "buffer": chains.x}
        directory.save_samples("images", {name: x[: config.shown] for name, x in shown.items()})
    return True


def _about(config: DeepEBM, images: Problem, trained: Tilt) -> Result:
    """What was learned from, and how likely the base alone finds the test images."""
    base = log_likelihood(trained.base, images.test.to(config.device), _KNOWN)
    return {
        "kind": "learned", "sites": images.space.sites, "states": images.space.states,
        "train": len(images.train), "test": len(images.test), "base": base.value,
        "weights": sum(parameter.numel() for parameter in trained.potential.parameters()),
    }  # fmt: skip


_KNOWN = Estimate(0.0, 0.0, 0.0, 0.0, ess=1.0, n=1)  # log Z of a distribution


def bracketed(
    config: DeepEBM, images: Problem, trained: Tilt, temperatures: int, seed: int, advance: Advance
) -> tuple[Estimate, Result]:
    """log Z, and the log-likelihood of test images and of as many training ones, by annealing from the base and back."""
    began = time.process_time()
    log_z = bracket(
        trained, base=trained.base, kernel=annealer(config), data=images.train, temperatures=temperatures,
        chains=config.chains, seed=seed, progress=advance,
    )  # fmt: skip
    seconds = time.process_time() - began
    spread = images.train[:: max(1, len(images.train) // len(images.test))][: len(images.test)]
    test, train = (log_likelihood(trained, part.to(config.device), log_z) for part in (images.test, spread))
    row = {"kind": "bracket", "temperatures": temperatures, "train": train.value, "seconds": seconds}
    row |= {name: getattr(test, name) for name in ("value", "stderr", "lower", "upper", "ess", "n", "trusted", "why")}
    if images.space.states**images.space.sites <= _ENUMERABLE:
        row["exact"] = test.value + log_z.value - exact.log_z(trained).item()
    return log_z, row


def annealed(config: DeepEBM, trained: Tilt, temperatures: int, directory: RunDirectory, advance: Advance) -> None:
    """Draws samples by chains annealed from the base, as the paper shows them."""
    x = trained.base.sample(config.shown, seed=substream(config.seed, 3))
    path, u = Geometric(trained.base, trained), None
    for _, state in anneal(path, annealer(config), linear(temperatures)[1:], x, seed=substream(config.seed, 4)):
        x, u = state.x, state.u
        advance(1)
    assert u is not None
    directory.save_samples("annealed", {"x": x, "u": u})


_PAPER = DeepEBM(
    shrink=(1, 1), levels=256, features=64, blocks=8, steps=40, slots=10_000, batch=100, updates=50_000, rate=0.0001,
    warmup=10_000, average=0.999, temperatures=(300, 1000, 3000, 10_000, 30_000, 100_000, 300_000), chains=100, shown=50,
)  # fmt: skip
RECIPE = Recipe(
    figure="GWG paper, appendix I: figures 14 to 20, deep EBMs of images and AIS estimates of their likelihood",
    summary="deep EBMs of images: PCD with GWG, replay buffer, and log-likelihoods bracketed by AIS",
    presets={
        "smoke": DeepEBM(
            data="digits", shrink=(1, 1), features=16, blocks=2, steps=5, slots=500, batch=100, updates=250, rate=0.005,
            warmup=50, average=0.97, temperatures=(20, 100), chains=60, shown=10,
        ),
        "laptop": DeepEBM(),
        "laptop-faces": DeepEBM(data="frey_faces", moves=8, temperatures=(30, 100, 300, 1000, 5000)),
        "paper": _PAPER,
        "paper-faces": replace(_PAPER, data="frey_faces", slots=1000),
    },
    run=run,
    findings=findings,
    page=page,
    trained=Trained(untrained, train_states, kernel=annealer, image=shape),
)  # fmt: skip
