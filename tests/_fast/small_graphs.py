"""Small graphs, exact transition matrices in plain numpy, and one G-test: shared by the tests of `_fast`."""

import itertools

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6


class Graph:
    """A small Ising model as dense (n, n) couplings and as CSR."""

    def __init__(self, couplings, field):
        self.couplings, self.field = np.asarray(couplings, float), np.asarray(field, np.float32)
        self.sites = len(self.field)
        rows, columns = np.nonzero(self.couplings)
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.sites))]).astype(np.int32)
        self.neighbours = columns.astype(np.int32)
        self.weights = self.couplings[rows, columns].astype(np.float32)
        self.couplings[rows, columns] = self.weights

    @property
    def csr(self):
        return self.offsets, self.neighbours, self.weights, self.field

    def potential(self, states):
        spins = 2.0 * np.asarray(states) - 1.0
        return 0.5 * np.einsum("ci,ij,cj->c", spins, self.couplings, spins) + spins @ self.field.astype(float)


def mixed():
    """Five sites, couplings of both signs, degrees 2 to 4, a field."""
    couplings = np.zeros((5, 5))
    edges = [(0, 1, 0.7), (1, 2, -0.5), (2, 3, 0.9), (3, 4, -0.3), (4, 0, 0.4), (0, 2, 0.25), (0, 3, -0.6)]
    for left, right, weight in edges:
        couplings[left, right] = couplings[right, left] = weight
    return Graph(couplings, [0.3, -0.2, 0.1, 0.0, -0.4])


def hub():
    """Seven sites: one with five neighbours, one with none, a field."""
    couplings = np.zeros((7, 7))
    for other, weight in enumerate([0.7, -0.5, 0.9, -0.3, 0.4], 1):
        couplings[0, other] = couplings[other, 0] = weight
    return Graph(couplings, [0.1, -0.2, 0.1, 0.3, 0.0, -0.4, 0.5])


def uniform(coupling, field):
    """Five sites, one coupling, one field, degrees 1 to 3: a square with a tail."""
    couplings = np.zeros((5, 5))
    for left, right in [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]:
        couplings[left, right] = couplings[right, left] = coupling
    return Graph(couplings, np.full(5, field))


def states(sites):
    """All states (2^n, n) uint8; the index of a state is its bits read from site 0."""
    return np.array(list(itertools.product([0, 1], repeat=sites)), np.uint8)


def index(x):
    """Index in `states` of each row of x."""
    return np.asarray(x, np.int64) @ (1 << np.arange(x.shape[1])[::-1])


def gibbs_matrix(graph, site, factor=2.0):
    """Transition matrix of redrawing one site; ``factor`` other than 2 is a mutant."""
    every = states(graph.sites)
    spins = 2.0 * every - 1.0
    up = 1.0 / (1.0 + np.exp(-factor * (graph.field[site] + spins @ graph.couplings[site])))
    matrix = np.zeros((len(every), len(every)))
    for value, chance in ((1, up), (0, 1.0 - up)):
        target = every.copy()
        target[:, site] = value
        np.add.at(matrix, (np.arange(len(every)), index(target)), chance)
    return matrix


def g_test(observed, probabilities):
    """p-value of the G-test of counts against probabilities; cells expected below 5 are pooled; 0 if impossible."""
    observed, expected = np.asarray(observed, float), np.asarray(probabilities) * np.sum(observed)
    if observed[expected == 0].sum() > 0:
        return 0.0
    rare = (expected < 5) & (expected > 0)
    observed = np.append(observed[expected >= 5], observed[rare].sum())
    expected = np.append(expected[expected >= 5], expected[rare].sum())
    if expected[-1] < 5:
        merge = int(np.argmin(expected[:-1]))
        observed[merge], expected[merge] = observed[merge] + observed[-1], expected[merge] + expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    positive = observed > 0
    statistic = 2.0 * np.sum(observed[positive] * np.log(observed[positive] / expected[positive]))
    return float(stats.chi2.sf(statistic, len(expected) - 1)) if len(expected) > 1 else 1.0


def check(x, probabilities, mutant):
    """The draws x (chains, n) follow ``probabilities`` and not ``mutant`` (false alarm 1e-6 each)."""
    counts = np.bincount(index(x), minlength=len(probabilities))
    assert np.isclose(probabilities.sum(), 1.0)
    p_value = g_test(counts, probabilities)
    assert p_value > FALSE_ALARM, p_value
    assert g_test(counts, mutant) < FALSE_ALARM
