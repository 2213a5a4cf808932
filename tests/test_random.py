"""The draws: laws, edges, and generators that belong to the caller."""

import numpy as np
import pytest
import torch

from gibbsite import random

from .conftest import global_random_states


def test_categorical_has_its_law_and_never_draws_the_impossible():
    logits = torch.tensor([0.0, -torch.inf, 1.0, -3.0, -torch.inf]).expand(200_000, -1)
    counts = random.categorical(logits, random.generator(0)).bincount(minlength=5)
    p = logits[0].double().softmax(0)
    assert counts[1] == counts[4] == 0
    possible = p > 0
    # chi-square, 2 degrees of freedom: 27.7 has tail probability 1e-6
    assert float(((counts - 200_000 * p)[possible] ** 2 / (200_000 * p[possible])).sum()) < 27.7


@pytest.mark.parametrize("draw", ["bernoulli", "accept"])
def test_bernoulli_and_accept_have_their_probability(draw):
    p = torch.tensor(0.3)
    argument = torch.logit(p) if draw == "bernoulli" else p.log()
    mean = getattr(random, draw)(argument.expand(200_000), random.generator(1)).double().mean()
    assert abs(float(mean) - 0.3) < 4.9 * (0.3 * 0.7 / 200_000) ** 0.5  # two-sided 1e-6


def test_certain_outcomes_are_certain():
    g = random.generator(0)
    assert random.accept(torch.zeros(1000), g).all()
    assert not random.accept(torch.full((1000,), -torch.inf), g).any()
    assert not random.bernoulli(torch.full((1000,), -torch.inf), g).any()
    assert {random.choose([0.0, 2.0, 0.0], g) for _ in range(20)} == {1}


def test_a_generator_is_continued_and_a_seed_starts_anew():
    g = random.generator(5)
    first = random.uniform((3,), g)
    assert not torch.equal(first, random.uniform((3,), g))
    assert torch.equal(first, random.uniform((3,), random.generator(5)))


@pytest.mark.parametrize("seed", [1.5, None, True, "0"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(TypeError, match="seed: expected an int or"):
        random.generator(seed)


def test_a_seed_may_be_numpys_integer_and_must_fit():
    draws = [random.uniform((3,), random.generator(seed)) for seed in (7, np.int64(7), np.uint8(7))]
    assert torch.equal(draws[0], draws[1]) and torch.equal(draws[0], draws[2])
    random.generator(2**64 - 1), random.generator(-(2**63))
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="seed: expected an int from"):
            random.generator(seed)


@pytest.mark.parametrize("draw", [lambda: np.random.rand(), lambda: torch.rand(())], ids=["numpy", "torch"])  # noqa: NPY002
def test_the_watch_over_global_generators_sees_a_draw(draw):
    before, state, arrays = global_random_states(), torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    draw()
    seen = global_random_states()
    torch.set_rng_state(state)
    np.random.set_state(arrays)  # noqa: NPY002
    assert seen != before == global_random_states()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_bits_of_half_precision_have_the_probability_of_their_logit(dtype):
    """-6 is a number of each type; the frequency of 2,000,000 bits lies within 5 deviations of sigmoid(-6), 1e-6."""
    n, p = 2_000_000, torch.sigmoid(torch.tensor(-6.0, dtype=torch.float64)).item()
    seen = float(random.bernoulli(torch.full((n,), -6.0, dtype=dtype), torch.Generator().manual_seed(0)).double().mean())
    assert abs(seen - p) < 5 * (p * (1 - p) / n) ** 0.5
    rounded = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.bfloat16) < torch.tensor(p).bfloat16()
    assert abs(float(rounded.double().mean()) - p) > 50 * (p * (1 - p) / n) ** 0.5  # the mutant: uniforms of few digits
