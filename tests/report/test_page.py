"""Numbers as a table shows them."""

import math

import pytest

from gibbsite.report.page import MINUS, MISSING, number


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.23456, 0.0123, "1.235 ± 0.012"),
        (-0.5, 0.25, f"{MINUS}0.50 ± 0.25"),
        (1234.5, 30.0, "1234 ± 30"),
        (2.0, None, "2"),
        (2.0, math.nan, "2"),
        (2.0, 0.0, "2"),
        (None, 1.0, MISSING),
        (math.nan, None, MISSING),
        (-1e-7, None, f"{MINUS}1e{MINUS}07"),
    ],
)
def test_number(value, error, shown):
    assert number(value, error) == shown
