"""The moving average against its closed form."""

from typing import final

import pytest
import torch

import gibbsite as gb


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_it_is_its_closed_form(decay, double, device):
    """m_n = decay^n w_0 + (1 - decay) sum_k decay^(n-k) w_k, to rounding: n additions of numbers below 3."""
    module = gb.models.RBM(3, 2, seed=0).to(device)
    average, seen = gb.learn.Average(module, decay), [module.weight.detach().clone()]
    source = torch.Generator().manual_seed(0)
    for _ in range(20):
        with torch.no_grad():
            module.weight.copy_(torch.randn(2, 3, generator=source))
        seen.append(module.weight.detach().clone())
        average.update()
    closed = decay**20 * seen[0] + (1 - decay) * sum(decay ** (20 - k) * seen[k] for k in range(1, 21))
    late = (1 - decay) * sum(decay ** (20 - k) * seen[k] for k in range(1, 21))  # the mutant: it forgets where it began
    bound = 100 * torch.finfo(torch.float64).eps
    assert (average.weights["weight"] - closed).abs().max() < bound
    assert (average.weights["weight"] - late).abs().max() > bound or decay == 0
    before = module.weight.detach().clone()
    other = gb.models.RBM(3, 2, seed=0).to(device)
    average.copy_to(other)
    assert torch.equal(other.weight, average.weights["weight"]) and torch.equal(module.weight, before)


def test_fit_updates_it_after_every_step():
    """At a loss whose gradient is 1, w_k = w_0 - rate k."""
    model = gb.models.Ising.lattice((2, 2), coupling=0.0, dtype=torch.float64)

    @final
    class Slope(gb.learn.Objective):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, data, *, seed):
            return gb.learn.Report(model.field.sum())

    objective, average = Slope(), gb.learn.Average(model, 0.8)
    optimiser = torch.optim.SGD(objective.parameters(), lr=0.1)
    gb.learn.fit(objective, torch.zeros(4, 1), optimiser=optimiser, steps=10, batch=2, seed=0, average=average)
    expected = 0.2 * sum(0.8 ** (10 - k) * -0.1 * k for k in range(1, 11))
    assert torch.allclose(average.weights["field"], torch.full((4,), expected, dtype=torch.float64), rtol=1e-12)


@pytest.mark.parametrize("decay", [1.0, -0.1, "0.9"])
def test_a_decay_that_makes_no_sense_is_refused(decay):
    with pytest.raises(ValueError, match="decay"):
        gb.learn.Average(gb.models.RBM(1, 1, seed=0), decay)
