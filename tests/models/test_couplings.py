"""Dense and sparse couplings of spins say the same."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.models.couplings import DenseCouplings, SparseCouplings, from_matrix


def pair(sites, seed, density=0.5):
    g = torch.Generator().manual_seed(seed)
    J = torch.randn(sites, sites, generator=g, dtype=torch.float64).triu(1)
    J = J * (torch.rand(sites, sites, generator=g) < density)
    J = J + J.T
    s = 2.0 * torch.randint(2, (6, sites), generator=g).double() - 1
    sites_of = torch.randint(sites, (6, 4), generator=g)
    return J, s, sites_of


@given(st.integers(1, 7), st.integers(0, 1000))
@settings(deadline=None)
def test_dense_sparse_and_definition_agree(sites, seed):
    J, s, some = pair(sites, seed)
    sparse = from_matrix(J.to_sparse())
    dense = from_matrix(J)
    assert isinstance(sparse, SparseCouplings)
    assert isinstance(dense, DenseCouplings)
    slow = torch.stack([sum((J[i, j] * r[i] * r[j] for i in range(sites) for j in range(i)), r.new_zeros(())) for r in s])
    for c in (dense, sparse):
        assert (c.matrix() - J).abs().max() == 0
        assert (c.quadratic(s) - slow).abs().max() < 1e-12
        assert (c.local_fields(s) - s @ J).abs().max() < 1e-12
        for asked in (some, some[:, :1]):
            assert (c.local_fields(s, asked) - (s @ J).gather(1, asked)).abs().max() < 1e-12
        i, j = c.edges().T
        assert bool((i < j).all())
        assert torch.equal(J[i, j], c.edge_weights().detach())
    assert len(dense.structure()) == sites * (sites - 1) // 2
    assert torch.equal(sparse.structure(), sparse.edges())


def test_a_learned_dense_weight_counts_by_its_symmetric_part_without_the_diagonal():
    J, s, _ = pair(4, 0, density=1.0)
    c = DenseCouplings(J)
    with torch.no_grad():
        before = c.quadratic(s)
        c.weight += torch.diag(torch.ones(4, dtype=torch.float64))
        c.weight[0, 1] += 1.0
        c.weight[1, 0] -= 1.0
        assert (c.quadratic(s) - before).abs().max() < 1e-12
        assert (c.local_fields(s) - s @ J).abs().max() < 1e-12
        assert (c.local_fields(s, torch.zeros(6, 1, dtype=torch.long))[:, 0] - (s @ J)[:, 0]).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (torch.zeros(2, 3), "square"),
        (torch.zeros(2), "square"),
        (torch.zeros(2, 2, dtype=torch.long), "floats"),
        (torch.tensor([[0.0, 1.0], [0.5, 0.0]]), "symmetric"),
        (torch.eye(2), "zero diagonal"),
        (torch.tensor([[0.0, float("nan")], [float("nan"), 0.0]]), "finite"),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_matrices_refused(matrix, message, sparse):
    with pytest.raises(ValueError, match=message):
        from_matrix(matrix.to_sparse() if sparse else matrix)


@pytest.mark.parametrize("weights", [torch.zeros(3), torch.zeros(2, dtype=torch.long), torch.tensor([0.0, float("inf")])])
def test_sparse_weights_refused(weights):
    with pytest.raises(ValueError, match="weights: expected finite floats, one or 2"):
        SparseCouplings(3, torch.tensor([[0, 1], [1, 2]]), weights)
