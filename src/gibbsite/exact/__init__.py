"""Exact answers where they can be had: enumeration, transition matrices, transfer matrices."""

from .enumerate import index, log_z, potentials, probabilities, states
from .transfer import kaufman_log_z, strip_log_z
from .transition import outcomes, transition_matrix

__all__ = [
    "index",
    "kaufman_log_z",
    "log_z",
    "outcomes",
    "potentials",
    "probabilities",
    "states",
    "strip_log_z",
    "transition_matrix",
]
