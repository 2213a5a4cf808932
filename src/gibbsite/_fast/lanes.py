"""Arithmetic on rows of 8 doubles, each a vector of the processor: loops that short are not vectorised by the compiler.

Arrays are (rows, 8) float64, C-contiguous. The compiler's vectors become one AVX-512 register, two of AVX or four of NEON.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@njit(cache=True, nogil=True)
def rows(count):
    """An uninitialised (count, 8) array that starts on a cache line, so that no row lies on two."""
    buffer = np.empty((count + 1) * LANES)
    skipped = np.int64((64 - buffer.ctypes.data % 64) % 64) // 8
    return buffer[skipped : skipped + count * LANES].reshape(count, LANES)


def _row(context, builder, kind, array, index):
    """A pointer to row `index` of an array, as a vector."""
    data = context.make_array(kind)(context, builder, array).data
    start = builder.gep(data, [builder.mul(index, ir.Constant(ir.IntType(64), LANES))])
    return builder.bitcast(start, _VECTOR.as_pointer())


def _load(builder, pointer):
    value = builder.load(pointer)
    value.align = 8
    return value


def _store(builder, value, pointer):
    builder.store(value, pointer).align = 8


def _splat(builder, number):
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), places)


def _add_scaled(typing, out, i, a, j, w):
    """out[i] += w a[j]"""

    def generate(context, builder, signature, arguments):
        to = _row(context, builder, signature.args[0], *arguments[:2])
        from_ = _row(context, builder, signature.args[2], *arguments[2:4])
        product = builder.fmul(_load(builder, from_), _splat(builder, arguments[4]), flags=["contract"])
        _store(builder, builder.fadd(_load(builder, to), product, flags=["contract"]), to)
        return context.get_dummy_value()

    return types.void(out, types.int64, a, types.int64, types.float64), generate


def _set_product(typing, out, i, a, j, b, k):
    """out[i] = a[j] b[k]"""

    def generate(context, builder, signature, arguments):
        to, one, two = (_row(context, builder, signature.args[n], *arguments[n : n + 2]) for n in (0, 2, 4))
        _store(builder, builder.fmul(_load(builder, one), _load(builder, two)), to)
        return context.get_dummy_value()

    return types.void(out, types.int64, a, types.int64, b, types.int64), generate


def _add_product(typing, out, i, a, j, b, k):
    """out[i] += a[j] b[k]"""

    def generate(context, builder, signature, arguments):
        to, one, two = (_row(context, builder, signature.args[n], *arguments[n : n + 2]) for n in (0, 2, 4))
        product = builder.fmul(_load(builder, one), _load(builder, two), flags=["contract"])
        _store(builder, builder.fadd(_load(builder, to), product, flags=["contract"]), to)
        return context.get_dummy_value()

    return types.void(out, types.int64, a, types.int64, b, types.int64), generate


def _set_largest(typing, out, i, a, j):
    """out[i] = max(out[i], a[j])"""

    def generate(context, builder, signature, arguments):
        to, one = (_row(context, builder, signature.args[n], *arguments[n : n + 2]) for n in (0, 2))
        kept, new = _load(builder, to), _load(builder, one)
        _store(builder, builder.select(builder.fcmp_ordered(">", new, kept), new, kept), to)
        return context.get_dummy_value()

    return types.void(out, types.int64, a, types.int64), generate


# what the compiler makes of these does not have their arguments
add_scaled: Any = intrinsic(_add_scaled)
set_product: Any = intrinsic(_set_product)
add_product: Any = intrinsic(_add_product)
set_largest: Any = intrinsic(_set_largest)
