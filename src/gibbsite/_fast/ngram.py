"""Scores of sequences under a backoff automaton: a walk over its states, several sequences in step.

Each token needs a search among the arcs of a state and, where there is none, of the states it falls back to. One
sequence's searches wait for each other; those of LANES sequences do not, and their loads from memory overlap.
"""

import numpy as np
from numba import njit

LANES = 16


@njit(cache=True, nogil=True, error_model="numpy")
def find(first, word, state, token):
    """The arc of (state, token), or -1: by halves, without a branch that depends on what is compared."""
    low, size = first[state], first[state + 1] - first[state]
    while size > 1:
        half = size // 2
        low += half if word[low + half] <= token else 0
        size -= half
    return low if size == 1 and word[low] == token else -1


@njit(cache=True, nogil=True, error_model="numpy")
def walk(x, eos, start, first, word, log_p, target, log_backoff, fallback, out):
    """out[row] = sum of log p over the tokens of x[row] up to its first eos; state 0 has its arcs at their tokens."""
    rows, length = x.shape
    states = np.empty(LANES, np.int64)
    for block in range(0, rows, LANES):
        lanes = min(LANES, rows - block)
        states[:] = start
        for t in range(length):
            running = 0
            for lane in range(lanes):
                state = states[lane]
                if state < 0:
                    continue
                running += 1
                token = x[block + lane, t]
                arc = token if state == 0 else find(first, word, state, token)
                while arc < 0:
                    out[block + lane] += log_backoff[state]
                    state = fallback[state]
                    arc = token if state == 0 else find(first, word, state, token)
                out[block + lane] += log_p[arc]
                states[lane] = -1 if token == eos else target[arc]
            if running == 0:
                break
