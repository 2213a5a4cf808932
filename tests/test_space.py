"""Spaces: what they accept, what they refuse and how they say it."""

import numpy as np
import pytest
import torch

import gibbsite as gb


@pytest.mark.parametrize(
    ("space", "x", "message"),
    [
        (
            gb.Categorical(75, 21),
            torch.zeros(64, 74),
            r"x: expected integers in \[0, 21\) of shape \(\*, 75\), got float32 \(64, 74\)",
        ),
        (gb.Binary((2, 3)), torch.zeros(4, 3, dtype=torch.int8), r"of shape \(\*, 2, 3\), got int8 \(4, 3\)"),
        (gb.Binary(2), torch.tensor([[0, 1], [1, 2]]), r"expected integers in \[0, 2\) .* got 2 at \[1, 1\]"),
        (gb.Categorical(2, 3), torch.tensor([[0, -1]]), r"got -1 at \[0, 1\]"),
        (gb.Real(2), torch.tensor([[0.0, torch.nan]]), r"expected finite floats of shape \(\*, 2\), got nan at \[0, 1\]"),
        (gb.Real(2), torch.tensor([[0, 1]]), r"got int64 \(1, 2\)"),
        (gb.Tokens(3, 5, eos=0), torch.tensor([[1, 0, 2]]), r"only eos=0 after the first eos, got 2 at \[0, 2\]"),
    ],
)
def test_check_says_what_was_expected_and_what_came(space, x, message):
    with pytest.raises(ValueError, match=message):
        space.check(x)


@pytest.mark.parametrize(
    "make", [lambda: gb.Binary(0), lambda: gb.Categorical(3, 0), lambda: gb.Tokens(3, 4, eos=4), lambda: gb.Real(-1)]
)
def test_impossible_spaces_are_refused(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_check_converts_to_the_stored_type(device):
    x = torch.ones(2, 3, dtype=torch.int64, device=device)
    assert gb.Binary(3).check(x).dtype == torch.int8
    assert gb.Binary(3).check(x.bool()).tolist() == [[1] * 3] * 2
    assert gb.Categorical(3, 4).check(x.to(torch.int8)).dtype == torch.int64
    assert gb.Binary(3).check([[0, 1, 1]]).tolist() == [[0, 1, 1]]


def test_float_views_and_their_batches(device):
    x = torch.tensor([[0, 2, 1]], device=device)
    space = gb.Categorical(3, 3)
    z = space.embed(x, torch.float64)
    assert z.shape == (1, 3, 3) and z.dtype == torch.float64 and z.argmax(-1).equal(x)
    assert space.embed(z) is z
    assert space.batch(x) == space.batch(z) == (1,)
    bits = gb.Binary((2, 2))
    assert bits.batch(torch.zeros(5, 2, 2)) == (5,)
    with pytest.raises(ValueError, match="one-hot view"):
        space.embed(torch.zeros(1, 3))


@pytest.mark.parametrize("space", [gb.Binary((2, 2)), gb.Categorical(3, 3)])
def test_uniform_sums_to_one_and_draws_every_state(space):
    q = space.uniform()
    assert gb.exact.log_z(q).item() == pytest.approx(0, abs=1e-6)
    counts = torch.bincount(gb.exact.index(space, q.sample(20_000, seed=0)), minlength=len(gb.exact.states(space)))
    expected = 20_000 / len(counts)
    # chi-square with at most 26 degrees of freedom: 80 has tail probability below 1e-6
    assert float(((counts - expected) ** 2 / expected).sum()) < 80


def test_tokens_lengths_and_states():
    space = gb.Tokens(3, 3, eos=2)
    every = gb.exact.states(space)
    assert len(every) == 1 + 2 + 4 + 8  # lengths 0, 1, 2 and 3
    assert space.lengths(every).bincount().tolist() == [1, 2, 4, 8]


@pytest.mark.parametrize("space", [gb.Real(2), gb.Tokens(3, 5, eos=0)])
def test_spaces_without_a_uniform_law_say_so(space):
    with pytest.raises(TypeError, match="uniform"):
        space.uniform()


@pytest.mark.parametrize("shape", [(2.7,), "3", True, 2.5, (True,), None])
@pytest.mark.parametrize("make", [gb.Binary, gb.Real, lambda shape: gb.Categorical(shape, 3)])
def test_sizes_must_be_integers(make, shape):
    with pytest.raises(ValueError, match="shape: expected a positive integer"):
        make(shape)


def test_sizes_may_be_numpys_integers():
    space = gb.Categorical((np.int64(2), 3), np.int32(4))
    assert space == gb.Categorical((2, 3), 4) and all(type(size) is int for size in (*space.shape, space.states))
    assert gb.Binary(np.int64(3)) == gb.Binary(3) == gb.Binary([3])


def test_discrete_states_have_a_dimension_and_at_least_two_values():
    for make in (lambda: gb.Binary(()), lambda: gb.Categorical((), 3)):
        with pytest.raises(ValueError, match=r"use Binary\(1\)"):
            make()
    assert gb.Real(()).shape == ()
    with pytest.raises(ValueError, match="states: expected an integer of at least 2, got 1"):
        gb.Categorical(3, 1)


def test_checked_real_states_carry_no_graph():
    x = torch.zeros(2, 3, requires_grad=True)
    assert not gb.Real(3).check(x).requires_grad
    kernel, model = gb.sample.MH(gb.sample.RandomWalk(0.1)), gb.distributions.Normal.standard(3)
    state, _ = kernel.step(model, kernel.init(model, x), torch.Generator().manual_seed(0))
    assert not state.x.requires_grad and x.requires_grad
