"""Exact answers where they can be had: enumeration, transition and transfer matrices, linear chains, weighted automata."""

from .beam import Hypothesis, prefix_beam_search
from .ctc import CTCCRF, LFMMI, ctc_loss, sequence_loss
from .dependency import DependencyCRF
from .enumerate import index, log_z, potentials, probabilities, states
from .graph import EPSILON, Graph, GraphBatch
from .graph_best import Decoded, Paths, best_paths, decode
from .graph_compose import compose
from .graph_epsilon import remove_epsilon
from .graph_forward import forward
from .graph_restrict import restrict
from .graph_trim import trim
from .label_model import label_model
from .labels import Grammar
from .linear_chain import LinearChain
from .openfst import from_openfst, to_openfst
from .semi_markov import SemiMarkov
from .structured import NBest
from .topologies import ctc_graphs, ctc_topology, hmm_topology, linear
from .transfer import kaufman_log_z, strip_log_z
from .transition import outcomes, transition_matrix
from .tree import TreeCRF

__all__ = [
    "CTCCRF",
    "EPSILON",
    "LFMMI",
    "Decoded",
    "DependencyCRF",
    "Grammar",
    "Graph",
    "GraphBatch",
    "Hypothesis",
    "LinearChain",
    "NBest",
    "Paths",
    "SemiMarkov",
    "TreeCRF",
    "best_paths",
    "compose",
    "ctc_graphs",
    "ctc_loss",
    "ctc_topology",
    "decode",
    "forward",
    "from_openfst",
    "hmm_topology",
    "index",
    "kaufman_log_z",
    "label_model",
    "linear",
    "log_z",
    "outcomes",
    "potentials",
    "prefix_beam_search",
    "probabilities",
    "remove_epsilon",
    "restrict",
    "sequence_loss",
    "states",
    "strip_log_z",
    "to_openfst",
    "transition_matrix",
    "trim",
]
