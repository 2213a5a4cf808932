"""Small training runs that tests start, kill, and start again in processes of their own."""

import os
import signal
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import gibbsite as gb

L, S = gb.learn, gb.sample
STEPS = 240


def rbm():
    """PCD with compiled block Gibbs, Adam, a moving average, a schedule, clipping, and bits drawn anew."""
    model = gb.models.RBM(30, 10, seed=0)
    grey = torch.rand(64, 30, generator=torch.Generator().manual_seed(1))
    objective = L.Contrastive(model, L.Persistent(S.BlockGibbs(), model.space.uniform().sample(16, seed=2), steps=2))
    return objective, {
        "data": L.Binarised(grey),
        "optimiser": torch.optim.Adam(objective.parameters(), lr=0.01),
        "average": L.Average(model, 0.99),
        "schedule": L.schedule.Warmup(20) * L.schedule.Cosine(STEPS),
        "clip": 1.0,
    }


def ising():
    """A reservoir with restarts under compiled sweeps, SGD with momentum, epochs that end within a mini-batch."""
    model = gb.models.Ising.lattice(4, coupling=0.1)
    start = model.space.uniform()
    data = gb.models.Ising.lattice(4, coupling=0.4).space.uniform().sample(37, seed=1)
    reservoir = L.Reservoir(S.GibbsSweep(), start.sample(21, seed=2), 8, restart=0.1, start=start)
    objective = L.Contrastive(model, reservoir)
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.01, momentum=0.9)
    return objective, {"data": data, "optimiser": optimiser}


def real():
    """CD in the real plane with MALA, in double precision, RMSprop, a guard that looks on."""
    model = gb.Product(gb.distributions.Normal.standard(2), gb.models.MLP(gb.Real(2), (8,), seed=0)).double()
    data = torch.randn(50, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    objective = L.Contrastive(model, L.FromData(S.MALA(0.3), steps=2))
    optimiser = torch.optim.RMSprop(objective.parameters(), lr=0.001)
    return objective, {"data": data, "optimiser": optimiser, "guard": L.Guard(window=20, retries=1)}


RUNS = {"rbm": rbm, "ising": ising, "real": real}


def _forget_generator(session, start):
    session.generator = torch.Generator().manual_seed(3)


def _forget_chains(session, start):
    session.objective.load_state_dict({**session.objective.state_dict(), "negatives.x": start["negatives.x"]})


def _forget_optimiser(session, start):
    session.optimiser.state.clear()


def _forget_average(session, start):
    session.average.weights = {key: value.detach().clone() for key, value in session.average.module.named_parameters()}


def _forget_order(session, start):
    session.order = type(session.order)(len(session.data), session.order.batch, 3, session.group)


MUTANTS = {
    "generator": _forget_generator,
    "chains": _forget_chains,
    "optimiser": _forget_optimiser,
    "average": _forget_average,
    "order": _forget_order,
}


def train_together(rank: int, name: str, folder: Path, pause: float = 0.0):
    """The command as each of several processes runs it, with chains of its own; a pause after each step leaves time."""
    train(name, folder, learned=f"learned{rank}.safetensors", progress=lambda steps: time.sleep(pause))


def train(
    name: str,
    folder: Path,
    mutant: str = "",
    steps: int = STEPS,
    save_every: int = 5,
    learned: str = "learned.safetensors",
    **more,
):
    """The command that is killed and run again: it trains in the folder, then writes what was learned beside it."""
    objective, settings = RUNS[name]()
    if mutant:
        _spoil(MUTANTS[mutant], {key: value.clone() for key, value in objective.state_dict().items()})
    fitted = L.fit(
        objective, **settings, steps=steps, batch=12, seed=5, out=folder, save_every=save_every, log_every=2, **more
    )
    tensors = {
        **objective.state_dict(),
        **{f"mean.{k}": v for k, v in (fitted.average.weights if fitted.average else {}).items()},
    }
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / learned)


def _spoil(mutant, start):
    """From now on, a resume forgets something."""
    resume = L.session.Session._resume

    def forgetful(session, checkpoints, steps):
        resume(session, checkpoints, steps)
        if checkpoints.steps():
            mutant(session, start)

    L.session.Session._resume = forgetful


def train_slowly(name: str, folder: Path):
    """Trains so that a signal comes while it does, with SIGINT handled as a shell's commands have it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    train(name, folder, save_every=1000, progress=lambda steps: time.sleep(0.005))


def press_twice(folder: Path):
    """Presses Ctrl-C twice within the first step, which would take a minute."""

    def forward(data, *, seed):
        os.kill(os.getpid(), signal.SIGINT)
        (folder / "first").touch()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    objective, settings = ising()
    objective.forward = forward
    try:
        L.fit(objective, **settings, steps=2, batch=2, seed=0)
    except KeyboardInterrupt:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        (folder / "second").touch()


def outcome(folder: Path) -> dict[str, torch.Tensor | str]:
    """All that a finished run leaves: what was learned, the last checkpoint's tensors, and the lines of metrics."""
    checkpoints = sorted((folder / "checkpoint").glob("step-*.safetensors"))
    return {
        **{f"learned.{key}": value for key, value in load_file(folder / "learned.safetensors").items()},
        **load_file(checkpoints[-1]),
        "metrics": (folder / "metrics.jsonl").read_text(),
    }


def differences(one: dict, two: dict) -> list[str]:
    """The names of what differs, in any bit."""

    def same(a, b):
        return torch.equal(a, b) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a == b

    return sorted(key for key in one.keys() | two.keys() if key not in one or key not in two or not same(one[key], two[key]))
