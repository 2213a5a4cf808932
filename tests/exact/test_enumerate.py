"""Enumeration: order, places, limits."""

import pytest
import torch

import gibbsite as gb


@pytest.mark.parametrize("space", [gb.Binary((2, 2)), gb.Categorical((3,), 4)])
def test_index_inverts_states(space):
    every = gb.exact.states(space)
    assert torch.equal(gb.exact.index(space, every), torch.arange(len(every)))
    assert len(every) == space.states**space.sites


def test_probabilities_of_independent_bits(double):
    q = gb.distributions.Bernoulli(torch.tensor([0.3, -1.0]))
    p = q.logits.detach().sigmoid()
    expected = torch.stack(((1 - p[0]) * (1 - p[1]), (1 - p[0]) * p[1], p[0] * (1 - p[1]), p[0] * p[1]))
    assert torch.allclose(gb.exact.probabilities(q), expected, atol=1e-15)


def test_too_many_states_and_real_states_are_refused():
    with pytest.raises(ValueError, match="too many to enumerate"):
        gb.exact.states(gb.Binary(40))
    with pytest.raises(TypeError, match="discrete space"):
        gb.exact.states(gb.Real(2))


def test_places_beyond_an_int64_are_refused():
    assert gb.exact.index(gb.Binary(63), torch.ones(63, dtype=torch.int8)) == 2**63 - 1
    for space in (gb.Binary(64), gb.Binary(70), gb.Categorical(41, 3)):
        with pytest.raises(ValueError, match=r"at most 2\^63 states"):
            gb.exact.index(space, space.uniform().sample(2, seed=0))
