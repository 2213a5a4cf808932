"""Vectorisable building blocks: lane generators, uniforms and float32 elementary functions.

Every generator is seeded from one explicit ``uint64`` by splitmix64; nothing here reads a global random state.
The functions are written so that LLVM turns a loop over lanes into vector code: no branches, no calls, polynomials
and exponent bits only. They keep the meaning of NaN and of the infinities.

References:
    S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016);
    D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators" (2021);
    W. J. Cody, W. Waite, "Software manual for the elementary functions" (1980).
"""

import numpy as np
from numba import njit

_U32 = np.uint32
_U64 = np.uint64
_F32 = np.float32
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_ONE = np.uint64(0xBF58476D1CE4E5B9)
_MIX_TWO = np.uint64(0x94D049BB133111EB)
_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_EXP_LOW = np.float32(-87.336)
_EXP_HIGH = np.float32(88.72283)
_SCALE_32 = np.float32(2.0**-32)
_SCALE_53 = 2.0**-53
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_TWO = np.float32(2.0)
_ZERO = np.float32(0.0)
_INF = np.float32(np.inf)
_E2, _E3, _E4 = np.float32(0.5), np.float32(1.6666665e-1), np.float32(4.1666646e-2)
_E5, _E6, _E7 = np.float32(8.3336945e-3), np.float32(1.3888889e-3), np.float32(1.9841270e-4)
_B0, _B1, _B2 = np.float32(1.0), np.float32(6.9314697e-1), np.float32(2.4022120e-1)
_B3, _B4, _B5 = np.float32(5.5507133e-2), np.float32(9.6755413e-3), np.float32(1.3276472e-3)
_EXP2_LOW = np.float32(-126.0)
_LN2_HIGH_64, _LN2_LOW_64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOG2_E_64 = 1.44269504088896340736
_A1, _A2, _A3, _A4 = np.float32(2 / 3), np.float32(2 / 5), np.float32(2 / 7), np.float32(2 / 9)
_A5, _A6, _A7 = np.float32(2 / 11), np.float32(2 / 13), np.float32(2 / 15)
_T1, _T2, _T3 = np.float32(-1 / 3), np.float32(2 / 15), np.float32(-17 / 315)
_T4, _T5 = np.float32(62 / 2835), np.float32(-1382 / 155925)
_TANH_SPLIT = np.float32(0.25)


@njit(cache=True, nogil=True, error_model="numpy")
def splitmix64(state):
    """Next splitmix64 word: ``state + golden``, then a bijective mix. Returns ``(state, word)``, both uint64."""
    state = _U64(state + _GOLDEN)
    word = _U64((state ^ (state >> _U64(30))) * _MIX_ONE)
    word = _U64((word ^ (word >> _U64(27))) * _MIX_TWO)
    return state, _U64(word ^ (word >> _U64(31)))


@njit(cache=True, nogil=True, error_model="numpy")
def substream(seed, index):
    """A seed for stream number ``index``: two rounds of splitmix64 over ``seed`` and ``index`` (uint64)."""
    _, first = splitmix64(_U64(seed))
    _, second = splitmix64(_U64(first ^ (_U64(index) * _GOLDEN)))
    return second


@njit(cache=True, nogil=True, error_model="numpy")
def seed_lanes32(seed, state):
    """Fill xoshiro128++ state, ``state`` (4 * lanes,) uint32 with word k of lane l at ``k * lanes + l``."""
    lanes = state.shape[0] // 4
    counter = _U64(seed)
    for lane in range(lanes):
        counter, first = splitmix64(counter)
        counter, second = splitmix64(counter)
        if first == _U64(0) and second == _U64(0):
            first = _GOLDEN
        state[lane] = _U32(first & _U64(0xFFFFFFFF))
        state[lanes + lane] = _U32(first >> _U64(32))
        state[2 * lanes + lane] = _U32(second & _U64(0xFFFFFFFF))
        state[3 * lanes + lane] = _U32(second >> _U64(32))


@njit(cache=True, nogil=True, error_model="numpy")
def seed_lanes64(seed, state):
    """Fill xoshiro256++ state, ``state`` (4 * lanes,) uint64 with word k of lane l at ``k * lanes + l``."""
    lanes = state.shape[0] // 4
    counter = _U64(seed)
    for lane in range(lanes):
        for word in range(4):
            counter, state[word * lanes + lane] = splitmix64(counter)


@njit(cache=True, nogil=True, error_model="numpy")
def rotate32(word, shift):
    """Rotate a uint32 left by ``shift`` bits (0 < shift < 32)."""
    return _U32(_U32(word << _U32(shift)) | _U32(word >> _U32(32 - shift)))


@njit(cache=True, nogil=True, error_model="numpy")
def rotate64(word, shift):
    """Rotate a uint64 left by ``shift`` bits (0 < shift < 64)."""
    return _U64(_U64(word << _U64(shift)) | _U64(word >> _U64(64 - shift)))


@njit(cache=True, nogil=True, error_model="numpy")
def next32(state, lanes, lane):
    """Next xoshiro128++ word (uint32) of one lane of ``state`` (4 * lanes,); a loop over lanes is vectorised."""
    zero, one = state[lane], state[lanes + lane]
    two, three = state[2 * lanes + lane], state[3 * lanes + lane]
    result = _U32(rotate32(_U32(zero + three), 7) + zero)
    shifted = _U32(one << _U32(9))
    two = _U32(two ^ zero)
    three = _U32(three ^ one)
    state[lanes + lane] = _U32(one ^ two)
    state[lane] = _U32(zero ^ three)
    state[2 * lanes + lane] = _U32(two ^ shifted)
    state[3 * lanes + lane] = rotate32(three, 11)
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def next64(state, lanes, lane):
    """Next xoshiro256++ word (uint64) of one lane of ``state`` (4 * lanes,); a loop over lanes is vectorised."""
    zero, one = state[lane], state[lanes + lane]
    two, three = state[2 * lanes + lane], state[3 * lanes + lane]
    result = _U64(rotate64(_U64(zero + three), 23) + zero)
    shifted = _U64(one << _U64(17))
    two = _U64(two ^ zero)
    three = _U64(three ^ one)
    state[lanes + lane] = _U64(one ^ two)
    state[lane] = _U64(zero ^ three)
    state[2 * lanes + lane] = _U64(two ^ shifted)
    state[3 * lanes + lane] = rotate64(three, 45)
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def uniform32(word):
    """Uniform float32 ``(word + 1/2) 2^-32`` in (0, 1]: 32 bits near 0, float32 rounding elsewhere."""
    return (_F32(word) + _HALF) * _SCALE_32


@njit(cache=True, nogil=True, error_model="numpy")
def uniform53(word):
    """Uniform float64 in [0, 1) from the upper 53 bits of a uint64."""
    return np.float64(word >> _U64(11)) * _SCALE_53


@njit(cache=True, nogil=True, error_model="numpy")
def below(state, lanes, lane, count):
    """Exactly uniform integer in [0, count), count < 2^32, from uint32 words (Lemire's rejection)."""
    bound = _U64(count)
    product = _U64(next32(state, lanes, lane)) * bound
    if (product & _U64(0xFFFFFFFF)) < bound:
        floor = (_U64(1 << 32) - bound) % bound
        while (product & _U64(0xFFFFFFFF)) < floor:
            product = _U64(next32(state, lanes, lane)) * bound
    return np.int64(product >> _U64(32))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp_negative(x):
    """float32 ``exp(x)`` for x <= 0, relative error < 2e-7; below -87.3 it is the constant exp(-87.3) (1e-38)."""
    x = x if x > _EXP_LOW else _EXP_LOW
    power = np.int32(x * _LOG2_E - _HALF)
    scale = _F32(power)
    rest = (x - scale * _LN2_HIGH) - scale * _LN2_LOW
    value = _E6 + rest * _E7
    value = _E5 + rest * value
    value = _E4 + rest * value
    value = _E3 + rest * value
    value = _E2 + rest * value
    value = _ONE + (rest + rest * rest * value)
    return value * np.int32(np.int32(power + np.int32(127)) << np.int32(23)).view(_F32)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp2_negative(x):
    """float32 ``2^x`` for x <= 0, relative error < 3e-7: the minimax polynomial of degree 5; 2^-126 from there down."""
    x = x if x > _EXP2_LOW else _EXP2_LOW
    power = np.int32(x - _HALF)
    rest = x - _F32(power)
    value = _B4 + rest * _B5
    value = _B3 + rest * value
    value = _B2 + rest * value
    value = _B1 + rest * value
    value = _B0 + rest * value
    return value * np.int32(np.int32(power + np.int32(127)) << np.int32(23)).view(_F32)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp32(x):
    """float32 ``exp(x)``, relative error < 2e-7 where the result is a normal number; 0, inf and NaN are kept."""
    y = x if x > _EXP_LOW else _EXP_LOW
    y = y if y < _EXP_HIGH else _EXP_HIGH
    power = np.int32(np.floor(y * _LOG2_E + _HALF))
    scale = _F32(power)
    rest = (y - scale * _LN2_HIGH) - scale * _LN2_LOW
    value = _E6 + rest * _E7
    value = _E5 + rest * value
    value = _E4 + rest * value
    value = _E3 + rest * value
    value = _E2 + rest * value
    value = _ONE + (rest + rest * rest * value)
    half = np.int32(power >> np.int32(1))
    value = value * np.int32(np.int32(half + np.int32(127)) << np.int32(23)).view(_F32)
    other = np.int32(power - half)
    value = value * np.int32(np.int32(other + np.int32(127)) << np.int32(23)).view(_F32)
    value = _ZERO if x < _EXP_LOW else value
    value = _INF if x > _EXP_HIGH else value
    return value if x == x else x


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp64(x):
    """float64 ``exp(x)`` for |x| <= 700, relative error < 1e-15: 2^k times the Taylor polynomial of degree 12."""
    power = np.floor(x * _LOG2_E_64 + 0.5)
    rest = (x - power * _LN2_HIGH_64) - power * _LN2_LOW_64
    value = 1 / 39916800 + rest * (1 / 479001600)
    value = 1 / 3628800 + rest * value
    value = 1 / 362880 + rest * value
    value = 1 / 40320 + rest * value
    value = 1 / 5040 + rest * value
    value = 1 / 720 + rest * value
    value = 1 / 120 + rest * value
    value = 1 / 24 + rest * value
    value = 1 / 6 + rest * value
    value = 0.5 + rest * value
    value = 1.0 + (rest + rest * rest * value)
    return value * np.int64((np.int64(power) + np.int64(1023)) << np.int64(52)).view(np.float64)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def sigmoid32(x):
    """float32 ``1 / (1 + exp(-x))``, relative error < 3e-7 down to 1e-38; NaN is kept."""
    decay = exp_negative(-abs(x))
    inverse = _ONE / (_ONE + decay)
    value = inverse if x > _ZERO else decay * inverse
    return value if x == x else x


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log1p_unit(e):
    """float32 ``log(1 + e)`` for 0 <= e <= 1 as ``2 artanh(e / (2 + e))``, relative error < 3e-7."""
    ratio = e / (_TWO + e)
    square = ratio * ratio
    value = _A6 + square * _A7
    value = _A5 + square * value
    value = _A4 + square * value
    value = _A3 + square * value
    value = _A2 + square * value
    value = _A1 + square * value
    return ratio * (_TWO + square * value)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def softplus32(x):
    """float32 ``log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))``, relative error < 4e-7; NaN is kept."""
    positive = x if x > _ZERO else _ZERO
    value = positive + log1p_unit(exp_negative(-abs(x)))
    return value if x == x else x


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def tanh32(x):
    """float32 ``tanh(x)``: odd polynomial for |x| < 1/4, else ``(1 - e) / (1 + e)``, e = exp(-2|x|)."""
    square = x * x
    near = _T4 + square * _T5
    near = _T3 + square * near
    near = _T2 + square * near
    near = _T1 + square * near
    near = x + x * square * near
    decay = exp_negative(-_TWO * abs(x))
    far = (_ONE - decay) / (_ONE + decay)
    far = far if x > _ZERO else -far
    value = near if abs(x) < _TANH_SPLIT else far
    return value if x == x else x
