"""Stationarity on random small models: any size, couplings and fields, up to where weights underflow nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gb

S = gb.sample

KERNELS = [
    S.Gibbs(),
    S.GibbsSweep(),
    S.BlockGibbs(),
    S.HammingBall(2, 1),
    S.MH(S.Informed()),
    S.MH(S.Informed(draws=3)),
    S.MH(S.Informed(how="exact", balance=S.Barker())),
    S.MH(S.InformedWindow(2)),
    S.MH(S.PathAuxiliary(3)),
    S.MH(S.DiscreteLangevin(0.7)),
    S.MH(S.RandomFlips()),
    S.Wolff(),
    S.SwendsenWang(),
]

models = st.tuples(st.integers(2, 4), st.integers(2, 3), st.floats(0.0, 3.0), st.integers(0, 2**31))


def potts(sites: int, states: int, scale: float, seed: int) -> gb.models.Potts:
    """A random ferromagnetic Potts model on a random graph with fields."""
    g = torch.Generator().manual_seed(seed)
    pairs = torch.triu_indices(sites, sites, 1).T
    pairs = pairs[torch.rand(len(pairs), generator=g) < 0.7]
    strength = scale * torch.rand(len(pairs), 1, 1, generator=g, dtype=torch.float64)
    fields = scale * torch.randn(sites, states, generator=g, dtype=torch.float64)
    return gb.models.Potts.from_edges(sites, states, pairs, strength * torch.eye(states, dtype=torch.float64), fields)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k.proposal if isinstance(k, S.MH) else k).__name__)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(models)
def test_every_kernel_is_stationary_on_any_small_model(kernel, drawn):
    model = potts(*drawn)
    p = gb.exact.probabilities(model)
    matrix = gb.exact.transition_matrix(kernel, model)
    assert float((matrix.sum(1) - 1).abs().max()) < 1e-12
    assert float((p @ matrix - p).abs().sum()) < 1e-10
