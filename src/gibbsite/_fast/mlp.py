"""U and dU/dx of a multilayer perceptron potential for many chains, in cache-sized blocks of chains.

``h_0 = x``, ``z_k = h_(k-1) W_k^T + b_k``, ``h_k = act(z_k)``, ``U(x) = w . h_L``; backwards
``g_L = w * act'(z_L)``, ``g_(k-1) = (g_k W_k) * act'(z_(k-1))``, ``dU/dx = g_1 W_1``.

Products are oneDNN's; bias, activation and slope are one vectorised pass.

Legend: R rows of a block, D inputs, H hidden units.
"""

import numpy as np
from numba import njit

from gibbsite._fast.memory import aligned32
from gibbsite._fast.product import multiply, product
from gibbsite._fast.random import exp2_negative, exp_negative, log1p_unit, tanh32

SILU, TANH, SOFTPLUS, RELU = 0, 1, 2, 3
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_LOG2_E = np.float32(1 / np.log(2))
_BLOCK = 1024
_NARROW = 8


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _logistic(z):
    decay = exp2_negative(-_LOG2_E * abs(z))
    inverse = _ONE / (_ONE + decay)
    return inverse if z > _ZERO else decay * inverse


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def silu(z):
    """``z s`` and its slope ``s + z s (1 - s)``, s = sigmoid(z). NaN is kept."""
    gate = _logistic(z)
    value = z * gate
    return value, gate + value * (_ONE - gate)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def tanh(z):
    """``tanh(z)`` and its slope ``1 - tanh(z)^2``. NaN is kept."""
    value = tanh32(z)
    return value, _ONE - value * value


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def softplus(z):
    """``log(1 + exp(z))`` and its slope ``sigmoid(z)``. NaN is kept."""
    decay = exp_negative(-abs(z))
    inverse = _ONE / (_ONE + decay)
    positive = z if z > _ZERO else _ZERO
    value = positive + log1p_unit(decay)
    return (value if z == z else z), (inverse if z > _ZERO else decay * inverse)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def relu(z):
    """``max(z, 0)`` and its slope, 0 at 0. NaN is kept."""
    return (_ZERO if z <= _ZERO else z), (_ONE if z > _ZERO else _ZERO)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _apply(kind, bias, z_H, slope_H):
    """One row, in place: the branch on ``kind`` stays outside of the loops, so that each is vector code."""
    if kind == SILU:
        for unit in range(z_H.shape[0]):
            z_H[unit], slope_H[unit] = silu(z_H[unit] + bias[unit])
    elif kind == TANH:
        for unit in range(z_H.shape[0]):
            z_H[unit], slope_H[unit] = tanh(z_H[unit] + bias[unit])
    elif kind == SOFTPLUS:
        for unit in range(z_H.shape[0]):
            z_H[unit], slope_H[unit] = softplus(z_H[unit] + bias[unit])
    else:
        for unit in range(z_H.shape[0]):
            z_H[unit], slope_H[unit] = relu(z_H[unit] + bias[unit])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def activate(kind, bias, z_RH, slope_RH):
    """In place: ``z <- act(z + bias)`` and ``slope <- act'(z + bias)``. bias (H,), z and slope (R, H) float32."""
    for row in range(z_RH.shape[0]):
        _apply(kind, bias, z_RH[row], slope_RH[row])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def readout(kind, bias, weight, z_RH, slope_RH, u):
    """The last hidden layer: ``u[r] = w . act(z_r + b)``, ``slope <- w * act'(z + b)``; z is overwritten."""
    for row in range(z_RH.shape[0]):
        _apply(kind, bias, z_RH[row], slope_RH[row])
        total = _ZERO
        for unit in range(z_RH.shape[1]):
            total += weight[unit] * z_RH[row, unit]
        for unit in range(z_RH.shape[1]):
            slope_RH[row, unit] *= weight[unit]
        u[row] = total


@njit(cache=True, nogil=True, error_model="numpy")
def scale(g_RH, slope_RH):
    """In place ``g <- g * slope``, both (R, H) float32."""
    for row in range(g_RH.shape[0]):
        for unit in range(g_RH.shape[1]):
            g_RH[row, unit] *= slope_RH[row, unit]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def enter(matrix, x_RD, z_RH):
    """The first product for few inputs: ``z = x W^T``; ``matrix`` is W^T (D, H) float32."""
    for row in range(x_RD.shape[0]):
        target, first = z_RH[row], matrix[0]
        value = x_RD[row, 0]
        for unit in range(target.shape[0]):
            target[unit] = value * first[unit]
        for index in range(1, x_RD.shape[1]):
            other, value = matrix[index], x_RD[row, index]
            for unit in range(target.shape[0]):
                target[unit] += value * other[unit]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def leave(matrix, g_RH, score_RD):
    """The last product backwards for few inputs: ``score = g W``; ``matrix`` is W^T (D, H) float32."""
    for row in range(g_RH.shape[0]):
        signal = g_RH[row]
        for index in range(matrix.shape[0]):
            other, total = matrix[index], _ZERO
            for unit in range(signal.shape[0]):
                total += signal[unit] * other[unit]
            score_RD[row, index] = total


class Workspace:
    """Buffers for blocks of chains, float32, reused by every call: a (block, H) slope a hidden layer, and the first values.

    Args: matrices W_k (H_k, H_(k-1)) float32 C-contiguous; biases (H_k,); weight w (H_L,); kind one of SILU, ....
    """

    def __init__(self, matrices, biases, weight, kind, block=_BLOCK):
        self.matrices, self.biases, self.weight, self.kind, self.block = matrices, biases, weight, kind, block
        self.first = aligned32(block, matrices[0].shape[0])
        self.slopes = [aligned32(block, matrix.shape[0]) for matrix in matrices]
        self.narrow = None
        self.refresh()

    def refresh(self):
        """Copy W_1^T when there are few inputs: two passes over it then replace two badly shaped products."""
        if self.matrices[0].shape[1] <= _NARROW:
            self.narrow = np.ascontiguousarray(self.matrices[0].T)


def potential_and_score(x, u, score, work):
    """``u <- U(x)`` and ``score <- dU/dx``, in place, block by block; reads the matrices of ``work`` as they are now.

    Args: x (chains, D) float32; u (chains,) float32; score (chains, D) float32; work `Workspace`.
    """
    work.refresh()
    for first in range(0, x.shape[0], work.block):
        last = min(first + work.block, x.shape[0])
        _block(x[first:last], u[first:last], score[first:last], work)


def _block(x_RD, u, score_RD, work):
    rows, depth, kind = x_RD.shape[0], len(work.matrices), work.kind
    values, slopes = [work.first[:rows]] * depth, [a[:rows] for a in work.slopes]
    if work.narrow is None:
        values[0] = product(x_RD, work.matrices[0].T)
    else:
        enter(work.narrow, x_RD, values[0])
    for layer in range(depth - 1):
        activate(kind, work.biases[layer], values[layer], slopes[layer])
        values[layer + 1] = product(values[layer], work.matrices[layer + 1].T)
    readout(kind, work.biases[-1], work.weight, values[-1], slopes[-1], u)
    signal = slopes[-1]
    for layer in range(depth - 2, -1, -1):
        signal = product(signal, work.matrices[layer + 1])
        scale(signal, slopes[layer])
    if work.narrow is None:
        multiply(signal, work.matrices[0], out=score_RD)
    else:
        leave(work.narrow, signal, score_RD)
