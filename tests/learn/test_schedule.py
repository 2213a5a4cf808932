"""Schedules: their values, their products, and the conditions of stochastic approximation."""

import math
from itertools import pairwise

import pytest
import torch

import gibbsite as gb

from .test_guard import Failing

C = gb.learn.schedule


def values(schedule, *steps):
    return pytest.approx([schedule(step) for step in steps])


def test_their_values():
    assert values(C.Warmup(4), 0, 1, 3, 4, 99) == [0.25, 0.5, 1, 1, 1]
    assert values(C.Polynomial(10), 0, 5, 10, 11) == [1, 0.5, 0, 0]
    assert values(C.Polynomial(10, power=2, end=0.2), 0, 5, 10, 99) == [1, 0.4, 0.2, 0.2]
    assert values(C.Cosine(10), 0, 5, 10, 99) == [1, 0.5, 0, 0]
    assert values(C.Cosine(8, end=0.5), 0, 2, 8) == [1, 0.75 + math.sqrt(0.5) / 4, 0.5]
    assert values(C.Stairs(10, 0.5), 0, 9, 10, 25) == [1, 1, 0.5, 0.25]
    assert values(C.RobbinsMonro(10), 0, 10, 20, 1000) == [1, 1, 0.5, 0.01]
    assert values(C.RobbinsMonro(1, 0.75), 16) == [1 / 8]
    assert values(C.Warmup(4) * C.Stairs(2, 0.5) * C.Polynomial(8), 0, 1, 2, 4) == [0.25, 0.5 * 7 / 8, 0.375 * 0.75, 0.125]


def octaves(schedule, power):
    """The sums of schedule(t)^power over t from 2^k to 2^(k + 1), for k = 4, ..., 14."""
    return [sum(schedule(step) ** power for step in range(2**k, 2 ** (k + 1))) for k in range(4, 15)]


def endless(sums):
    """Whether the sums do not fall from octave to octave (but for the rounding of an octave to whole steps)."""
    return all(later > 0.97 * earlier for earlier, later in pairwise(sums))


def geometric(sums):
    """Whether they fall by a factor, 2^(1 - 2 * 0.51) = 0.986 at the slowest here, so that they add up to a finite sum."""
    return all(later < 0.99 * earlier for earlier, later in pairwise(sums))


@pytest.mark.parametrize("power", [0.51, 0.75, 1.0])
def test_the_steps_of_stochastic_approximation_add_up_to_infinity_and_their_squares_do_not(power):
    schedule = C.RobbinsMonro(10, power)
    assert endless(octaves(schedule, 1)) and geometric(octaves(schedule, 2))
    assert not geometric(octaves(lambda step: step**-0.5, 2)), "the mutant that falls too slowly"
    assert not endless(octaves(lambda step: step**-1.1, 1)), "the mutant that falls too fast"


def test_fit_scales_each_step_by_its_factor():
    seen = []
    optimiser = torch.optim.SGD((objective := Failing()).parameters(), lr=0.5)
    optimiser.register_step_pre_hook(lambda *_: seen.append(optimiser.param_groups[0]["lr"]))
    schedule = C.Warmup(2) * C.Stairs(3, 0.1)
    gb.learn.fit(objective, torch.ones(8), optimiser=optimiser, steps=5, batch=8, seed=0, schedule=schedule)
    assert seen == pytest.approx([0.25, 0.5, 0.5, 0.05, 0.05])


BAD = [
    lambda: C.Warmup(0),
    lambda: C.Polynomial(10, power=0),
    lambda: C.Polynomial(10, end=-1),
    lambda: C.Cosine(2.5),
    lambda: C.Stairs(0),
    lambda: C.Stairs(5, factor=2),
    lambda: C.RobbinsMonro(10, power=0.5),
    lambda: C.RobbinsMonro(10, power=1.1),
]


@pytest.mark.parametrize("make", BAD)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_only_schedules_multiply():
    with pytest.raises(TypeError, match=r"schedule: expected a gibbsite\.learn\.Schedule, got function"):
        C.Warmup(1) * (lambda step: 1.0)
