"""The matrix product of the compiled loops against float64, with oneDNN and without."""

import numpy as np
import pytest

from gibbsite._fast import product


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (100, 784, 500), (64, 17, 33)])
def test_the_product_is_that_of_float64(shape, onednn, monkeypatch):
    monkeypatch.setattr(product, "_by_onednn", lambda: onednn and product.has_onednn())
    rows, terms, columns = shape
    g = np.random.default_rng(0)
    a, b = g.standard_normal((rows, terms)).astype(np.float32), g.standard_normal((terms, columns)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = 2 * terms * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    for right in (b, np.ascontiguousarray(b.T).T):
        out = np.empty((rows, columns), np.float32)
        product.multiply(a, right, out)
        assert (np.abs(out - exact) <= bound).all()
