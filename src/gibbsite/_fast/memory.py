"""Scratch memory that starts on a cache line, so that no vector load is split over two of them."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def aligned32(rows, columns):
    """An uninitialised (rows, columns) float32 array whose address is a multiple of 64 bytes."""
    buffer = np.empty(rows * columns + 16, np.float32)
    skipped = np.int64((64 - buffer.ctypes.data % 64) % 64) // 4
    return buffer[skipped : skipped + rows * columns].reshape(rows, columns)
