"""The checks that entrances share: numbers and float tensors. What the entrances say is in test_entrances.py."""

import numpy as np
import pytest
import torch

from gibbsite import check


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), torch.tensor(2.0, requires_grad=True)])
def test_numbers_of_any_kind_are_floats(value):
    got = check.number(value, "a", above=1, most=2)
    assert type(got) is float and got == 2.0


@pytest.mark.parametrize("value", [True, "2", None, 2j, float("nan"), float("inf"), torch.ones(2), [2.0]])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match="a: expected a finite number, got"):
        check.number(value, "a")


def test_a_repeated_name_in_a_shape_is_one_size():
    assert check.floats([[1, 2], [3, 4]], "a", ("n", "n")).dtype == torch.get_default_dtype()
    with pytest.raises(ValueError, match=r"a: expected finite floats of shape \(n, n\), got float32 \(1, 2\)"):
        check.floats([[1.0, 2.0]], "a", ("n", "n"))
    with pytest.raises(ValueError, match="got bool"):
        check.floats([True], "a")
