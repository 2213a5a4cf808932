"""Exact answers where they can be had: enumeration, transition matrices, transfer matrices, linear chains."""

from .enumerate import index, log_z, potentials, probabilities, states
from .labels import Grammar
from .linear_chain import LinearChain, NBest
from .transfer import kaufman_log_z, strip_log_z
from .transition import outcomes, transition_matrix

__all__ = [
    "Grammar",
    "LinearChain",
    "NBest",
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
