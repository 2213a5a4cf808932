"""Pairwise couplings of spins, dense or on the edges of a graph: their quadratic form and local fields."""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..space import whole
from .graph import check_edges, neighbour_table


class Couplings(nn.Module, ABC):
    """A symmetric J with zero diagonal over `sites` sites."""

    sites: int

    @abstractmethod
    def quadratic(self, s: Float[Tensor, "*batch sites"]) -> Float[Tensor, "*batch"]:
        """sum_(i<j) J_ij s_i s_j."""

    @abstractmethod
    def local_fields(self, s: Float[Tensor, "batch sites"], sites: Tensor | None = None) -> Float[Tensor, "batch m"]:
        """sum_j J_ij s_j at the given sites (None: all)."""

    @abstractmethod
    def matrix(self) -> Float[Tensor, "sites sites"]:
        """J."""

    @abstractmethod
    def edges(self) -> Int[Tensor, "edges 2"]:
        """The pairs with a coupling, i < j."""

    @property
    @abstractmethod
    def structure_version(self) -> int:
        """Changes when `structure()` does in place, as by loading another graph."""

    @abstractmethod
    def structure(self) -> Int[Tensor, "edges 2"]:
        """The pairs that are coupled or that learning could couple, i < j."""

    @abstractmethod
    def structure_weights(self) -> Float[Tensor, " edges"]:
        """J on `structure()`."""

    @abstractmethod
    def edge_weights(self) -> Float[Tensor, " edges"]:
        """J on those pairs."""


@final
class DenseCouplings(Couplings):
    """J as a full matrix; what is learned is `weight`, and J is its symmetric part without the diagonal."""

    def __init__(self, matrix: Float[Tensor, "sites sites"]):
        super().__init__()
        self.sites = len(matrix)
        self.weight = nn.Parameter(matrix.clone())

    def matrix(self) -> Tensor:
        symmetric = (self.weight + self.weight.T) / 2
        return symmetric - torch.diag(symmetric.diagonal())

    def quadratic(self, s: Tensor) -> Tensor:
        return (s @ self.matrix() * s).sum(-1) / 2

    def local_fields(self, s: Tensor, sites: Tensor | None = None) -> Tensor:
        if sites is None:
            return s @ self.matrix()
        if sites.shape[1] == 1:
            rows = (self.weight[sites[:, 0]] + self.weight[:, sites[:, 0]].T) / 2
            rows = rows.scatter(1, sites, 0.0)
            return (rows * s).sum(-1, keepdim=True)
        return (s @ self.matrix()).gather(1, sites)

    def edges(self) -> Tensor:
        return self.matrix().detach().triu(1).nonzero()

    @property
    def structure_version(self) -> int:
        return 0

    def structure(self) -> Tensor:
        return torch.triu_indices(self.sites, self.sites, 1, device=self.weight.device).T

    def structure_weights(self) -> Tensor:
        i, j = torch.triu_indices(self.sites, self.sites, 1, device=self.weight.device)
        return (self.weight[i, j] + self.weight[j, i]) / 2

    def edge_weights(self) -> Tensor:
        i, j = self.edges().T
        return self.matrix()[i, j]


@final
class SparseCouplings(Couplings):
    """J on the pairs of a graph; `weights` is one number a pair."""

    _pairs: Tensor
    _neighbour: Tensor
    _edge: Tensor

    def __init__(self, sites: int, edges: Int[Tensor, "edges 2"], weights: Tensor):
        super().__init__()
        self.sites = sites = whole(sites, "sites")
        pairs = check_edges(edges, sites).to(weights.device)
        if (
            tuple(weights.shape) not in ((), (len(pairs),))
            or not weights.is_floating_point()
            or not weights.isfinite().all()
        ):
            raise ValueError(
                f"weights: expected finite floats, one or {len(pairs)}, got {weights.dtype} {tuple(weights.shape)}"
            )
        neighbour, edge = (t.to(pairs.device) for t in neighbour_table(pairs.cpu(), sites))
        self.weights = nn.Parameter(weights.expand(len(pairs)).clone())
        self.register_buffer("_pairs", pairs)
        self.register_buffer("_neighbour", neighbour)
        self.register_buffer("_edge", edge)

    def quadratic(self, s: Tensor) -> Tensor:
        i, j = self._pairs.T
        return s.index_select(-1, i) * s.index_select(-1, j) @ self.weights

    def local_fields(self, s: Tensor, sites: Tensor | None = None) -> Tensor:
        s = torch.cat((s, torch.zeros_like(s[:, :1])), 1)
        weights = torch.cat((self.weights, self.weights.new_zeros(1)))
        if sites is None:
            return (s[:, self._neighbour] * weights[self._edge]).sum(-1)
        near = self._neighbour[sites]
        return (s.gather(1, near.flatten(1)).view_as(near) * weights[self._edge[sites]]).sum(-1)

    def matrix(self) -> Tensor:
        i, j = self._pairs.T
        upper = self.weights.new_zeros(self.sites, self.sites).index_put((i, j), self.weights)
        return upper + upper.T

    def edges(self) -> Tensor:
        return self._pairs

    @property
    def structure_version(self) -> int:
        return self._pairs._version

    def structure(self) -> Tensor:
        return self._pairs

    def structure_weights(self) -> Tensor:
        return self.weights

    def edge_weights(self) -> Tensor:
        return self.weights


def from_matrix(couplings: Tensor) -> Couplings:
    """The couplings of a symmetric matrix with zero diagonal, dense or torch-sparse."""
    if couplings.ndim != 2 or couplings.shape[0] != couplings.shape[1]:
        raise ValueError(f"couplings: expected a square matrix, got shape {tuple(couplings.shape)}")
    if not couplings.is_floating_point():
        raise ValueError(f"couplings: expected floats, got {couplings.dtype}")
    if couplings.layout == torch.strided:
        _check_symmetric(couplings - couplings.T, couplings.diagonal(), couplings)
        return DenseCouplings(couplings)
    pairs = couplings.to_sparse_coo().coalesce()
    (i, j), value = pairs.indices(), pairs.values()
    _check_symmetric((pairs - pairs.t()).coalesce().values(), value[i == j], value)
    return SparseCouplings(len(couplings), torch.stack((i, j), -1)[i < j], value[i < j])


def _check_symmetric(asymmetry: Tensor, diagonal: Tensor, values: Tensor) -> None:
    if not values.isfinite().all():
        raise ValueError(f"couplings: expected finite numbers, got {int((~values.isfinite()).sum())} that are not")
    if asymmetry.numel() and asymmetry.abs().max() > 0:
        raise ValueError(
            f"couplings: expected a symmetric matrix, J and its transpose differ by up to {asymmetry.abs().max():.3g}"
        )
    if diagonal.numel() and diagonal.abs().max() > 0:
        raise ValueError(
            f"couplings: expected a zero diagonal, got up to {diagonal.abs().max():.3g}; s_i^2 = 1 adds only a constant"
        )
