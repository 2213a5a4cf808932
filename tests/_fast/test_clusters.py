"""Wolff and Swendsen-Wang against the exact transition probabilities (bonds enumerated), with mutants."""

import itertools

import numpy as np
import pytest

from gibbsite._fast import clusters

from .small_graphs import check, index, mixed, states, uniform

CHAINS = 60_000
START = np.array([1, 0, 1, 1, 1], np.uint8)


def _partitions(graph, state, factor):
    """Every set of open bonds: (probability, label of each site's cluster)."""
    edges = [(i, j) for i, j in itertools.combinations(range(graph.sites), 2) if graph.couplings[i, j] != 0]
    spins = 2 * state.astype(int) - 1
    agreement = [graph.couplings[i, j] * spins[i] * spins[j] for i, j in edges]
    chance = [1 - np.exp(-factor * max(value, 0.0)) for value in agreement]
    for opened in itertools.product([0, 1], repeat=len(edges)):
        weight = np.prod([p if o else 1 - p for p, o in zip(chance, opened)])
        if weight > 0:
            label = list(range(graph.sites))
            for (i, j), o in zip(edges, opened):
                if o:
                    label = [label[i] if value == label[j] else value for value in label]
            yield weight, np.array(label)


def _wolff_row(graph, state, clamped, factor=2.0):
    row, free = np.zeros(2**graph.sites), np.flatnonzero(np.asarray(clamped) == 0)
    for weight, label in _partitions(graph, state, factor):
        for site in free:
            members = label == label[site]
            pull = ((2.0 * state - 1) * graph.field)[members].sum()
            chance = 0.0 if np.any(np.asarray(clamped)[members]) else min(1.0, np.exp(-2 * pull))
            flipped = np.where(members, 1 - state, state)
            row[index(flipped[None])[0]] += weight * chance / len(free)
            row[index(state[None])[0]] += weight * (1 - chance) / len(free)
    return row


def _swendsen_wang_row(graph, state, clamped, factor=2.0):
    row = np.zeros(2**graph.sites)
    for weight, label in _partitions(graph, state, factor):
        groups = [label == value for value in np.unique(label)]
        chances = []
        for members in groups:
            pull = ((2.0 * state - 1) * graph.field)[members].sum()
            chances.append(0.0 if np.any(np.asarray(clamped)[members]) else 1 / (1 + np.exp(2 * pull)))
        for flips in itertools.product([0, 1], repeat=len(groups)):
            target = state.copy()
            for members, flip in zip(groups, flips):
                target[members] ^= flip
            row[index(target[None])[0]] += weight * np.prod([p if f else 1 - p for p, f in zip(chances, flips)])
    return row


@pytest.mark.parametrize("clamped", [[0, 0, 0, 0, 0], [0, 0, 1, 0, 0]], ids=["all", "clamped"])
@pytest.mark.parametrize("graph", [uniform(0.4, 0.15), mixed()], ids=["ferromagnet", "mixed"])
@pytest.mark.parametrize(
    ("kernel", "exact"), [(clusters.wolff, _wolff_row), (clusters.swendsen_wang, _swendsen_wang_row)], ids=["wolff", "sw"]
)
def test_exact_law(kernel, exact, graph, clamped):
    """Two steps from a fixed start (false alarm 1e-6); the mutant opens bonds with 1 - exp(-|J|)."""
    x = np.tile(START, (CHAINS, 1))
    kernel(x, *graph.csr, np.array(clamped, np.uint8), np.uint64(5), 2)
    laws = []
    for factor in (2.0, 1.0):
        matrix = np.stack([exact(graph, state, clamped, factor) for state in states(5)])
        laws.append((matrix @ matrix)[index(START[None])[0]])
        if factor == 2.0:
            law = np.exp(graph.potential(states(5)))
            law *= np.all(states(5)[:, np.array(clamped) == 1] == START[np.array(clamped) == 1], 1)
            assert np.abs(law @ matrix - law).max() < 1e-10 * law.sum()  # the oracle itself is stationary
    check(x, *laws)


def test_counts():
    """Free spins: Wolff flips one site a step, Swendsen-Wang meets one cluster a site; all clamped: nothing flips."""
    none, offsets = np.zeros(0, np.int32), np.zeros(7, np.int32)
    x, field, free = np.zeros((3, 6), np.uint8), np.zeros(6, np.float32), np.zeros(6, np.uint8)
    graph = (offsets, none, none.astype(np.float32), field)
    assert clusters.wolff(x, *graph, free, np.uint64(1), 10).tolist() == [10, 10, 10]
    assert clusters.swendsen_wang(x, *graph, free, np.uint64(1), 10).tolist() == [60, 60, 60]
    before = x.copy()
    assert clusters.wolff(x, *graph, np.ones(6, np.uint8), np.uint64(1), 10).tolist() == [0, 0, 0]
    clusters.swendsen_wang(x, *graph, np.ones(6, np.uint8), np.uint64(1), 10)
    assert np.array_equal(x, before)
