"""A run that diverges stops, says why, and goes back; one that does not is left alone."""

import math
from typing import final

import pytest
import torch
from torch import nn

import gibbsite as gb
from gibbsite.learn.guard import Watch

L, S = gb.learn, gb.sample
QUICK = L.Guard(window=10, patience=3)


@final
class Failing(L.Objective):
    """(w - mean of the data)^2, whose loss, gradient, gap or potential goes wrong once `count` is in `steps`."""

    def __init__(self, kind="", steps=(), size=torch.nan):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.kind, self.steps, self.size = kind, steps, size

    def forward(self, data, *, seed):
        noise = torch.randn(3, generator=seed) / 10
        loss, gap = (self.weight - data.mean() - noise).square().sum(), torch.tensor(0.5)
        wrong = int(self.count) in self.steps and self.kind
        self.count += 1
        if wrong == "potential":
            gb.model.evaluate(gb.Potential(lambda x: x.sum(-1) * torch.nan, gb.Real(3)), torch.zeros(2, 3), start=True)
        loss = loss * self.size if wrong == "loss" else loss
        loss = loss + (self.weight.sum() * 0).sqrt() if wrong == "gradient" else loss
        return L.Report(loss, {"gap": torch.tensor(1e4) if wrong == "gap" else gap})


def run(objective, **more):
    data = torch.randn(64, generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.05)
    settings = {"steps": 60, "batch": 8, "seed": 0, "save_every": 10, "log_every": 5, "guard": QUICK, **more}
    return L.fit(objective, data, optimiser=optimiser, **settings)


CASES = {
    "loss": ("loss", (33,), torch.nan, 33),
    "infinite loss": ("loss", (33,), torch.inf, 33),
    "gradient": ("gradient", (33,), 0, 33),
    "potential": ("potential", (33,), 0, 33),
    "gap": ("gap", range(31, 60), 0, 33),  # at the third in a row
}


@pytest.mark.parametrize("case", CASES)
def test_a_diverging_run_stops_says_why_and_goes_back(case, tmp_path):
    quantity, steps, size, at = CASES[case]
    objective, sound = Failing(quantity, steps, size), Failing()
    with pytest.raises(L.Diverged, match=rf"step {at}: the {quantity} is .* Likely causes: .* of step 30") as caught:
        run(objective, out=tmp_path)
    assert (caught.value.step, caught.value.quantity, caught.value.good) == (at, quantity, 30)
    assert quantity == "gap" or not math.isfinite(caught.value.value)
    run(sound, steps=30)
    assert torch.equal(objective.weight, sound.weight) and int(objective.count) == 30, "bit for bit those of step 30"
    saved = L.checkpoint.Checkpoints(tmp_path / "checkpoint").read(30)
    assert torch.equal(saved.tensors["objective.weight"], objective.weight)
    assert '"event": "diverged"' in (tmp_path / "metrics.jsonl").read_text()


def test_without_the_guard_the_weights_would_be_lost():
    """The mutant: a loop that does not look has NaN weights after the same loss."""
    objective = Failing("loss", (33,))
    optimiser, source = torch.optim.SGD(objective.parameters(), lr=0.05), torch.Generator().manual_seed(0)
    for _ in range(60):
        optimiser.zero_grad()
        objective(torch.ones(8), seed=source).loss.backward()
        optimiser.step()
    assert objective.weight.isnan().all()


@pytest.mark.parametrize("case", CASES)
def test_a_retry_goes_on_with_a_smaller_step_and_another_seed_and_says_so(case):
    quantity, steps, size, at = CASES[case]
    objective = Failing(quantity, steps, size)
    if quantity == "gap":
        with pytest.raises(L.Diverged):  # it is wrong again each time
            run(objective, guard=L.Guard(window=10, patience=3, retries=2))
        return
    objective.register_buffer(
        "count", torch.zeros((), dtype=torch.long), persistent=False
    )  # not taken back: wrong only once
    rates = []
    fitted = run(objective, guard=L.Guard(window=10, patience=3, retries=1), schedule=lambda step: rates.append(step) or 1.0)
    (event,) = [line for line in fitted.metrics if line.get("event")]
    value = event.pop("value")
    assert not math.isfinite(value)
    expected = {"step": at, "event": "diverged", "quantity": quantity, "back_to": 30, "rate_factor": 0.5, "retry": 1}
    assert event == expected
    assert fitted.step == 60 and rates == [*range(at), *range(30, 60)]
    sound = Failing()
    run(sound)
    assert bool((objective.weight != sound.weight).all()), "another seed, a smaller step"


def test_retries_are_counted_and_the_steps_shrink_each_time():
    objective = Failing("loss", (33, 40, 50))
    objective.register_buffer("count", torch.zeros((), dtype=torch.long), persistent=False)
    fitted = run(objective, guard=L.Guard(retries=3, shrink=0.1))
    events = [line for line in fitted.metrics if line.get("event")]
    assert [event["retry"] for event in events] == [1, 2, 3]
    assert [event["rate_factor"] for event in events] == pytest.approx([0.1, 0.01, 0.001])
    again = Failing("loss", (33, 40, 50))
    again.register_buffer("count", torch.zeros((), dtype=torch.long), persistent=False)
    with pytest.raises(L.Diverged):
        run(again, guard=L.Guard(retries=2))


def test_the_rates_of_the_optimiser_are_given_back():
    objective = Failing()
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.05)
    L.fit(objective, torch.ones(8), optimiser=optimiser, steps=5, batch=8, seed=0, schedule=L.schedule.Cosine(5))
    assert optimiser.param_groups[0]["lr"] == 0.05


def test_an_exploding_energy_is_caught_long_before_it_overflows():
    """Langevin of a fixed step against an energy that sharpens: the usual failure, here with a large learning rate."""
    model = gb.Product(gb.distributions.Normal.standard(2), gb.models.MLP(gb.Real(2), (32, 32), seed=0))
    data = 0.1 * torch.randn(256, 2, generator=torch.Generator().manual_seed(1))
    start = 3 * torch.randn(64, 2, generator=torch.Generator().manual_seed(2))
    objective = L.Contrastive(model, L.Persistent(S.Langevin(0.3), start))
    optimiser = torch.optim.Adam(objective.parameters(), lr=0.03)
    with pytest.raises(L.Diverged) as caught:
        L.fit(objective, data, optimiser=optimiser, steps=5000, batch=64, seed=0, save_every=50)
    assert caught.value.quantity in ("gap", "potential", "loss", "gradient")
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert model(data).isfinite().all()


def test_a_sound_run_is_left_alone():
    """PCD of an RBM from zero on bits with strong structure: its gap starts at 0, and grows while it learns."""
    patterns = gb.Binary(40).uniform().sample(4, seed=0)
    data = patterns[torch.arange(400) % 4]
    model = gb.models.RBM(40, 20, seed=1)
    objective = L.Contrastive(model, L.Persistent(S.BlockGibbs(), model.space.uniform().sample(50, seed=2)))
    optimiser = torch.optim.Adam(objective.parameters(), lr=0.01)
    fitted = L.fit(objective, data, optimiser=optimiser, steps=500, batch=50, seed=3, log_every=10, guard=L.Guard(window=50))
    gaps = [abs(line["gap"]) for line in fitted.metrics]
    assert fitted.step == 500 and max(gaps) > 3 * gaps[0]


def watched(gaps, guard=None):
    """The number of the gap at which the guard gives the run up; None if it never does."""
    watch = Watch(guard or L.Guard())
    return next((number for number, gap in enumerate(gaps) if watch.wrong({"loss": gap, "gap": gap})), None)


def test_what_counts_as_an_explosion():
    noise = torch.randn(5000, generator=torch.Generator().manual_seed(0)).tolist()
    assert watched(noise) is None, "a gap around 0"
    assert watched([step / 10 for step in range(5000)]) is None, "one that grows steadily"
    assert watched([0.01 * value for value in noise[:1000]] + [9.0] * 1000) is None, "one that is small after all"
    assert watched([1e4] * 1000) is None, "one that is large from the start, and stays so"
    assert watched(noise[:500] + [1e4] * 19 + noise) is None, "a short burst"
    assert watched(noise[:500] + [1e4] * 20) == 519
    assert watched([1.05**step for step in range(2000)]) is not None
    assert watched([1.05**step for step in range(2000)]) < 400
    assert watched(noise[:100] + [1e4] * 200, L.Guard(window=50, patience=5)) == 104
    slow = [math.exp(step / 100) for step in range(3000)]
    assert watched(slow) is None, "it takes its median along, e^2 in 200 steps"
    assert watched(slow, L.Guard(most=50.0)) == math.ceil(100 * math.log(50)) + 19
    assert watched([40.0] * 19 + [1.0] * 10 + [60.0] * 19 + [1.0] * 10, L.Guard(most=50.0)) is None, "short bursts"
    assert watched([*noise[:100], math.nan]) == watched([*noise[:100], -math.inf]) == 100


@pytest.mark.parametrize(
    "field",
    [{"factor": 1.0}, {"floor": -1.0}, {"window": 0}, {"patience": 0}, {"retries": -1}, {"shrink": 0}, {"most": 0.0}],
)
def test_a_guard_that_makes_no_sense_is_refused(field):
    with pytest.raises(ValueError, match=next(iter(field))):
        L.Guard(**field)
