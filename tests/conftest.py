"""Options and fixtures of every test: --device, and torch's global random state held still."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="the device that tests run on, for example cuda")


@pytest.fixture
def device(request):
    return torch.device(request.config.getoption("--device"))


@pytest.fixture(autouse=True)
def global_random_state_stays():
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state()), "torch's global random state moved during the test"


@pytest.fixture
def double():
    """float64 as torch's default type, for claims of exactness."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
