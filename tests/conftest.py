"""Options and fixtures of every test: --device, where data lie, and the global random states (torch, numpy) held still."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("GIBBSITE_DATA", str(BESIDE))


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="the device that tests run on, for example cuda")


@pytest.fixture
def device(request):
    return torch.device(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def data():
    """Where data sets lie that no dependency brings along; a test without them is skipped, for it may not fetch them."""
    given = os.environ.get("GIBBSITE_DATA")
    if not given:
        pytest.skip(f"GIBBSITE_DATA is not set and {BESIDE} does not exist: the data sets are not here")
    return Path(given)


def global_random_states() -> dict[str, object]:
    """The global generators that numerical code could draw from; not Python's own, of which tyro's cache takes numbers."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "torch": bytes(torch.get_rng_state()),
        "torch.cuda": [bytes(state) for state in cuda],
        "numpy": (name, keys.tobytes(), *rest),
    }


@pytest.fixture(autouse=True)
def global_random_state_stays():
    before = global_random_states()
    yield
    moved = [name for name, state in global_random_states().items() if state != before[name]]
    assert not moved, f"global random states moved during the test: {moved}"


@pytest.fixture
def double():
    """float64 as torch's default type, for claims of exactness."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
