"""The Potts model on any graph: dense or sparse tables of couplings, fields, lattices, the zero-sum gauge."""

import math
from collections.abc import Sequence
from typing import Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import floats, number
from ..model import Ferromagnet, Model, Multilinear
from ..space import Categorical, whole
from .classes import Coloured
from .graph import lattice_edges
from .potts_couplings import SparseTables, Tables, from_tensor


@final
class Potts(Model, Coloured, Multilinear, Ferromagnet):
    """U(x) = sum_(i<j) J_ij(x_i, x_j) + sum_i h_i(x_i), x in {0, ..., q - 1}^L.

    `couplings` (L, q, L, q) holds J_ij(a, b) at [i, a, j, b], symmetric, zero where i = j; `fields` (L, q). Both are
    learned parameters, and U depends on the symmetric part of the couplings alone. On the one-hot view U is linear in
    every site, so that the first-order change of a site is the exact one.

    The blocks are colour classes of the graph. Every pair of a dense model may become coupled by learning, so there each
    site is a block; `from_edges` keeps to its pairs.

    References: Potts (1952); Grathwohl et al. (2021), appendix H.

    Example:
        >>> import torch, gibbsite as gb
        >>> J = torch.zeros(2, 3, 2, 3)
        >>> J[0, :, 1, :] = J[1, :, 0, :] = torch.eye(3)
        >>> gb.models.Potts(J, torch.zeros(2, 3))(torch.tensor([[2, 2], [0, 1]])).tolist()
        [1.0, 0.0]
    """

    def __init__(self, couplings: Tensor | Tables, fields: Tensor | float = 0.0):
        super().__init__()
        self.pairs = couplings if isinstance(couplings, Tables) else from_tensor(couplings)
        sites, states = self.pairs.sites, self.pairs.states
        weight = next(self.pairs.parameters())
        fields = torch.as_tensor(fields, dtype=weight.dtype, device=weight.device)
        if tuple(fields.shape) not in ((), (states,), (sites, states)):
            raise ValueError(f"fields: expected a number, ({states},) or ({sites}, {states}), got {tuple(fields.shape)}")
        if not fields.isfinite().all():
            raise ValueError(f"fields: expected finite numbers, got {int((~fields.isfinite()).sum())} that are not")
        self.fields = nn.Parameter(fields.expand(sites, states).clone())
        self.space: Categorical = Categorical(sites, states)

    @classmethod
    def from_edges(
        cls,
        sites: int,
        states: int,
        edges: Int[Tensor, "E 2"],
        weights: Float[Tensor, "E q q"],
        fields: Tensor | float = 0.0,
    ) -> Self:
        """Coupling tables on the pairs `edges`, each pair once; weights[e, a, b] is J_ij(a, b) of the e-th pair (i, j)."""
        states = whole(states, "states", 2)
        weights = floats(weights, "weights", ("pairs", states, states))
        return cls(SparseTables(sites, torch.as_tensor(edges), weights), fields)

    @classmethod
    def lattice(
        cls,
        side: int | Sequence[int],
        *,
        states: int,
        coupling: float,
        field: Tensor | float = 0.0,
        periodic: bool = True,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """The nearest-neighbour lattice with J(a, b) = coupling [a = b], each edge once; side x side, or the given sides.

        For exact comparisons give `dtype=torch.float64` here: `.double()` afterwards keeps K rounded to float32.

        Example:
            >>> import gibbsite as gb
            >>> gb.models.Potts.lattice(8, states=3, coupling=1.0).space
            Categorical(shape=(64,), states=3)
        """
        sides = tuple(whole(length, "side") for length in (side if isinstance(side, Sequence) else (side, side)))
        edges = lattice_edges(sides, periodic)
        table = number(coupling, "coupling") * torch.eye(whole(states, "states", 2), dtype=dtype)
        return cls.from_edges(math.prod(sides), states, edges, table.expand(len(edges), -1, -1), field)

    @property
    def couplings(self) -> Float[Tensor, "L q L q"]:
        """The symmetric J with zero diagonal blocks, dense."""
        return self.pairs.tensor()

    @property
    def edges(self) -> Int[Tensor, "E 2"]:
        """The coupled pairs, i < j."""
        return self.pairs.edges()

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        if x.is_floating_point():
            z = self.space.embed(x, self.fields.dtype)
            return self.pairs.sum_view(z) + (z * self.fields).sum((-2, -1))
        if x.ndim < 1 or x.shape[-1] != self.pairs.sites:
            raise ValueError(f"x: expected {self.space.expected}, got shape {tuple(x.shape)}")
        site = torch.arange(self.pairs.sites, device=x.device)
        return self.pairs.sum_states(x) + self.fields[site, x.long()].sum(-1)

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Float[Tensor, "batch m q"]:
        local = self.pairs.local_fields(x, sites) + (self.fields if sites is None else self.fields[sites])
        current = x if sites is None else x.gather(1, sites)
        return local - local.gather(-1, current.long()[..., None])

    def bonds(self) -> tuple[Int[Tensor, "E 2"], Float[Tensor, " E"], Float[Tensor, "L q"]]:
        edges, tables = self.edges, self.pairs.edge_tables()
        own = torch.eye(self.pairs.states, dtype=torch.bool, device=tables.device)
        same, other = tables[:, own], tables[:, ~own]
        strength = same[:, 0] - other[:, 0] if self.pairs.states > 1 else torch.zeros_like(same[:, 0])
        bad = (same != same[:, :1]).any(1) | (other != other[:, :1]).any(1) | (strength < 0)
        if bad.any():
            i, j = edges[bad][0].tolist()
            raise ValueError(
                f"couplings: cluster kernels need J_ij(a, b) = b [a = b] + constant, b >= 0; sites {i} and {j} differ"
            )
        return edges, strength, self.fields

    @property
    def graph(self) -> Tables:
        return self.pairs

    def zero_sum(self) -> "Potts":
        """The same p with couplings and fields that sum to 0 over each state: U differs by a constant.

        J'(a, b) = J(a, b) - J(a, .) - J(., b) + J(., .), a dot for a mean; the fields take what is taken off.
        """
        pairs, fields = self.pairs.zero_sum()
        fields = fields + self.fields.detach()
        return Potts(pairs, fields - fields.mean(-1, keepdim=True))
