"""What `fit` shows, tells and refuses."""

import io
import sys

import pytest
import torch

import gibbsite as gb

from .test_guard import Failing

L, S, M = gb.learn, gb.sample, gb.models
BITS = gb.Binary(9).uniform().sample(32, seed=0)


def pcd(model=None):
    model = model or M.Ising.lattice(3, coupling=0.1)
    return L.Contrastive(model, L.Persistent(S.GibbsSweep(), BITS[:8]))


def fit(objective=None, data=BITS, **more):
    objective = objective or pcd()
    settings = {"optimiser": torch.optim.SGD(objective.parameters(), lr=0.01), "steps": 6, "batch": 8, "seed": 0}
    return L.fit(objective, data, **{**settings, **more})


class Returning(L.Objective):
    """Returns what it is told to make of a loss."""

    def __init__(self, make):
        super().__init__(gb.Binary(9))
        self.model, self.make = M.Ising.lattice(3, coupling=0.1), make

    def forward(self, data, *, seed):
        return self.make(L.pseudo_likelihood(self.model, data))


NAN_IN_DATA = torch.zeros(32, 2).index_fill(0, torch.tensor(30), torch.nan)
grey = torch.rand(32, 9, generator=torch.Generator().manual_seed(0))
MISTAKES = {
    "no objective": (lambda: fit(M.RBM(9, 2)), "objective: expected a gibbsite.learn.Objective, got RBM"),
    "a loss that is no report": (
        lambda: fit(Returning(lambda loss: loss)),
        r"objective\(data\): expected a gibbsite.learn.Report, got Tensor; return gibbsite.learn.Report\(loss\)",
    ),
    "a loss an example": (
        lambda: fit(Returning(lambda loss: L.Report(loss.expand(8)))),
        r"loss: expected a scalar with a graph to what is learned, got shape \(8,\) with one",
    ),
    "a loss without a graph": (lambda: fit(Returning(lambda loss: L.Report(loss.detach()))), r"got shape \(\) without one"),
    "no optimiser": (lambda: fit(optimiser=0.1), "optimiser: expected a torch.optim.Optimizer, got float; for example"),
    "an optimiser of something else": (
        lambda: fit(optimiser=torch.optim.SGD(M.RBM(9, 2).parameters())),
        r"optimiser: expected parameters of the objective, got one of shape \(2, 9\)",
    ),
    "no steps": (lambda: fit(steps=0), "steps: expected a positive integer, got 0"),
    "a batch of nothing": (lambda: fit(batch=0), "batch: expected a positive integer"),
    "a batch that is too large": (lambda: fit(batch=33), "batch: expected at most the 32 examples there are, got 33"),
    "a seed that is no number": (lambda: fit(seed=None), "seed: expected an integer"),
    "saving never": (lambda: fit(save_every=0), "save_every: expected a positive integer"),
    "logging never": (lambda: fit(log_every=0), "log_every: expected a positive integer"),
    "keeping none": (lambda: fit(keep=0), "keep: expected a positive integer"),
    "clipping to nothing": (lambda: fit(clip=0), "clip: expected a positive number"),
    "a schedule that is a number": (lambda: fit(schedule=0.1), "schedule: expected a function such as"),
    "a class of schedules": (lambda: fit(schedule=L.schedule.Warmup), "schedule: .* got the class Warmup"),
    "a guard that is a number": (lambda: fit(guard=3), "guard: expected a gibbsite.learn.Guard, got int"),
    "a listener that is a number": (lambda: fit(listener=3), "listener: expected a function such as gibbsite.learn.Tensor"),
    "an average that is a number": (lambda: fit(average=0.99), "average: expected a gibbsite.learn.Average, got float"),
    "no data": (lambda: fit(data=BITS[:0]), "data: expected tensors of one length, at least 1"),
    "data that are no tensor": (
        lambda: fit(data={"x": BITS}),
        "data: expected a tensor, several tensors or a gibbsite.learn.Data",
    ),
    "data of another space": (lambda: fit(data=BITS[:, :8]), r"data: expected integers in \[0, 2\) of shape \(\*, 9\)"),
    "spins": (lambda: fit(data=2 * BITS - 1), "spins s of -1 and 1 are bits"),
    "lists": (lambda: fit(data=BITS.tolist()), "got a list of list; make a tensor of it"),
    "one state": (lambda: fit(data=BITS[0]), r"data: expected states of Binary\(shape=\(9,\)\), shape \(examples, 9\)"),
    "labels": (lambda: fit(data=(BITS, torch.zeros(32))), "got 2 tensors; this objective takes no labels"),
    "labels in rows": (lambda: fit(data=L.Rows(BITS, torch.zeros(32))), "this objective takes no labels"),
    "grey values": (lambda: fit(data=grey), "data: expected integers in"),
    "numbers outside": (lambda: L.Binarised(2 * grey), r"probabilities: expected floats in \[0, 1\]"),
    "NaN among probabilities": (lambda: L.Binarised(grey * torch.nan), r"probabilities: expected floats in \[0, 1\]"),
    "NaN": (
        lambda: fit(L.Contrastive(M.MLP(gb.Real(2)), L.FromData(S.MALA(0.1))), NAN_IN_DATA),
        r"data: expected finite floats of shape \(\*, 2\), got nan at \[30, 0\]",
    ),
    "NaN where nobody knows the space": (
        lambda: fit(Failing(), NAN_IN_DATA),
        r"data: expected finite numbers, got nan at \[30, 0\]",
    ),
    "tensors of two lengths": (lambda: L.Rows(BITS, BITS[:3]), r"data: expected tensors of one length, .* \[3, 32\]"),
    "rows that are no tensor": (lambda: L.Rows([1, 2]), "data: expected tensors with one example a row, got list"),
    "a callable without a space": (
        lambda: L.Contrastive(lambda x: x.sum(-1), L.FromData(S.Gibbs())),
        "a plain callable needs space=",
    ),
    "a kernel for negatives": (lambda: L.Contrastive(M.RBM(9, 2), S.Gibbs()), "negatives: expected a gibbsite.learn"),
    "a proposal for a kernel": (lambda: L.FromData(S.Informed()), "write MH"),
    "a kernel's class": (lambda: L.Persistent(S.Gibbs, BITS), "write Gibbs()"),
    "no chains": (lambda: L.Persistent(S.Gibbs(), BITS[:0]), "x: expected states of 1 chain or more"),
    "more chains than slots": (lambda: L.Reservoir(S.Gibbs(), BITS, 33), "chains: expected at most the 32 slots"),
    "a restart that is no probability": (
        lambda: L.Persistent(S.Gibbs(), BITS, restart=2.0),
        "restart: expected a probability",
    ),
    "a restart from nowhere": (
        lambda: L.Persistent(S.Gibbs(), BITS, restart=0.1),
        "start: expected a gibbsite.Distribution",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    call, message = MISTAKES[mistake]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_an_int_seed_and_a_schedule_are_all_there_is_to_a_run():
    """Two runs are equal bit for bit; another seed is another run; the seed of the chains' start does not matter to it."""
    first, second, third = pcd(), pcd(), pcd()
    assert fit(first).metrics == fit(second).metrics
    assert all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values()))
    fit(third, seed=1)
    assert not torch.equal(first.model.field, third.model.field)


def test_chains_given_in_another_integer_type_keep_it():
    objective = L.Contrastive(M.RBM(9, 2, seed=0), L.Persistent(S.BlockGibbs(), BITS[:8].long()))
    fit(objective)
    assert objective.negatives.x.dtype == torch.int64


def test_every_epoch_reads_every_example_once_in_a_new_order():
    from gibbsite.learn.order import Order
    from gibbsite.processes import Group

    order = Order(10, 4, 0, Group())
    read = torch.cat([order.next() for _ in range(10)])
    epochs = read.view(4, 10)
    assert all(sorted(epoch.tolist()) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch.tolist()) for epoch in epochs}) == 4
    parts = [Order(10, 4, 0, Group(rank, 2)) for rank in range(2)]
    both = torch.stack([torch.cat([part.next() for _ in range(10)]).view(10, 2) for part in parts], -1)
    assert torch.equal(both.flatten(), read), "two processes share what one reads"
    assert not torch.equal(parts[0].draws.get_state(), parts[1].draws.get_state())


def test_binarised_data_have_their_probabilities():
    """Means of 4,000 draws of 9 bits, each within 5.4 standard errors: 1e-6 in all."""
    data, source = L.Binarised(grey[:1].double()), torch.Generator().manual_seed(0)
    mean = torch.stack([data.rows(torch.tensor([0]), source)[0].double() for _ in range(4000)]).mean(0)
    error = (grey[0].double() * (1 - grey[0].double()) / 4000).sqrt()
    assert ((mean - grey[0]).abs() < 5.4 * error).all()
    assert not ((mean - (grey[0] > 0.5).double()).abs() < 5.4 * error).all()  # the mutant: bits by a threshold


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_is_shown_on_a_terminal_and_nowhere_else(shown, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return shown

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    fit()
    assert ("learning" in screen.getvalue() and "6/6" in screen.getvalue()) == shown
    assert shown or screen.getvalue() == ""


def test_a_function_is_told_the_steps_made():
    told = []
    fit(progress=told.append)
    assert sum(told) == 6


def test_metrics_are_means_since_the_last_line_and_told_to_a_listener():
    every, some, told = fit(log_every=1).metrics, fit(log_every=4, listener=told_to(told := [])).metrics, told
    assert [line["step"] for line in some] == [4, 6] and told == some
    for key in ("loss", "gap", "gradient"):
        assert some[0][key] == pytest.approx(sum(line[key] for line in every[:4]) / 4)


def told_to(lines):
    return lambda line: lines.append(line)


def test_tensorboard_is_an_extra_that_the_error_names(monkeypatch, tmp_path):
    monkeypatch.setattr("gibbsite.learn.tensorboard.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"install gibbsite\[tensorboard\]"):
        L.TensorBoard(tmp_path)


def test_tensorboard_shows_what_metrics_say(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fitted = fit(listener=L.TensorBoard(tmp_path), log_every=2)
    events = EventAccumulator(str(tmp_path)).Reload()
    shown = {(event.step, event.value) for event in events.Scalars("loss")}
    assert shown == {(line["step"], float(torch.tensor(line["loss"]))) for line in fitted.metrics}
