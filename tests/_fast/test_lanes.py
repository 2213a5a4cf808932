"""Arithmetic on rows of 8 doubles: each operation on each lane, other rows left alone."""

import numpy as np
from numba import njit

from gibbsite._fast.lanes import LANES, add_product, add_scaled, rows, set_largest, set_product


@njit
def scaled(out, i, a, j, w):
    add_scaled(out, i, a, j, w)


@njit
def products(out, i, a, j, b, k):
    set_product(out, i, a, j, b, k)
    add_product(out, i + 1, a, j, b, k)


@njit
def largest(out, i, a, j):
    set_largest(out, i, a, j)


def drawn(n):
    return [np.random.default_rng(seed).normal(size=(5, LANES)) for seed in range(n)]


def test_rows_are_what_they_say():
    out, a, b = drawn(3)
    want = out.copy()
    want[1] += 0.3 * a[4]
    scaled(out, 1, a, 4, 0.3)
    assert np.allclose(out, want, rtol=1e-15)
    want[2], want[3] = a[0] * b[3], want[3] + a[0] * b[3]
    products(out, 2, a, 0, b, 3)
    assert np.allclose(out, want, rtol=1e-15, atol=1e-15)
    want[0] = np.maximum(want[0], a[2])
    largest(out, 0, a, 2)
    assert np.array_equal(out[0], want[0]) and np.allclose(out, want, rtol=1e-15, atol=1e-15)


def test_scratch_rows_start_on_a_cache_line():
    for count in (1, 2, 7, 100):
        scratch = rows(count)
        assert scratch.shape == (count, LANES) and scratch.ctypes.data % 64 == 0
