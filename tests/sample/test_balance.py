"""Balancing functions: g(t) = t g(1/t), by their logarithms."""

import pytest
import torch

from gibbsite.sample import Barker, Maximum, Minimum, Power


@pytest.mark.parametrize("balance", [Power(), Barker(), Minimum(), Maximum()])
def test_balanced(balance, double):
    change = torch.linspace(-50, 50, 101)
    assert torch.allclose(balance.log(change), change + balance.log(-change), atol=1e-12)


def test_a_power_other_than_the_root_is_not_balanced():
    change = torch.tensor([1.0])
    assert not torch.allclose(Power(1.5).log(change), change + Power(1.5).log(-change))
    with pytest.raises(ValueError, match="temperature: expected a positive number"):
        Power(0.0)
