"""Exchange clustering: a word moves to the class where the likelihood of the class bigrams is largest.

counts[g, h] is how often class h follows class g, and lefts and rights are its sums over h and over g. `table[n]` is
n log n as far as the table goes, from 0 at least. `after` and `before` are sparse matrices (first, neighbour, count) of what
follows each word and what precedes it. A word taken apart is (classes that follow, their counts by class, classes that
precede, their counts by class, how often it follows itself).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def _n_log_n(n, table):
    return table[n] if n < len(table) else n * np.log(n)


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(word, matrix, classes, totals, touched):
    """totals[class] over the word's neighbours other than itself, their classes, and how often the word is its own."""
    first, neighbour, count = matrix
    kinds, own = 0, 0
    for at in range(first[word], first[word + 1]):
        if neighbour[at] == word:
            own = count[at]
            continue
        group = classes[neighbour[at]]
        if totals[group] == 0:
            touched[kinds] = group
            kinds += 1
        totals[group] += count[at]
    return touched[:kinds], own


@njit(cache=True, nogil=True, error_model="numpy")
def _add(sign, group, apart, counts, lefts, rights):
    """Adds a word to a class (sign 1), or takes it out (sign -1)."""
    follows, follow_totals, precedes, precede_totals, own = apart
    for other in follows:
        counts[group, other] += sign * follow_totals[other]
        lefts[group] += sign * follow_totals[other]
    for other in precedes:
        counts[other, group] += sign * precede_totals[other]
        rights[group] += sign * precede_totals[other]
    counts[group, group] += sign * own
    lefts[group] += sign * own
    rights[group] += sign * own


@njit(cache=True, nogil=True, error_model="numpy")
def _gain(group, apart, counts, lefts, rights, table):
    """By how much the log-likelihood rises when a word that is in no class joins this one."""
    follows, follow_totals, precedes, precede_totals, own = apart
    as_left, as_right, total = own, own, 0.0
    for other in follows:
        as_left += follow_totals[other]
        if other != group:
            held = counts[group, other]
            total += _n_log_n(held + follow_totals[other], table) - _n_log_n(held, table)
    for other in precedes:
        as_right += precede_totals[other]
        if other != group:
            held = counts[other, group]
            total += _n_log_n(held + precede_totals[other], table) - _n_log_n(held, table)
    held = counts[group, group]
    total += _n_log_n(held + follow_totals[group] + precede_totals[group] + own, table) - _n_log_n(held, table)
    total -= _n_log_n(lefts[group] + as_left, table) - _n_log_n(lefts[group], table)
    return total - (_n_log_n(rights[group] + as_right, table) - _n_log_n(rights[group], table))


@njit(cache=True, nogil=True, error_model="numpy")
def exchange(words, fixed, rounding, after, before, classes, counts, lefts, rights, table):
    """Moves each of the words in turn to its best class, other than those below `fixed`; how many moved.

    A word stays where it is unless another class is better by more than rounding; of equally good ones it takes the first.
    """
    groups, moved = len(lefts), 0
    follow_totals, precede_totals = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    left_room, right_room = np.empty(groups, np.int64), np.empty(groups, np.int64)
    for word in words:
        follows, own = _gather(word, after, classes, follow_totals, left_room)
        precedes, _ = _gather(word, before, classes, precede_totals, right_room)
        apart = (follows, follow_totals, precedes, precede_totals, own)
        _add(-1, classes[word], apart, counts, lefts, rights)
        best, most = classes[word], _gain(classes[word], apart, counts, lefts, rights, table) + rounding
        for group in range(fixed, groups):
            rise = _gain(group, apart, counts, lefts, rights, table)
            if rise > most:
                best, most = group, rise
        _add(1, best, apart, counts, lefts, rights)
        moved += best != classes[word]
        classes[word] = best
        follow_totals[follows] = 0
        precede_totals[precedes] = 0
    return moved
