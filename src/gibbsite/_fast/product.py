"""A float32 matrix product in compiled code, for machines whose BLAS doesn't know the processor.

numpy's OpenBLAS falls back to kernels without AVX-512 on a processor newer than itself: half the speed is lost.

``out = a b``. Panels of b (INNER, WIDTH) are copied next to each other; four rows of a are treated at once, four terms of
the sum a pass, so that one load of b serves four rows. Sums are float32, in blocks of INNER terms.
"""

import ctypes
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from numba import njit

from gibbsite._fast.memory import aligned32

INNER, WIDTH, ROWS = 128, 128, 4
_U64 = np.uint64
_ONE_ROW, _TWO_ROWS, _THREE_ROWS = np.uint64(WIDTH), np.uint64(2 * WIDTH), np.uint64(3 * WIDTH)
_ZERO = np.float32(0.0)
_ROW = np.uint32  # an unsigned index needs no wrap-around test, which would stop vectorisation


@njit(cache=True, nogil=True, error_model="numpy")
def _panel(b, first_term, first_column, panel):
    """Copy a block of b, zero outside of it."""
    terms, columns = min(INNER, b.shape[0] - first_term), min(WIDTH, b.shape[1] - first_column)
    panel[:] = _ZERO
    for term in range(terms):
        source, target = b[first_term + term, first_column : first_column + columns], panel[term]
        for column in range(columns):
            target[column] = source[column]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _accumulate(left, panel, terms, sums):
    """sums (ROWS * WIDTH,) += left (ROWS, INNER) panel (INNER * WIDTH,), ``terms`` rounded up to 4."""
    for group in range((terms + 3) // 4):
        k0, k1, k2, k3 = _ROW(4 * group), _ROW(4 * group + 1), _ROW(4 * group + 2), _ROW(4 * group + 3)
        a00, a01, a02, a03 = left[0, k0], left[0, k1], left[0, k2], left[0, k3]
        a10, a11, a12, a13 = left[1, k0], left[1, k1], left[1, k2], left[1, k3]
        a20, a21, a22, a23 = left[2, k0], left[2, k1], left[2, k2], left[2, k3]
        a30, a31, a32, a33 = left[3, k0], left[3, k1], left[3, k2], left[3, k3]
        start = _U64(4 * group * WIDTH)
        for j in range(_U64(0), _ONE_ROW):
            i = start + j
            b0, b1, b2, b3 = panel[i], panel[i + _ONE_ROW], panel[i + _TWO_ROWS], panel[i + _THREE_ROWS]
            sums[j] += a00 * b0 + a01 * b1 + a02 * b2 + a03 * b3
            sums[j + _ONE_ROW] += a10 * b0 + a11 * b1 + a12 * b2 + a13 * b3
            sums[j + _TWO_ROWS] += a20 * b0 + a21 * b1 + a22 * b2 + a23 * b3
            sums[j + _THREE_ROWS] += a30 * b0 + a31 * b1 + a32 * b2 + a33 * b3


@njit(cache=True, nogil=True, error_model="numpy")
def _rows(a, panel, first_term, first_column, left, sums, out):
    terms, columns = min(INNER, a.shape[1] - first_term), min(WIDTH, out.shape[1] - first_column)
    for first in range(0, a.shape[0], ROWS):
        rows = min(ROWS, a.shape[0] - first)
        for row in range(rows):
            source, target = a[first + row, first_term : first_term + terms], left[row]
            for term in range(terms):
                target[term] = source[term]
            before, held = out[first + row, first_column : first_column + columns], sums[row]
            if first_term == 0:
                held[:] = _ZERO
            else:
                for column in range(columns):
                    held[column] = before[column]
        _accumulate(left, panel.reshape(-1), terms, sums.reshape(-1))
        for row in range(rows):
            after, held = out[first + row, first_column : first_column + columns], sums[row]
            for column in range(columns):
                after[column] = held[column]


@njit(cache=True, nogil=True, error_model="numpy")
def multiply(a, b, out):
    """``out = a b``: a (rows, terms), b (terms, columns), out (rows, columns), float32; out must not overlap a or b."""
    panel, left, sums = aligned32(INNER, WIDTH), aligned32(ROWS, INNER), aligned32(ROWS, WIDTH)
    sums[:] = _ZERO
    for first_column in range(0, b.shape[1], WIDTH):
        for first_term in range(0, b.shape[0], INNER):
            _panel(b, first_term, first_column, panel)
            left[:] = _ZERO
            _rows(a, panel, first_term, first_column, left, sums, out)


@cache
def preferred():
    """`multiply` when the processor has AVX-512 and numpy's OpenBLAS doesn't use it, else ``np.matmul``."""
    old = ("haswell", "zen", "sandybridge", "nehalem", "prescott", "excavator")
    wide = llvm.get_host_cpu_features().get("avx512f", False)
    return multiply if wide and _core_name() in old else np.matmul


def _core_name():
    """The kernels that numpy's bundled OpenBLAS chose on this machine, in lower case; "" if there is no telling."""
    for path in sorted((Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_*")):
        try:
            name = ctypes.CDLL(str(path)).scipy_openblas_get_corename64_
        except (OSError, AttributeError):
            continue
        name.restype = ctypes.c_char_p
        return name().decode().lower()
    return ""
