"""Aligned scratch memory."""

from gibbsite._fast import memory


def test_address_is_a_multiple_of_64():
    for rows, columns in [(1, 1), (3, 5), (128, 128)]:
        array = memory.aligned32(rows, columns)
        assert array.shape == (rows, columns)
        assert array.ctypes.data % 64 == 0
        array[:] = 1.0
