"""One frame of CTC prefix beam search: a beam of label sequences, each with the mass of its alignments so far.

A label sequence is a node of a tree of prefixes: node 0 is the empty one, and a node has a parent, a last label, and
children in a list (its first child, and of each child the next one). `slot[node]` is its place in the beam, or -1.
"""

import numpy as np
from numba import njit

NONE = -1


@njit(cache=True, nogil=True, error_model="numpy")
def log_add(a, b):
    """log(exp a + exp b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@njit(cache=True, nogil=True, error_model="numpy")
def extend(frame, blank, tokens, node, by_blank, by_label, parent, label, slot, kept_blank, kept_label, grown):
    """The masses after one frame of log-probabilities: of the sequences of the beam, and of each with a token more.

    by_blank and by_label are the log masses of the alignments that end in a blank and in the last label; kept_blank and
    kept_label are those after the frame; grown[i, c] is the mass of sequence i with tokens[c] more, -inf where that is a
    sequence of the beam, which it then joins.
    """
    place = np.full(len(frame), NONE)
    place[tokens] = np.arange(len(tokens))
    for i in range(len(node)):
        total, last = log_add(by_blank[i], by_label[i]), label[node[i]]
        kept_blank[i] = total + frame[blank]
        kept_label[i] = by_label[i] + frame[last] if last != NONE else -np.inf
        for c in range(len(tokens)):
            grown[i, c] = frame[tokens[c]] + total
        if last != NONE and place[last] != NONE:
            grown[i, place[last]] = frame[last] + by_blank[i]
    for j in range(len(node)):
        i = slot[parent[node[j]]] if node[j] else NONE
        if i != NONE and place[label[node[j]]] != NONE:
            c = place[label[node[j]]]
            kept_label[j] = log_add(kept_label[j], grown[i, c])
            grown[i, c] = -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def choose(scores, beam, floor):
    """The places of the `beam` largest scores of at least `floor` and above -inf, in order; of equal ones the first."""
    if len(scores) > beam:
        least = np.partition(scores, len(scores) - beam)[len(scores) - beam]
    else:
        least = -np.inf
    above = 0
    for score in scores:
        above += score > least
    ties, chosen, count = beam - above, np.empty(min(beam, len(scores)), np.int64), 0
    for place in range(len(scores)):
        if scores[place] == -np.inf or scores[place] < max(least, floor):
            continue
        if scores[place] == least:
            if ties == 0:
                continue
            ties -= 1
        chosen[count] = place
        count += 1
    return chosen[:count]


@njit(cache=True, nogil=True, error_model="numpy")
def child(node, token, nodes, parent, label, first_child, sibling):
    """The node of a prefix with a token more, made if there is none; and how many nodes there are then."""
    found = first_child[node]
    while found != NONE and label[found] != token:
        found = sibling[found]
    if found == NONE:
        found, nodes = nodes, nodes + 1
        parent[found], label[found], sibling[found] = node, token, first_child[node]
        first_child[node] = found
    return found, nodes


@njit(cache=True, nogil=True, error_model="numpy")
def renew(chosen, tokens, node, nodes, parent, label, first_child, sibling, slot):
    """The nodes of the chosen, of which the first len(node) places are those of the beam; slots are set anew."""
    held, width = len(node), len(tokens)
    fresh = np.empty(len(chosen), np.int64)
    for i in range(held):
        slot[node[i]] = NONE
    for k in range(len(chosen)):
        if chosen[k] < held:
            fresh[k] = node[chosen[k]]
        else:
            i, c = divmod(chosen[k] - held, width)
            fresh[k], nodes = child(node[i], tokens[c], nodes, parent, label, first_child, sibling)
        slot[fresh[k]] = k
    return fresh, nodes


@njit(cache=True, nogil=True, error_model="numpy")
def advance(frame, blank, tokens, costs, weight, bonus, beam, margin, held, tree, nodes):
    """The beam after one frame: (node, by_blank, by_label, length, log_language), and where it comes from.

    That is, of each of its sequences, the place of the one that it was before, the token that was added (NONE: none), and
    how many nodes the tree has. costs[i, c] is log p of the language model for tokens[c] after sequence i.
    """
    node, by_blank, by_label, length, log_language = held
    parent, label, first_child, sibling, slot = tree
    count, width = costs.shape
    kept_blank, kept_label, grown = np.empty(count), np.empty(count), np.empty((count, width))
    extend(frame, blank, tokens, node, by_blank, by_label, parent, label, slot, kept_blank, kept_label, grown)
    scores = np.empty(count * (1 + width))
    for i in range(count):
        fused = bonus * length[i] + (weight * log_language[i] if weight != 0 else 0)
        scores[i] = log_add(kept_blank[i], kept_label[i]) + fused
        for c in range(width):
            more = bonus + (weight * costs[i, c] if weight != 0 else 0)
            scores[count + i * width + c] = grown[i, c] + fused + more
    chosen = choose(scores, beam, scores.max() - margin)
    fresh, nodes = renew(chosen, tokens, node, nodes, parent, label, first_child, sibling, slot)
    origin, added = chosen.copy(), np.full(len(chosen), NONE)
    masses, says, lengths = np.full((2, len(chosen)), -np.inf), np.empty(len(chosen)), np.empty(len(chosen), np.int64)
    for k in range(len(chosen)):
        if chosen[k] < count:
            masses[0, k], masses[1, k] = kept_blank[chosen[k]], kept_label[chosen[k]]
            says[k], lengths[k] = log_language[chosen[k]], length[chosen[k]]
        else:
            i, c = divmod(chosen[k] - count, width)
            origin[k], added[k], masses[1, k] = i, tokens[c], grown[i, c]
            says[k], lengths[k] = log_language[i] + costs[i, c], length[i] + 1
    return (fresh, masses[0], masses[1], lengths, says), origin, added, nodes
