"""The Ising model on any graph: dense or sparse couplings, fields, lattices and random graphs."""

from collections.abc import Sequence
from typing import Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .. import random
from ..check import number
from ..model import Ferromagnet, Model, Multilinear
from ..random import Seed
from ..space import Binary, whole
from .classes import Coloured
from .couplings import Couplings, SparseCouplings, from_matrix
from .graph import lattice_edges


@final
class Ising(Model, Coloured, Multilinear, Ferromagnet):
    """U(x) = sum_(i<j) J_ij s_i s_j + sum_i h_i s_i with s = 2x - 1, x in {0, 1}^n.

    Each edge counts once. The GWG paper writes U = theta x^T A x with a symmetric adjacency matrix A, so that each edge
    counts twice: its theta is a coupling of 2 theta here (`Ising.from_theta`). The critical coupling of the square
    lattice is log(1 + sqrt 2) / 2 = 0.4407, theta = 0.2203.

    `couplings` is a symmetric (n, n) matrix with zero diagonal, dense or torch-sparse; both are learned parameters. Every
    pair of a dense model may become coupled by learning, so its blocks are single sites; a sparse one has colour classes.

    References: Ising (1925); Grathwohl et al. (2021), appendix F.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([0.5, 0.0]))
        >>> model(torch.tensor([[1, 1], [1, 0], [0, 0]])).tolist()
        [1.5, -0.5, 0.5]
    """

    def __init__(self, couplings: Tensor | Couplings, field: Tensor | float = 0.0):
        super().__init__()
        self.pairs = couplings if isinstance(couplings, Couplings) else from_matrix(torch.as_tensor(couplings))
        sites = self.pairs.sites
        weight = next(self.pairs.parameters())
        field = torch.as_tensor(field, dtype=weight.dtype, device=weight.device)
        if tuple(field.shape) not in ((), (sites,)):
            raise ValueError(f"field: expected a number or shape ({sites},), got shape {tuple(field.shape)}")
        if not field.isfinite().all():
            raise ValueError(f"field: expected finite numbers, got {int((~field.isfinite()).sum())} that are not")
        self.field = nn.Parameter(field.expand(sites).clone())
        self.space = Binary(sites)

    @classmethod
    def from_edges(
        cls,
        sites: int,
        edges: Tensor,
        weights: Tensor | float,
        field: Tensor | float = 0.0,
        *,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """Couplings `weights` (one a pair, or one for all) on the pairs `edges` (E, 2), each pair once.

        Numbers become torch's default type, or `dtype`: 0.4 in float32 stays its float32 value after `.double()`.
        """
        return cls(SparseCouplings(sites, torch.as_tensor(edges), torch.as_tensor(weights, dtype=dtype)), field)

    @classmethod
    def lattice(
        cls,
        side: int | Sequence[int],
        *,
        coupling: float,
        field: float = 0.0,
        periodic: bool = True,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """The nearest-neighbour lattice, side x side or with the given sides; `coupling` is K, each edge once.

        For exact comparisons give `dtype=torch.float64` here: `.double()` afterwards keeps K rounded to float32.

        Example:
            >>> import gibbsite as gb
            >>> gb.models.Ising.lattice(40, coupling=0.44).space
            Binary(shape=(1600,))
        """
        sides = tuple(whole(length, "side") for length in (side if isinstance(side, Sequence) else (side, side)))
        edges = lattice_edges(sides, periodic)
        coupling = number(coupling, "coupling")
        return cls.from_edges(int(torch.tensor(sides).prod()), edges, coupling, field, dtype=dtype)

    @classmethod
    def from_theta(cls, side: int | Sequence[int], *, theta: float, field: float = 0.0, periodic: bool = True) -> Self:
        """The lattice in the GWG paper's convention: coupling = 2 theta."""
        return cls.lattice(side, coupling=2 * number(theta, "theta"), field=field, periodic=periodic)

    @classmethod
    def erdos_renyi(cls, sites: int, *, degree: float = 4.0, scale: float = 0.5, seed: Seed) -> Self:
        """Each pair coupled with probability degree / (sites - 1), with J_ij from N(0, scale^2), each edge counted once.

        The GWG paper (appendix F.2) draws the entries of its J from N(0, 1/4) and writes U = x^T J x, which counts each edge
        twice: its graph is `erdos_renyi(200, degree=4, scale=1.0)`, whose J is twice the paper's.
        """
        sites, scale, source = whole(sites, "sites"), number(scale, "scale", least=0), random.generator(seed)
        degree = number(degree, "degree", least=0, most=max(1, sites - 1))
        pairs = torch.triu_indices(sites, sites, 1).T
        kept = random.uniform((len(pairs),), source) < degree / max(1, sites - 1)
        return cls.from_edges(sites, pairs[kept], scale * random.normal((int(kept.sum()),), source))

    @property
    def couplings(self) -> Float[Tensor, "sites sites"]:
        """The symmetric matrix J with zero diagonal, dense."""
        return self.pairs.matrix()

    @property
    def edges(self) -> Int[Tensor, "edges 2"]:
        """The coupled pairs, i < j."""
        return self.pairs.edges()

    def forward(self, x: Tensor) -> Float[Tensor, "*batch"]:
        s = 2 * self.space.embed(x, self.field.dtype) - 1
        return self.pairs.quadratic(s) + s @ self.field

    def site_logits(self, x: Tensor, sites: Tensor | None = None) -> Float[Tensor, "batch m 2"]:
        s = 2 * self.space.embed(x, self.field.dtype) - 1
        local = self.pairs.local_fields(s, sites) + (self.field if sites is None else self.field[sites])
        current = s if sites is None else s.gather(1, sites)
        values = torch.tensor([-1.0, 1.0], dtype=s.dtype, device=s.device)
        return (values - current[..., None]) * local[..., None]

    def bonds(self) -> tuple[Int[Tensor, "edges 2"], Float[Tensor, " edges"], Float[Tensor, "sites 2"]]:
        edges, weights = self.edges, self.pairs.edge_weights()
        if weights.numel() and weights.min() < 0:
            i, j = edges[weights.argmin()].tolist()
            raise ValueError(f"couplings: cluster kernels need J >= 0, got {weights.min():.3g} between sites {i} and {j}")
        return edges, 2 * weights, torch.stack((-self.field, self.field), -1)

    @property
    def graph(self) -> Couplings:
        return self.pairs
