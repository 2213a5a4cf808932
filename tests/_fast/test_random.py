"""Elementary functions against float64, generators against the reference recurrences, uniformity, lane independence."""

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from gibbsite._fast import random as fast

FALSE_ALARM = 1e-6
EXTREMES = np.array([0.0, -0.0, 1e-30, -1e-30, 87.2, -87.2, 88.7, 89.0, 100.0, -100.0, 1e30, -1e30, np.inf, -np.inf])


@njit
def _map(function, x, out):
    for position in range(x.shape[0]):
        out[position] = function(x[position])


def _apply(function, x):
    x = np.asarray(x, np.float32)
    out = np.empty_like(x)
    _map(function, x, out)
    return x.astype(float), out.astype(float)


def _grid():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=20000) * 10.0 ** rng.uniform(-6, 0, 20000)
    return np.concatenate([np.linspace(-87.3, 87.3, 400001), spread, EXTREMES])


@pytest.mark.parametrize(
    ("function", "reference", "bound"),
    [
        (fast.exp32, np.exp, 2e-7),
        (fast.sigmoid32, special.expit, 3e-7),
        (fast.softplus32, lambda x: np.logaddexp(0, x), 4e-7),
        (fast.tanh32, np.tanh, 3e-7),
    ],
    ids=["exp", "sigmoid", "softplus", "tanh"],
)
def test_relative_error(function, reference, bound):
    x, got = _apply(function, _grid())
    with np.errstate(over="ignore"):
        want = reference(x)
    normal = (np.abs(want) >= 1.2e-38) & (np.abs(want) <= 3.4e38)
    error = np.abs(got[normal] - want[normal]) / np.abs(want[normal])
    assert error.max() < bound, (error.max(), x[normal][error.argmax()])
    assert np.all(np.abs(got[np.abs(want) < 1.2e-38]) < 1.3e-38)
    assert np.all(np.isinf(got[want > 3.41e38]))


def test_exp_negative_is_exp_below_zero():
    x, got = _apply(fast.exp_negative, -np.abs(_grid()))
    error = np.abs(got - np.exp(np.maximum(x, -87.336))) / np.exp(np.maximum(x, -87.336))
    assert error[x > -87.3].max() < 2e-7
    assert got[x < -90].max() < 1.3e-38


def test_exp2_negative_is_two_to_the_power():
    x, got = _apply(fast.exp2_negative, -np.abs(_grid()))
    want = np.exp2(np.maximum(x, -126.0))
    assert (np.abs(got - want) / want).max() < 3e-7


@pytest.mark.parametrize("function", [fast.exp32, fast.sigmoid32, fast.softplus32, fast.tanh32])
def test_nan_is_kept(function):
    assert np.isnan(_apply(function, [np.nan])[1][0])


def test_infinities():
    assert _apply(fast.exp32, [np.inf, -np.inf])[1].tolist() == [np.inf, 0.0]
    assert _apply(fast.sigmoid32, [np.inf, 100.0])[1].tolist() == [1.0, 1.0]
    assert _apply(fast.softplus32, [np.inf])[1].tolist() == [np.inf]
    assert _apply(fast.tanh32, [np.inf, -np.inf])[1].tolist() == [1.0, -1.0]


@njit
def _words32(state, lanes, draws):
    out = np.empty((draws, lanes), np.uint32)
    for draw in range(draws):
        for lane in range(lanes):
            out[draw, lane] = fast.next32(state, lanes, lane)
    return out


@njit
def _words64(state, lanes, draws):
    out = np.empty((draws, lanes), np.uint64)
    for draw in range(draws):
        for lane in range(lanes):
            out[draw, lane] = fast.next64(state, lanes, lane)
    return out


def _xoshiro(words, bits, shift, rotations, draws):
    """The published recurrence of xoshiro ++ on Python integers."""
    first, last = rotations
    top = (1 << bits) - 1

    def rotate(word, count):
        return ((word << count) | (word >> (bits - count))) & top

    out = []
    for _ in range(draws):
        out.append((rotate((words[0] + words[3]) & top, first) + words[0]) & top)
        shifted = (words[1] << shift) & top
        words[2] ^= words[0]
        words[3] ^= words[1]
        words[1] ^= words[2]
        words[0] ^= words[3]
        words[2] ^= shifted
        words[3] = rotate(words[3], last)
    return out


def test_splitmix64_reference():
    state, words = np.uint64(1234567), []
    for _ in range(3):
        state, word = fast.splitmix64(np.uint64(state))
        words.append(int(word))
    assert words == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_xoshiro_reference():
    narrow, wide = np.empty(8, np.uint32), np.empty(8, np.uint64)
    fast.seed_lanes32(np.uint64(3), narrow)
    fast.seed_lanes64(np.uint64(3), wide)
    want32 = [_xoshiro([int(narrow[2 * k + lane]) for k in range(4)], 32, 9, (7, 11), 50) for lane in (0, 1)]
    want64 = [_xoshiro([int(wide[2 * k + lane]) for k in range(4)], 64, 17, (23, 45), 50) for lane in (0, 1)]
    assert _words32(narrow, 2, 50).T.tolist() == want32
    assert _words64(wide, 2, 50).T.tolist() == want64


def test_uniform_and_independent_lanes():
    """Chi-square over 256 cells of each byte, and lane-to-lane correlations (false alarm 1e-6 each)."""
    state = np.empty(4 * 32, np.uint32)
    fast.seed_lanes32(np.uint64(11), state)
    words = _words32(state, 32, 20000)
    for byte in range(4):
        counts = np.bincount(((words >> np.uint32(8 * byte)) & np.uint32(255)).ravel(), minlength=256)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
    uniforms = (words.astype(float) + 0.5) / 2**32
    correlation = np.corrcoef(uniforms.T)[np.triu_indices(32, 1)]
    assert np.abs(correlation).max() * np.sqrt(20000) < stats.norm.isf(FALSE_ALARM / (2 * 496))
    repeated = uniforms.copy()
    repeated[:, 1] = repeated[:, 0]  # the mutant: two lanes with one stream
    assert np.abs(np.corrcoef(repeated.T)[0, 1]) * np.sqrt(20000) > 100


@njit
def _draw_below(state, count, draws):
    out = np.empty(draws, np.int64)
    for draw in range(draws):
        out[draw] = fast.below(state, 1, 0, count)
    return out


def test_below_is_uniform():
    state = np.empty(4, np.uint32)
    fast.seed_lanes32(np.uint64(5), state)
    counts = np.bincount(_draw_below(state, 7, 70000), minlength=7)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert _draw_below(state, 1, 10).max() == 0


def test_seeds_give_different_streams():
    seeds = {int(fast.substream(np.uint64(seed), np.uint64(index))) for seed in range(100) for index in range(100)}
    assert len(seeds) == 10000


def test_exp64_is_exp_to_the_last_digits():
    x = np.concatenate([np.linspace(-700, 700, 20001), np.linspace(-1e-3, 1e-3, 101)])
    found = np.array([fast.exp64(value) for value in x])
    assert np.abs(found / np.exp(x.astype(np.longdouble)) - 1).max() < 1e-15
