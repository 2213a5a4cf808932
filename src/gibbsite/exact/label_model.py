"""Language models of labels as weighted automata: what the denominator of CTC-CRF is composed of."""

import torch

from ..check import instance
from ..distributions import NGram
from .graph import Graph
from .graph_trim import trim


def label_model(model: NGram) -> Graph:
    """The graph that accepts every sequence of labels with the log-probability that an n-gram model gives it, exactly.

    Labels are the model's ids without its eos, whose log-probability is the weight of ending: with the eos 0 of the model
    as the blank, the ids are the columns of CTC. What the model says by backing off is written out, an arc for each label
    of each state, so that no sequence has a second path with another weight, as it would where backing off were an arc
    that reads nothing. The start of sequences and all contexts that can be reached from it are states: S of them have up to
    S (vocabulary - 1) arcs, where the model itself has as many as it lists n-grams. Compose it:
    `compose(ctc_topology(columns), label_model(model))`.

    References: Xiang, Ou (2019), CRF-based single-stage acoustic modeling with CTC topology.

    Example:
        >>> import torch, gibbsite as gb
        >>> x = torch.tensor([[1, 2, 1, 0], [1, 2, 2, 0], [1, 0, 0, 0]])
        >>> bigram = gb.distributions.kneser_ney(x, gb.Tokens(length=4, vocabulary=3, eos=0), order=2)
        >>> graph = gb.exact.label_model(bigram)
        >>> graph.states, graph.arcs
        (3, 6)
        >>> gb.exact.compose(gb.exact.ctc_topology(3), graph).states
        5
    """
    space = instance(model, NGram, "model", "; make one by kneser_ney or read_arpa").space
    labels = torch.arange(space.vocabulary, device=model.key.device)
    labels = labels[labels != space.eos]
    states = torch.arange(model.states, device=labels.device)
    source, label = torch.cartesian_prod(states, labels).T.contiguous()
    target, weight = model.step(source, label)
    _, end = model.step(states, torch.full_like(states, space.eos))
    start = torch.full_like(end, -torch.inf)
    start[model.start] = 0
    known = weight > -torch.inf
    source, target, label = source[known], target[known], label[known]
    return trim(Graph(source, target, label, weight[known], start, end, label))
