"""Pairwise coupling tables of sites with several states, dense or on the edges of a graph: their sums and local fields.

Legend: B batch, L sites, q states, m sites asked for, E edges, D largest degree.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import floats
from ..space import whole
from .graph import check_edges, neighbour_table

_GATHER = 1 << 21  # up to this many pairs of sites are looked up one by one; above, the one-hot product wins


class Tables(nn.Module, ABC):
    """J_ij(a, b) = J_ji(b, a) for pairs of `sites` sites with `states` states each, J_ii = 0."""

    sites: int
    states: int

    @abstractmethod
    def sum_view(self, z: Float[Tensor, "*batch L q"]) -> Float[Tensor, "*batch"]:
        """sum_(i<j) z_i' J_ij z_j, linear in each z_i."""

    @abstractmethod
    def sum_states(self, x: Int[Tensor, "*batch L"]) -> Float[Tensor, "*batch"]:
        """sum_(i<j) J_ij(x_i, x_j)."""

    @abstractmethod
    def local_fields(self, x: Int[Tensor, "B L"], sites: Int[Tensor, "B m"] | None = None) -> Float[Tensor, "B m q"]:
        """sum_j J_ij(a, x_j) at the given sites (None: all), for every a."""

    @abstractmethod
    def tensor(self) -> Float[Tensor, "L q L q"]:
        """J."""

    @abstractmethod
    def edges(self) -> Int[Tensor, "E 2"]:
        """The pairs with a coupling, i < j."""

    @property
    @abstractmethod
    def structure_version(self) -> int:
        """Changes when `structure()` does in place, as by loading another graph."""

    @abstractmethod
    def structure(self) -> Int[Tensor, "E 2"]:
        """The pairs that are coupled or that learning could couple, i < j."""

    @abstractmethod
    def edge_tables(self) -> Float[Tensor, "E q q"]:
        """J on the pairs of `edges`."""

    @abstractmethod
    def zero_sum(self) -> tuple["Tables", Float[Tensor, "L q"]]:
        """Tables whose rows and columns sum to 0, and the fields that then leave U the same up to a constant."""


@final
class DenseTables(Tables):
    """J as a full tensor; what is learned is `weight`, and J is its symmetric part without the diagonal blocks."""

    def __init__(self, tensor: Float[Tensor, "L q L q"]):
        super().__init__()
        self.sites, self.states = tensor.shape[:2]
        self.weight = nn.Parameter(tensor.clone())

    def tensor(self) -> Tensor:
        symmetric = (self.weight + self.weight.permute(2, 3, 0, 1)) / 2
        return symmetric * (1 - torch.eye(self.sites, dtype=symmetric.dtype, device=symmetric.device))[:, None, :, None]

    def _matrix(self) -> Float[Tensor, "L*q L*q"]:
        size = self.sites * self.states
        return self.tensor().reshape(size, size)

    def sum_view(self, z: Tensor) -> Tensor:
        z = z.flatten(-2)
        return (z @ self._matrix() * z).sum(-1) / 2

    def sum_states(self, x: Tensor) -> Tensor:
        if x.numel() * self.sites > _GATHER:
            return self.sum_view(nn.functional.one_hot(x.long(), self.states).to(self.weight.dtype))
        row = x.long() + self.states * torch.arange(self.sites, device=x.device)
        i, j = torch.triu_indices(self.sites, self.sites, 1, device=x.device)
        a, b, size = row[..., i], row[..., j], self.sites * self.states
        flat = self.weight.flatten()
        return (flat[a * size + b] + flat[b * size + a]).sum(-1) / 2

    def local_fields(self, x: Tensor, sites: Tensor | None = None) -> Tensor:
        if sites is not None and sites.shape[1] == 1:
            return self._one_field(x.long(), sites[:, 0])
        view = nn.functional.one_hot(x.long(), self.states).to(self.weight.dtype).flatten(-2)
        fields = (view @ self._matrix()).view(len(x), self.sites, self.states)
        return fields if sites is None else fields.gather(1, sites[..., None].expand(-1, -1, self.states))

    def _one_field(self, x: Tensor, site: Int[Tensor, " B"]) -> Tensor:
        other, row = torch.arange(self.sites, device=x.device), site[:, None]
        # an index apart from its slice leads the result: both are (B, L, q)
        pairs = (self.weight[row, :, other, x] + self.weight[other, x, row]) / 2
        return (pairs * (other != row)[..., None]).sum(1, keepdim=True)

    def edges(self) -> Tensor:
        return self.tensor().detach().abs().amax((1, 3)).triu(1).nonzero()

    @property
    def structure_version(self) -> int:
        return 0

    def structure(self) -> Tensor:
        return torch.triu_indices(self.sites, self.sites, 1, device=self.weight.device).T

    def edge_tables(self) -> Tensor:
        i, j = self.edges().T
        return self.tensor()[i, :, j, :]

    def zero_sum(self) -> tuple["DenseTables", Tensor]:
        J = self.tensor().detach()
        rows, both = J.mean(3, keepdim=True), J.mean((1, 3), keepdim=True)
        return DenseTables(J - rows - J.mean(1, keepdim=True) + both), (rows - both).sum(2)[..., 0]


@final
class SparseTables(Tables):
    """J on the pairs of a graph: `weights` (E, q, q), the first state that of the smaller site."""

    _pairs: Tensor
    _neighbour: Tensor
    _edge: Tensor

    def __init__(self, sites: int, edges: Int[Tensor, "E 2"], weights: Float[Tensor, "E q q"]):
        super().__init__()
        edges = torch.as_tensor(edges, dtype=torch.long, device=weights.device).reshape(-1, 2)
        self.sites = sites = whole(sites, "sites")
        pairs = check_edges(edges, sites)
        weights = floats(weights, "weights", (len(pairs), "states", "states"))
        self.states = weights.shape[1]
        flipped = (edges[:, 0] > edges[:, 1])[:, None, None]
        self.weights = nn.Parameter(torch.where(flipped, weights.mT, weights).clone())
        neighbour, edge = (t.to(pairs.device) for t in neighbour_table(pairs.cpu(), sites))
        self.register_buffer("_pairs", pairs)
        self.register_buffer("_neighbour", neighbour)
        self.register_buffer("_edge", edge)

    def sum_view(self, z: Tensor) -> Tensor:
        i, j = self._pairs.T
        return torch.einsum("...ea,eab,...eb->...", z[..., i, :], self.weights, z[..., j, :])

    def sum_states(self, x: Tensor) -> Tensor:
        (i, j), x = self._pairs.T, x.long()
        cell = (torch.arange(len(i), device=x.device) * self.states + x[..., i]) * self.states + x[..., j]
        return self.weights.flatten()[cell].sum(-1)

    def local_fields(self, x: Tensor, sites: Tensor | None = None) -> Tensor:
        x = torch.cat((x.long(), x.new_zeros(len(x), 1, dtype=torch.long)), 1)
        if sites is None:
            return self._all_fields(x)
        near, edge = self._neighbour[sites], self._edge[sites]
        state = x.gather(1, near.flatten(1)).view_as(near)[..., None]
        own, first = torch.arange(self.states, device=x.device), (sites[..., None] < near)[..., None]
        cell = torch.where(first, own * self.states + state, state * self.states + own)
        present = (edge < len(self.weights))[..., None]
        cell = torch.where(present, cell + edge[..., None] * self.states**2, 0)
        if not len(self.weights):
            return self.weights.new_zeros(*sites.shape, self.states)
        return (self.weights.flatten()[cell] * present).sum(-2)

    def _all_fields(self, x: Int[Tensor, "B L+1"]) -> Tensor:
        site = torch.arange(self.sites, device=x.device)[:, None]
        count = len(self.weights)
        # by (edge and direction, state of the neighbour): the row of own states; the last table is the padding's
        rows = torch.cat((self.weights.mT, self.weights, self.weights.new_zeros(1, self.states, self.states)))
        missing = self._edge == count
        direction = torch.where(missing, 2 * count, torch.where(site < self._neighbour, self._edge, self._edge + count))
        return rows.flatten(0, 1)[direction * self.states + x[:, self._neighbour]].sum(-2)

    def tensor(self) -> Tensor:
        i, j = self._pairs.T
        upper = self.weights.new_zeros(self.sites, self.sites, self.states, self.states).index_put((i, j), self.weights)
        upper = upper.permute(0, 2, 1, 3)
        return upper + upper.permute(2, 3, 0, 1)

    def edges(self) -> Tensor:
        return self._pairs

    @property
    def structure_version(self) -> int:
        return self._pairs._version

    def structure(self) -> Tensor:
        return self._pairs

    def edge_tables(self) -> Tensor:
        return self.weights

    def zero_sum(self) -> tuple["SparseTables", Tensor]:
        W = self.weights.detach()
        rows, columns, both = W.mean(2), W.mean(1), W.mean((1, 2))[:, None]
        fields = W.new_zeros(self.sites, self.states)
        fields = fields.index_add(0, self._pairs[:, 0], rows - both).index_add(0, self._pairs[:, 1], columns - both)
        return SparseTables(self.sites, self._pairs, W - rows[..., None] - columns[:, None] + both[..., None]), fields


def from_tensor(couplings: Float[Tensor, "L q L q"]) -> DenseTables:
    """The tables of a symmetric tensor with zero diagonal blocks, or an error."""
    couplings = floats(couplings, "couplings", ("sites", "states", "sites", "states"))
    asymmetry = (couplings - couplings.permute(2, 3, 0, 1)).abs().max()
    if asymmetry > 0:
        raise ValueError(f"couplings: expected J[i, a, j, b] = J[j, b, i, a], they differ by up to {asymmetry:.3g}")
    own = couplings.diagonal(dim1=0, dim2=2).abs().max()
    if own > 0:
        raise ValueError(
            f"couplings: expected zero diagonal blocks, got up to {own:.3g}; put J[i, a, i, a] into fields[i, a]"
        )
    return DenseTables(couplings)
