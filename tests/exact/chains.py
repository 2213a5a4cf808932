"""Linear chains for tests: random weights, log Z by one torch recursion, and by enumeration."""

import itertools

import torch


def draw(B, T, K, *, seed, scale=1.0, forbidden=0.0, positions=False, dtype=torch.float64):
    """node, edge, start, end, lengths; ``forbidden`` is how many of the labels and edges are; the first chain is whole."""
    g = torch.Generator().manual_seed(seed)
    shapes = (B, T, K), (B, T - 1, K, K) if positions else (K, K), (K,), (K,)
    node, edge, start, end = (scale * torch.randn(s, generator=g, dtype=torch.float64).to(dtype) for s in shapes)
    edge[torch.rand(edge.shape, generator=g) < forbidden] = -torch.inf
    node[torch.rand(node.shape, generator=g) < forbidden / 4] = -torch.inf
    lengths = torch.randint(0, T + 1, (B,), generator=g)
    lengths[0] = T
    return node, edge, start, end, lengths


def by_recursion(node, edge, start, end, lengths):
    """log Z chain by chain, differentiable; -inf is -1e12 meanwhile, of which torch has gradients."""
    node, edge, start, end = (t.double().clamp(min=-1e12) for t in (node, edge, start, end))
    results = []
    for chain, length in enumerate(lengths.tolist()):
        a = start + node[chain, 0] if length else node.new_zeros(())
        for t in range(1, length):
            table = edge if edge.ndim == 2 else edge[chain, t - 1]
            a = (a[:, None] + table).logsumexp(0) + node[chain, t]
        results.append((a + end).logsumexp(0) if length else a)
    z = torch.stack(results)
    return torch.where(z < -1e11, -torch.inf, z)


def scores(node, edge, start, end, length):
    """Every label sequence of one chain (edge: T - 1 tables) and its score."""
    labels = node.shape[-1]
    every = list(itertools.product(range(labels), repeat=length))
    total = []
    for y in every:
        value = (start[y[0]] + end[y[-1]]) if length else node.new_zeros(())
        value = value + sum(node[t, k] for t, k in enumerate(y))
        total.append(value + sum(edge[t, i, j] for t, (i, j) in enumerate(itertools.pairwise(y))))
    return every, torch.stack(total)
