"""All paths of a weighted automaton that write a given label sequence, as a graph of its own: breadth first, by position.

A node is (how many labels are written, state). Arcs of the automaton are sorted by source, then by output, with those that
write nothing (-1) first, so that the few that fit are found by bisection.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _grown(array):
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def _first(output, low, high, label):
    """The first place in [low, high) whose output is at least `label`."""
    while low < high:
        middle = (low + high) // 2
        if output[middle] < label:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def restrict(first, target, output, starts, labels, counts):
    """Graphs of the utterances, side by side, as (state of each node, its position, node offsets, source, target, arc).

    Args: first (states + 1,) where each state's arcs begin; target, output (arcs,); starts: the states a path may begin in;
    labels (utterances, most) and counts (utterances,): what each writes. All int64. `arc` is the automaton's arc.
    """
    node_state, node_position = np.empty(1024, np.int64), np.empty(1024, np.int64)
    arc_source, arc_target, arc_origin = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64)
    offsets = np.zeros(len(counts) + 1, np.int64)
    place = np.full(len(first) - 1, -1, np.int64)  # the node of a state, at the level and the utterance it was last met in
    nodes, arcs = 0, 0
    for b in range(len(counts)):
        level = nodes  # the first node of the level that arcs lead to
        for state in starts:
            if nodes == len(node_state):
                node_state, node_position = _grown(node_state), _grown(node_position)
            node_state[nodes], node_position[nodes], place[state] = state, 0, nodes
            nodes += 1
        begin = level
        for step in range(2 * counts[b] + 1):
            position, writes = step // 2, step % 2 == 1
            label = labels[b, position] if writes else -1
            node, level = begin, (nodes if writes else begin)
            end = nodes
            while node < (end if writes else nodes):
                state = node_state[node]
                arc = _first(output, first[state], first[state + 1], label)
                while arc < first[state + 1] and output[arc] == label:
                    to = target[arc]
                    if place[to] < level:
                        if nodes == len(node_state):
                            node_state, node_position = _grown(node_state), _grown(node_position)
                        node_state[nodes], node_position[nodes], place[to] = to, position + writes, nodes
                        nodes += 1
                    if arcs == len(arc_source):
                        arc_source, arc_target, arc_origin = _grown(arc_source), _grown(arc_target), _grown(arc_origin)
                    arc_source[arcs], arc_target[arcs], arc_origin[arcs] = node, place[to], arc
                    arcs += 1
                    arc += 1
                node += 1
            begin = level
        offsets[b + 1] = nodes
    return node_state[:nodes], node_position[:nodes], offsets, arc_source[:arcs], arc_target[:arcs], arc_origin[:arcs]
