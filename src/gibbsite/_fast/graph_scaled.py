"""One weighted automaton for many utterances: forward and backward in scaled probabilities, 8 utterances side by side.

Per frame and utterance ``r(g) = x(label of g) sum over arcs a of g of w(a) alpha(source of a)``, ``alpha'(s) = sum over
groups g into s of r(g) / c``, ``c = sum of all r``; a group is what arcs of one target and one label have in common, and
``x = exp(emission - their largest)``. Backward likewise, divided by its largest value. No logarithm or exponential is
taken within a frame but those of ``c``.

What is lost to underflow has a bound. All factors are at most 1, so that a frame loses at most (arcs times the smallest
normal number) in the unit it is computed in. Forward each such loss would have been multiplied by at most the largest
``beta``; backward it is added instead, to every state, so that ``beta`` is never too small and its largest value is known.
Where the sum of these bounds exceeds 1e-13 of Z the result is not certain, and the caller takes logarithms instead
(`_fast.graph`).
"""

import numpy as np
from numba import njit

from gibbsite._fast.lanes import LANES, add_product, add_scaled, rows, set_largest, set_product

TINY = np.finfo(np.float64).tiny
LOG_LOST = np.log(1e-13)
_NONE = -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def likelihoods(emissions, lengths, begin):
    """x (frames, labels, LANES) and each frame's largest emission (frames, LANES), for LANES utterances from `begin`."""
    frames, labels = emissions.shape[1], emissions.shape[2]
    x, largest = rows(frames * labels).reshape(frames, labels, LANES), np.zeros((frames, LANES))
    x[:] = 0.0
    for lane in range(min(LANES, len(lengths) - begin)):
        for t in range(lengths[begin + lane]):
            row = emissions[begin + lane, t]
            most = _NONE
            for k in range(labels):
                most = max(most, np.float64(row[k]))
            most = 0.0 if most == _NONE else most
            largest[t, lane] = most
            for k in range(labels):
                x[t, k, lane] = np.exp(np.float64(row[k]) - most)
    return x, largest


@njit(cache=True, nogil=True, error_model="numpy")
def _spread(first, other, weight, given, found):
    """found(other end of a) += weight(a) given(n) over the arcs a of each n."""
    found[:] = 0.0
    for n in range(len(first) - 1):
        for a in range(first[n], first[n + 1]):
            add_scaled(found, other[a], given, n, weight[a])


@njit(cache=True, nogil=True, error_model="numpy")
def _normalise(values, count, size, inverse):
    """The first `count` values / size, by lane; 0 where size is 0."""
    for lane in range(LANES):
        inverse[0, lane] = 1.0 / size[0, lane] if size[0, lane] > 0 else 0.0
    for n in range(count):
        set_product(values, n, values, n, inverse, 0)


@njit(cache=True, nogil=True, error_model="numpy")
def _step(plan, x, alpha, groups, total, inverse):
    """One frame forward: r of all groups, alpha' in place of alpha, c in total[0]."""
    first, group, weight, _, _, _, label, target, member, bundle, states = plan
    for n in range(len(member)):
        add_scaled(alpha, bundle[n], alpha, member[n], 1.0)
    _spread(first, group, weight, alpha, groups)
    alpha[:] = 0.0
    total[:] = 0.0
    for g in range(len(label)):
        set_product(groups, g, groups, g, x, label[g])
        add_scaled(alpha, target[g], groups, g, 1.0)
        add_scaled(total, 0, groups, g, 1.0)
    _normalise(alpha, states, total, inverse)


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(plan, x, largest, lengths, begin, start, end, shift, segment, kept, groups, raw, log_z):
    """Fills log_z and raw (frames, LANES), the logarithm of the unit of r; keeps alpha at the start of each segment.

    The last segment's r are left in `groups` (segment, groups, LANES).
    """
    alpha, total, inverse = rows(len(start)), rows(1), rows(1)
    unit = np.zeros(LANES)
    for lane in range(LANES):
        alpha[:, lane] = start
    for t in range(len(x) + 1):
        for lane in range(min(LANES, len(lengths) - begin)):
            if lengths[begin + lane] == t:
                log_z[begin + lane] = unit[lane] + np.log((alpha[:, lane] * end).sum())
        if t == len(x):
            break
        if t % segment == 0:
            kept[t // segment] = alpha
        _step(plan, x[t], alpha, groups[t % segment], total, inverse)
        for lane in range(LANES):
            raw[t, lane] = unit[lane] + shift + largest[t, lane]
            unit[lane] = raw[t, lane] + np.log(total[0, lane])


@njit(cache=True, nogil=True, error_model="numpy")
def _counts(plan, groups, beta, y, scale, found):
    """y(g) = x(g) beta(target of g) is given; adds r beta scale to the label of each group."""
    label, target = plan[6], plan[7]
    for g in range(len(label)):
        set_product(y, g, groups, g, beta, target[g])
        add_product(found, label[g], y, g, scale, 0)


@njit(cache=True, nogil=True, error_model="numpy")
def _back(plan, x, beta, y, total, inverse, loss):
    """One frame backward: beta_(t-1), no smaller than it is, over its largest value, which is left in total[0]."""
    group_first, group_source, group_weight, label, target, member, bundle, states = plan[3:]
    for g in range(len(label)):
        set_product(y, g, beta, target[g], x, label[g])
    _spread(group_first, group_source, group_weight, y, beta)
    for n in range(len(member)):
        add_scaled(beta, member[n], beta, bundle[n], 1.0)
    total[:] = loss
    for s in range(states):
        set_largest(total, 0, beta, s)
    _normalise(beta, states, total, inverse)
    inverse[:] = loss * (inverse + 1.0)
    for s in range(states):
        add_scaled(beta, s, inverse, 0, 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def lanes(plan, emissions, lengths, begin, start, end, shift, gain, arcs, segment, log_z, certain, posteriors):
    """log Z of LANES utterances from `begin` (without the shifts of start and end), and expected counts of labels.

    Args: plan: arcs by source (first, group, weight), arcs by group (first, source, weight), label and target of groups,
    (member, bundle) for states whose arcs are alike, which leave from the bundle, a row beyond the states; and how many
    states there are. emissions (batch, frames, labels); start, end (rows,) linear, at most 1; shift: what was taken off each
    log-weight; gain: log of the largest sum of weights out of a state; arcs: how many; segment: frames whose r are held at
    once; certain (batch,); posteriors as emissions, or of no size: not wanted.
    """
    count = min(LANES, len(lengths) - begin)
    x, largest = likelihoods(emissions, lengths, begin)
    frames, states, held, n_groups = max(lengths[begin : begin + count]), plan[10], len(start), len(plan[6])
    segments = frames // segment + 1
    kept, raw = rows(segments * held).reshape(segments, held, LANES), np.empty((frames, LANES))
    groups, y = rows(min(segment, frames) * n_groups).reshape(-1, n_groups, LANES), rows(n_groups)
    _forward(plan, x[:frames], largest, lengths, begin, start, end, shift, segment, kept, groups, raw, log_z)
    beta, total, inverse = rows(held), rows(1), rows(1)
    scale, found, alpha = rows(1), rows(x.shape[1]), rows(held)
    beta[:] = 0.0
    scale[:] = 0.0
    unit, worst, loss = np.full(LANES, _NONE), np.full(LANES, _NONE), 4 * (arcs + states) * TINY
    for t in range(frames - 1, -1, -1):
        if t % segment == segment - 1 and t != frames - 1:  # the end of a segment before the last: make its r again
            alpha[:] = kept[t // segment]
            for again in range(segment):
                _step(plan, x[t - segment + 1 + again], alpha, groups[again], total, inverse)
        for lane in range(count):
            if lengths[begin + lane] == t + 1:
                beta[:, lane] = end + loss
                unit[lane] = 0.0
            worst[lane] = max(worst[lane], raw[t, lane] + unit[lane])  # of alpha and beta, at most 1 each
            z = log_z[begin + lane]
            scale[0, lane] = np.exp(raw[t, lane] + unit[lane] - z) if unit[lane] > _NONE and z > _NONE else 0.0
        if posteriors.size:
            found[:] = 0.0
            _counts(plan, groups[t % segment], beta, y, scale, found)
            for lane in range(count):
                if t < lengths[begin + lane]:
                    for k in range(x.shape[1]):
                        posteriors[begin + lane, t, k] = found[k, lane]
        _back(plan, x[t], beta, y, total, inverse, loss)
        for lane in range(count):
            unit[lane] += shift + largest[t, lane] + np.log(total[0, lane])
    for lane in range(count):
        bound = max(worst[lane], unit[lane]) + gain + np.log(4.0 * states * loss * (frames + 1))
        certain[begin + lane] = bound - log_z[begin + lane] <= LOG_LOST
