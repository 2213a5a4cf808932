"""Greedy colouring of a graph, breadth first, so that a bipartite graph gets two colours."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def breadth_first(offsets: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """The smallest colour that no coloured neighbour has, site by site in breadth-first order; int64 (sites,)."""
    sites = len(offsets) - 1
    colour = np.full(sites, -1, np.int64)
    seen = np.zeros(sites, np.bool_)
    queue = np.empty(sites, np.int64)
    taken = np.full(sites + 1, -1, np.int64)
    for root in range(sites):
        if seen[root]:
            continue
        seen[root] = True
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            site = queue[head]
            head += 1
            for k in range(offsets[site], offsets[site + 1]):
                other = neighbours[k]
                if colour[other] >= 0:
                    taken[colour[other]] = site
                if not seen[other]:
                    seen[other] = True
                    queue[tail] = other
                    tail += 1
            smallest = 0
            while taken[smallest] == site:
                smallest += 1
            colour[site] = smallest
    return colour
