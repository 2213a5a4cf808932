"""Scores of sequences under a backoff automaton: a walk over its states, several sequences in step.

Each token needs a search among the arcs of a state and, where there is none, of the states it falls back to. One
sequence's searches wait for each other; those of LANES sequences do not, and their loads from memory overlap.
"""

import numpy as np
from numba import njit

LANES = 16


@njit(cache=True, nogil=True, error_model="numpy")
def find(first, word, state, token):
    """The arc of (state, token), or -1: by halves, without a branch that depends on what is compared.

    State 0 has an arc for every token, in their order.
    """
    if state == 0:
        return np.int64(token)
    low, size = first[state], first[state + 1] - first[state]
    while size > 1:
        half = size // 2
        low += half if word[low + half] <= token else 0
        size -= half
    return low if size == 1 and word[low] == token else np.int64(-1)


@njit(cache=True, nogil=True, error_model="numpy")
def step(states, tokens, first, word, log_p, target, log_backoff, fallback, after, costs):
    """after[i] and costs[i]: the state that tokens[i] leads to from states[i], and its log p."""
    costs[:] = 0
    for i in range(len(states)):
        state = states[i]
        arc = find(first, word, state, tokens[i])
        while arc < 0:
            costs[i] += log_backoff[state]
            state = fallback[state]
            arc = find(first, word, state, tokens[i])
        costs[i] += log_p[arc]
        after[i] = target[arc]


@njit(cache=True, nogil=True, error_model="numpy")
def walk(x, eos, start, first, word, log_p, target, log_backoff, fallback, out):
    """out[row] = sum of log p over the tokens of x[row] up to its first eos."""
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
                arc = find(first, word, state, token)
                while arc < 0:
                    out[block + lane] += log_backoff[state]
                    state = fallback[state]
                    arc = find(first, word, state, token)
                out[block + lane] += log_p[arc]
                states[lane] = -1 if token == eos else target[arc]
            if running == 0:
                break
