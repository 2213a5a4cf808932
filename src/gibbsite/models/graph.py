"""Undirected graphs of sites: lattices, random graphs, colour classes, and the padded table of neighbours."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from .._fast import colour


def lattice_edges(sides: Sequence[int], periodic: bool = True) -> Int[Tensor, "edges 2"]:
    """Nearest-neighbour pairs of a lattice, each once, sites in row-major order; a periodic side of 2 is one pair."""
    if any(side < 1 for side in sides):
        raise ValueError(f"sides: expected positive sizes, got {tuple(sides)}")
    site = torch.arange(int(torch.tensor(sides).prod())).view(*sides)
    pairs = []
    for axis, side in enumerate(sides):
        wrap = periodic and side > 2
        a = site if wrap else site.narrow(axis, 0, side - 1)
        b = site.roll(-1, axis) if wrap else site.narrow(axis, 1, side - 1)
        pairs.append(torch.stack((a.flatten(), b.flatten()), -1))
    return torch.cat(pairs).sort(-1).values


def check_edges(edges: Tensor, sites: int) -> Int[Tensor, "edges 2"]:
    """The edges as (i, j) with i < j, or an error for a loop, a repeated edge or a site out of range."""
    edges = torch.as_tensor(edges, dtype=torch.long).reshape(-1, 2).sort(-1).values
    if edges.numel() and (edges.min() < 0 or edges.max() >= sites):
        raise ValueError(f"edges: expected sites in [0, {sites}), got {int(edges.min())} to {int(edges.max())}")
    if bool((edges[:, 0] == edges[:, 1]).any()):
        raise ValueError("edges: a site cannot be coupled to itself")
    if len(edges.unique(dim=0)) != len(edges):
        raise ValueError("edges: expected each pair once")
    return edges


def colour_classes(edges: Tensor, sites: int) -> list[Int[Tensor, " members"]]:
    """A partition of the sites into independent sets, found greedily (two sets on a bipartite graph)."""
    offsets, neighbours, _ = compressed_rows(edges, sites)
    colours = torch.from_numpy(colour.breadth_first(offsets.numpy(), neighbours.numpy()))
    return [(colours == c).nonzero()[:, 0] for c in range(int(colours.max()) + 1)]


def check_independent(blocks: Sequence[Sequence[int]], edges: Tensor, sites: int) -> None:
    """An error unless the blocks hold every site once and no block holds two coupled sites."""
    block_of = torch.full((sites,), -1)
    for number, block in enumerate(blocks):
        members = torch.as_tensor(block, dtype=torch.long)
        if (
            not len(members)
            or len(members.unique()) != len(members)
            or members.min() < 0
            or members.max() >= sites
            or bool((block_of[members] >= 0).any())
        ):
            raise ValueError(f"blocks: expected each of the {sites} sites in exactly one block; block {number} breaks this")
        block_of[members] = number
    if bool((block_of < 0).any()):
        raise ValueError(f"blocks: site {int((block_of < 0).nonzero()[0])} is in none of them")
    inside = edges[block_of[edges[:, 0]] == block_of[edges[:, 1]]]
    if len(inside):
        i, j = inside[0].tolist()
        raise ValueError(
            f"blocks: sites {i} and {j} are coupled and both in block {int(block_of[i])}; a block must hold no two coupled "
            "sites, or its sites cannot be drawn independently"
        )


def compressed_rows(edges: Tensor, sites: int) -> tuple[Tensor, Tensor, Tensor]:
    """The graph row by row: offsets (sites + 1,), neighbours (2 edges,) and the number of the edge to each (2 edges,)."""
    ends = torch.cat((edges, edges.flip(-1)))
    order = ends[:, 0].argsort(stable=True)
    degree = torch.bincount(ends[:, 0], minlength=sites)
    offsets = torch.cat((degree.new_zeros(1), degree.cumsum(0)))
    number = torch.arange(len(edges), device=edges.device).repeat(2)
    return offsets, ends[order, 1], number[order]


def neighbour_table(edges: Tensor, sites: int) -> tuple[Int[Tensor, "sites degree"], Int[Tensor, "sites degree"]]:
    """Each site's neighbours and the edges to them, padded: with the site `sites` and the edge `len(edges)`."""
    offsets, neighbours, number = compressed_rows(edges, sites)
    degree = offsets.diff()
    row = torch.arange(sites).repeat_interleave(degree)
    column = torch.arange(len(neighbours)) - offsets[:-1].repeat_interleave(degree)
    shape = (sites, int(degree.max()) if len(edges) else 0)
    neighbour, edge = torch.full(shape, sites), torch.full(shape, len(edges))
    neighbour[row, column], edge[row, column] = neighbours, number
    return neighbour, edge
